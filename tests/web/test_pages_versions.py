"""The history of a service: who, when and why; what lies between two versions; going on from an old one."""

from dataclasses import replace
from pathlib import Path

import pytest

from replicas.actions import services
from replicas.core.values import Desired
from replicas.models import Event, Service
from replicas.web import presenters
from tests import cast
from tests.web.people import applied, browser, deployed, person, text

pytestmark = pytest.mark.django_db

SECRET = "secrets:\n  TOKEN: hunter2-hunter2-hunter2\n"


def page(path: str, role: str = "root") -> str:
    """A page as that person gets it."""
    answer = browser(role).get(path)
    assert answer.status_code == 200
    return str(answer.content.decode())


def test_the_history_says_who_when_and_why() -> None:
    deployed("shop")
    applied(text("shop", replicas=3), actor="bob")
    found = browser("viewer").get("/services/shop/versions.json").json()
    assert [(row["number"], row["created_by"], row["message"]) for row in found["versions"]] == [
        (2, "bob", "by bob"),
        (1, "ann", "by ann"),
    ]
    assert all(row["created_at"] for row in found["versions"])
    assert (found["service"]["version"], found["more"]) == (2, False)


def test_a_long_history_comes_in_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presenters, "VERSIONS_SHOWN", 2)
    for replicas in range(1, 6):
        deployed("shop", replicas)
    client = browser("viewer")
    first = client.get("/services/shop/versions.json").json()
    second = client.get("/services/shop/versions.json?before=4").json()
    last = client.get("/services/shop/versions.json?before=2").json()
    assert [[row["number"] for row in each["versions"]] for each in (first, second, last)] == [[5, 4], [3, 2], [1]]
    assert [each["more"] for each in (first, second, last)] == [True, True, False]
    assert "Newest versions" in page("/services/shop/versions/?before=4")


@pytest.mark.parametrize("before", ["x", "-1", "9" * 30, "", "\u0663"])
def test_a_wrong_place_in_the_history_is_harmless(before: str) -> None:
    deployed("shop")
    assert browser("viewer").get("/services/shop/versions/", {"before": before}).status_code == 200


def test_a_version_shows_its_plan_and_its_text() -> None:
    deployed("shop")
    services.apply(replace(cast.draft("shop", run="exec x"), plan=("first this", "then that")), actor="bob")
    shown = page("/services/shop/versions/2/")
    assert "first this" in shown
    assert "then that" in shown
    assert "Changes since version 1" in shown
    assert "Changes since" not in page("/services/shop/versions/1/")


def compared(old: int, new: int) -> tuple[list[dict[str, str]], list[str], list[tuple[str, str]]]:
    """What the page of two versions was made from: fields, other lines, lines of the texts that differ."""
    context = browser("viewer").get(f"/services/shop/versions/compare?old={old}&new={new}").context
    lines = [(each.kind, each.text) for each in context["lines"] if each.kind != "same"]
    return context["fields"], context["others"], lines


def test_two_versions_are_compared_field_by_field_and_line_by_line() -> None:
    deployed("shop")
    applied(text("shop", replicas=3))
    applied(text("shop", replicas=5))
    fields, others, lines = compared(1, 3)
    assert fields == [{"path": "service.replicas", "old": "2", "new": "5"}]
    assert others == []
    assert lines == [("old", "  replicas: 2"), ("new", "  replicas: 5")]
    assert compared(3, 1)[0] == [{"path": "service.replicas", "old": "5", "new": "2"}]
    assert compared(2, 2) == ([], [], [])
    assert "They ask for the same." in page("/services/shop/versions/compare?old=2&new=2")


def test_what_is_new_gone_or_long_is_told_in_a_line() -> None:
    deployed("shop")
    applied(text("shop").replace("run: exec python server.py", "run: |\n  a\n  b\nsetup: x"))
    fields, _, _ = compared(1, 2)
    assert {each["path"]: each.get("line") for each in fields} == {
        "setup": 'added, "x"',
        "run": "2 lines added, 1 removed",
    }


def test_another_value_of_a_secret_is_told_without_it() -> None:
    applied(text("shop", more=SECRET))
    applied(text("shop", more=SECRET.replace("hunter2-hunter2-hunter2", "other-other-other-other")))
    fields, others, lines = compared(1, 2)
    assert (fields, others, lines) == ([], ["secrets.TOKEN: has another value"], [])
    shown = page("/services/shop/versions/compare?old=1&new=2")
    assert "hunter2" not in shown
    assert "other-other" not in shown


@pytest.mark.parametrize("query", ["", "?old=1", "?new=1", "?old=x&new=1"])
def test_without_two_numbers_there_is_nothing_to_compare(query: str) -> None:
    deployed("shop")
    answer = browser("viewer").get(f"/services/shop/versions/compare{query}")
    assert (answer.status_code, answer["Location"]) == (302, "/services/shop/versions/")
    assert browser("viewer").get("/services/shop/versions/compare?old=1&new=9").status_code == 404


def test_an_old_version_can_be_edited_and_becomes_the_next() -> None:
    deployed("shop")
    applied(text("shop", replicas=7))
    client = browser("deployer")
    shown = client.get("/services/shop/edit?version=1").content.decode()
    assert "replicas: 2" in shown
    assert "This is the text of" in shown
    assert 'name="expected" value="2"' in shown
    assert "This is the text of" not in client.get("/services/shop/edit?version=2").content.decode()
    client.post("/services/shop/edit", {"text": text("shop", replicas=3), "expected": "2"})
    assert Service.objects.get().version.number == 3
    assert client.get("/services/shop/edit?version=9").status_code == 404


def test_secrets_are_spoken_of_only_where_there_are_any() -> None:
    deployed("shop")
    assert "Values of secrets" not in page("/services/shop/edit")
    applied(text("shop", more=SECRET))
    assert "Values of secrets are not shown" in page("/services/shop/edit")


# A service that is down


@pytest.fixture
def down() -> Service:
    """A service of which nothing is wanted."""
    service = deployed("shop")
    services.take_down(service.pk, purge=False, actor="ann")
    return service


def test_what_is_down_comes_up_again_as_it_was(down: Service) -> None:
    answer = browser("deployer").post("/services/shop/up", {}, headers={"Accept": "application/json"})
    assert answer.json() == {"level": "success", "message": "shop comes up again with version 1."}
    down.refresh_from_db()
    assert (down.desired, down.target, down.last_version) == (Desired.UP, 2, 1)
    event = Event.objects.get(trigger="revived")
    assert (event.actor, event.reason) == (person("deployer").username, "version 1 brought up again")


def test_a_second_click_is_told_that_it_is_up(down: Service) -> None:
    client = browser("deployer")
    answers = [client.post("/services/shop/up", {}, headers={"Accept": "application/json"}) for _ in range(2)]
    assert [each.status_code for each in answers] == [200, 409]
    assert answers[1].json()["message"] == "shop is not down."
    assert Event.objects.filter(trigger="revived").count() == 1


@pytest.mark.usefixtures("home")
def test_what_cannot_come_up_says_why(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    service = applied(f"workdir: {tmp_path}/app\n{text('shop').replace('fake', 'local')}").service
    services.take_down(service.pk, purge=False, actor="ann")
    (tmp_path / "app").rmdir()
    answer = browser("deployer").post("/services/shop/up", {}, headers={"Accept": "application/json"})
    assert answer.status_code == 409
    assert "shop cannot come up as it is: line 1, column" in answer.json()["message"]
    assert Service.objects.get().desired == Desired.DOWN


def test_the_page_offers_to_bring_it_up(down: Service) -> None:
    assert "Bring up" in page("/services/shop/", "deployer")
    assert "dialog-up" not in page("/services/shop/", "operator")


# Who took whose place


def test_a_replica_and_its_replacement_know_each_other() -> None:
    service = deployed("web")
    first = cast.ready(service)
    client = browser("viewer")
    assert client.get(f"/services/web/replicas/{first.number}/snapshot.json").json()["replaced_by"] is None
    cast.pending(service, replaces=first.number)
    second = cast.pending(service, replaces=first.number)
    snapshot = client.get(f"/services/web/replicas/{first.number}/snapshot.json").json()
    assert snapshot["replaced_by"] == second.number
    assert client.get(f"/services/web/replicas/{second.number}/snapshot.json").json()["replica"]["replaces"] == 1
