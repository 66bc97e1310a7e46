"""Making and changing services by their YAML in the browser."""

import json
from pathlib import Path
from typing import Any

import pytest

from replicas.actions import services
from replicas.actions.sealing import unseal
from replicas.models import Event, Service, ServiceVersion
from replicas.web import intake
from replicas.web.examples import base, examples
from tests import cast
from tests.web.people import applied, browser, deployed, person, text

pytestmark = pytest.mark.django_db

SECRET = "secrets:\n  TOKEN: hunter2-hunter2-hunter2\n"


def check(source: str, **more: str) -> dict[str, Any]:
    """What the editor is told of a text."""
    answer = browser("deployer").post("/check", {"text": source, **more})
    assert answer.status_code == 200
    said: dict[str, Any] = answer.json()
    return said


@pytest.mark.usefixtures("home")
def test_a_text_becomes_a_service_of_its_maker() -> None:
    answer = browser("deployer").post("/new", {"text": text("shop"), "message": "first try"}, follow=True)
    assert answer.redirect_chain == [("/services/shop/", 302)]
    assert "shop is created as version 1; its replicas are launched now." in answer.content.decode()
    service = Service.objects.get()
    assert (service.owner, service.target) == (person("deployer"), 2)
    assert Event.objects.get(trigger="created", kind="service").actor == "deployer"
    assert ServiceVersion.objects.get().message == "first try"


def test_the_name_can_be_given_beside_the_text() -> None:
    browser("deployer").post("/new", {"text": text("shop"), "name": "other"})
    assert Service.objects.get().name == "other"


def test_faults_are_told_with_their_lines_and_the_text_stays() -> None:
    wrong = text("shop").replace("replicas: 2", "replicaz: 2")
    answer = browser("deployer").post("/new", {"text": wrong, "message": "first try"})
    assert answer.status_code == 422
    page = answer.content.decode()
    assert "Line 8" in page
    assert "replicaz: 2" in page
    assert 'value="first try"' in page
    assert not Service.objects.exists()


def test_a_name_that_is_taken_is_refused() -> None:
    deployed("shop")
    answer = browser("deployer").post("/new", {"text": text("shop", replicas=9)})
    assert answer.status_code == 409
    assert "There is a service shop already" in answer.content.decode()
    (told,) = check(text("shop", replicas=9))["errors"]
    assert told["message"].startswith("There is a service shop already: edit that one")
    assert Service.objects.get().last_version == 1


def test_what_was_taken_down_can_be_made_anew() -> None:
    services.take_down(deployed("shop").pk, purge=False, actor="ann")
    answer = browser("deployer").post("/new", {"text": text("shop", replicas=3)}, follow=True)
    assert "shop is brought up again, as version 2." in answer.content.decode()
    assert Service.objects.get().target == 3


def test_the_editor_starts_with_the_active_text_and_applies_the_next() -> None:
    deployed("shop")
    client = browser("deployer")
    page = client.get("/services/shop/edit").content.decode()
    assert "exec python server.py" in page
    assert 'name="expected" value="1"' in page
    answer = client.post("/services/shop/edit", {"text": text("shop", replicas=5), "expected": "1"}, follow=True)
    assert "shop is updated: version 2 takes over as the update goes on." in answer.content.decode()
    assert Service.objects.get().target == 5


def test_an_edit_is_no_edit_of_another_service_of_the_same_name() -> None:
    mine = {"text": text("shop", replicas=5), "expected": "1", "of": str(deployed("shop").pk)}
    Service.objects.all().delete()
    other = applied(text("shop", replicas=4), actor="bob").service
    client = browser("deployer")
    conflict = client.post("/services/shop/edit", mine)
    page = conflict.content.decode()
    assert conflict.status_code == 409
    assert "was forgotten and made anew meanwhile" in page
    assert f'name="of" value="{other.pk}"' in page
    assert Service.objects.get().target == 4
    assert client.post("/services/shop/edit", mine | {"of": str(other.pk), "over": "1"}).status_code == 302


def test_the_text_for_a_service_that_was_forgotten_becomes_one_for_a_new_service() -> None:
    mine = {"text": text("shop", replicas=5), "expected": "1", "of": str(deployed("shop").pk), "message": "for today"}
    Service.objects.all().delete()
    client = browser("deployer")
    answer = client.post("/services/shop/edit", mine)
    page = answer.content.decode()
    assert answer.status_code == 409
    assert "There is no service shop any more" in page
    assert "replicas: 5" in page
    assert 'action="/new"' in page
    assert 'name="name" maxlength="200" value="shop"' in page
    assert "for today" in page
    assert client.get("/services/shop/edit").status_code == 404


def test_applying_the_same_again_changes_nothing() -> None:
    deployed("shop")
    answer = browser("deployer").post("/services/shop/edit", {"text": text("shop"), "expected": "1"}, follow=True)
    assert "shop is unchanged: version 1 stays." in answer.content.decode()
    assert Service.objects.get().last_version == 1


def test_a_double_click_makes_one_version() -> None:
    deployed("shop")
    client = browser("deployer")
    codes = [
        client.post("/services/shop/edit", {"text": text("shop", replicas=5), "expected": "1"}).status_code
        for _ in range(2)
    ]
    assert codes[0] == 302
    assert Service.objects.get().last_version == 2


def test_an_edit_over_somebody_elses_is_asked_about_first() -> None:
    deployed("shop")
    applied(text("shop", replicas=4), actor="bob")
    client = browser("deployer")
    mine = {"text": text("shop", replicas=5), "expected": "1"}
    conflict = client.post("/services/shop/edit", mine)
    page = conflict.content.decode()
    assert conflict.status_code == 409
    assert "is at version 2 by now, not 1" in page
    assert "replicas: 5" in page
    assert "Apply over version 2" in page
    assert Service.objects.get().target == 4
    applied(text("shop", replicas=6), actor="bob")
    assert client.post("/services/shop/edit", mine | {"over": "2"}).status_code == 409
    assert client.post("/services/shop/edit", mine | {"over": "3"}).status_code == 302
    assert Service.objects.get().target == 5


def test_the_name_in_the_text_does_not_turn_an_edit_into_another_service() -> None:
    deployed("shop")
    browser("deployer").post("/services/shop/edit", {"text": text("other", replicas=3), "expected": "1"})
    assert [(s.name, s.target) for s in Service.objects.all()] == [("shop", 3)]


def test_a_secret_is_never_sent_back_and_stays_what_it_was() -> None:
    applied(text("shop", more=SECRET))
    client = browser("deployer")
    page = client.get("/services/shop/edit").content.decode()
    assert "hunter2" not in page
    assert "***" in page
    assert "hunter2" not in client.get("/services/shop/").content.decode()
    kept = ServiceVersion.objects.get().text.replace("replicas: 2", "replicas: 3")
    client.post("/services/shop/edit", {"text": kept, "expected": "1"})
    version = ServiceVersion.objects.get(number=2)
    assert unseal(version.sealed) == {"TOKEN": "hunter2-hunter2-hunter2"}
    assert "hunter2" not in version.text


def test_the_editor_is_given_the_published_schema() -> None:
    published = Path(__file__).resolve().parents[2] / "docs" / "spec.schema.json"
    assert browser("deployer").get("/spec.schema.json").json() == json.loads(published.read_text())


def test_the_check_tells_what_would_happen_and_writes_nothing() -> None:
    said = check(text("shop"))
    assert (said["kind"], said["name"], said["errors"]) == ("create", "shop", [])
    assert "2 replicas on the provider fake" in said["changes"]
    assert not Service.objects.exists()


def test_the_check_tells_what_an_edit_changes() -> None:
    deployed("shop")
    said = check(text("shop", replicas=5), service="shop")
    assert (said["kind"], said["active"]) == ("update", 1)
    assert any("replicas" in line and "5" in line for line in said["changes"])
    assert said["plan"][1].startswith("In place: nothing that a replica is made from changes")
    unchanged = check(text("shop"), service="shop")
    assert (unchanged["kind"], unchanged["plan"]) == ("unchanged", [])


@pytest.mark.parametrize(
    ("scaled", "edit", "kind", "change"),
    [
        (None, {}, "unchanged", "unchanged"),
        (5, {}, "scale", "scaled"),
        (None, {"replicas": 5}, "update", "updated"),
        (5, {"replicas": 5}, "update", "updated"),
    ],
)
def test_what_is_foretold_is_what_happens(scaled: int | None, edit: dict[str, int], kind: str, change: str) -> None:
    service = deployed("shop")
    if scaled is not None:
        intake.scale(service, scaled, actor="ann")
    said = check(text("shop", **edit), service="shop")
    assert said["kind"] == kind
    assert any(line.startswith("No new version") for line in said["plan"]) == (kind == "scale")
    done = intake.carry_out(intake.propose(text("shop", **edit), name="shop"), actor="ann")
    assert done.change == change
    assert done.version.number == (2 if kind == "update" else 1)
    assert done.service.target == edit.get("replicas", 2)


def test_the_check_tells_the_plan_that_is_then_kept_with_the_version() -> None:
    for _ in range(2):
        cast.ready(deployed("shop"))
    other = text("shop").replace("server.py", "other.py")
    said = check(other, service="shop")
    assert said["plan"][0] == "The rollout to version 1, which is going on, is superseded."
    assert said["plan"][1] == "Rolling: 2 replicas of version 2 are launched; 2 older ones (version 1) are drained."
    browser("deployer").post("/services/shop/edit", {"text": other, "expected": "1"})
    assert ServiceVersion.objects.get(number=2).plan == said["plan"]


@pytest.mark.usefixtures("home")
def test_the_kept_plan_knows_files_that_were_compared_only_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "main.py").write_text("1")
    source = f"workdir: {tmp_path}/app\n{text('shop').replace('fake', 'local')}"
    cast.ready(applied(source).service)
    (tmp_path / "app" / "main.py").write_text("2")
    source = source.replace("replicas: 2", "replicas: 3")
    assert any("In place" in line for line in check(source, service="shop")["plan"])
    browser("deployer").post("/services/shop/edit", {"text": source, "expected": "1"})
    plan = ServiceVersion.objects.get(number=2).plan
    assert "Rolling: 3 replicas of version 2 are launched; 1 older one (version 1) is drained." in plan


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("name: shop\nrun: x\nservice:\n  replicas: two\n", 4),
        ("name: shop\nrun: [\n", 3),
        ("name: shop\nname: shop\nrun: x\n", 2),
        ("", 1),
        ("\x00", 1),
        ("name: shop\nrun: x\x00", 2),
        ("- a\n- b\n", 1),
    ],
)
def test_each_fault_has_its_line(source: str, line: int) -> None:
    said = check(source) if source else browser("deployer").post("/check", {"text": source}).json()
    assert said["kind"] == ""
    assert said["errors"]
    assert line in {each["line"] for each in said["errors"]}
    assert "This field is required" not in str(said)


def test_a_text_that_is_too_long_is_refused() -> None:
    said = check("# " + "x" * 600_000)
    assert said["kind"] == ""


@pytest.mark.parametrize("example", examples(), ids=lambda each: each.name)
def test_every_example_can_be_started_from(example: Any) -> None:
    page = browser("deployer").get("/new", {"example": example.name}).content.decode()
    assert f"name: {example.name}" in page
    assert f"?example={example.name}" in page
    assert check(example.text)["errors"] == []


def test_the_empty_text_is_a_service_that_runs() -> None:
    client = browser("deployer")
    context = client.get("/new").context
    said = check(context["values"]["text"])
    assert (said["kind"], said["errors"]) == ("create", [])


def test_lines_of_another_system_are_taken_as_lines() -> None:
    browser("deployer").post("/new", {"text": text("shop").replace("\n", "\r\n")})
    assert ServiceVersion.objects.get().text == text("shop")
    assert "\r" not in ServiceVersion.objects.get().text


def test_a_workdir_that_is_not_there_is_told_at_its_line_when_it_is_applied() -> None:
    answer = browser("deployer").post("/new", {"text": "workdir: /nowhere/at/all\nname: shop\nrun: x\nservice: {}\n"})
    assert answer.status_code == 422
    (fault,) = answer.context["verdict"].errors
    assert (fault["line"], fault["path"]) == (1, "workdir")
    assert not Service.objects.exists()


def test_characters_that_are_not_seen_are_marked_where_a_text_is_read() -> None:
    turned = text("shop").replace("GREETING: hello", 'GREETING: "<b>\u202eolleh\u2066"')
    applied(turned)
    applied(turned.replace("\u202e", "\u200f"))
    mark = '<bdi class="unseen" data-code="U+{0:04X}">{1}</bdi>'
    for path in ("/services/shop/versions/1/", "/services/shop/versions/compare?old=1&new=2"):
        page = browser("viewer").get(path).content.decode()
        assert page.count("\u202e") == page.count(mark.format(0x202E, "\u202e")) >= 1
        assert "<b>" + mark[:4] not in page


@pytest.mark.usefixtures("home")
def test_both_editors_name_the_directory_of_relative_paths(tmp_path: Path) -> None:
    client = browser("deployer")
    assert f"Relative paths start at <code>{base()}</code>" in client.get("/new").content.decode()
    intake.carry_out(intake.propose(text("shop"), base=str(tmp_path)), actor="ann")
    assert f"Relative paths start at <code>{tmp_path}</code>" in client.get("/services/shop/edit").content.decode()
