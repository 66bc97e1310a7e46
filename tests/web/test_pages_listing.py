"""The list of services: what its address asks for, page by page, and acting on many of them."""

from typing import Any

import pytest
from django.http import HttpResponse

from replicas import clock
from replicas.actions import services
from replicas.core.values import Desired, ServiceStatus
from replicas.models import Event, Operation, Service
from replicas.web import listing, presenters
from replicas.web.forms import BULK_MOST
from replicas.web.listing import Wanted
from tests import cast
from tests.web.people import applied, browser, deployed, person, text

pytestmark = pytest.mark.django_db


def shown(address: str = "") -> list[str]:
    """The names on a page, in their order."""
    return [each["name"] for each in browser("viewer").get(f"/services.json{address}").json()["services"]]


def told(name: str, status: str, reason: str = "", ready: int = 0) -> None:
    """What the controller saw of a service."""
    service = Service.objects.get(name=name)
    services.report(
        service.pk, status=ServiceStatus(status), reason=reason, ready=ready, live=ready, actor="controller"
    )


def crowd(count: int) -> None:
    """Services without a version."""
    now = clock.now()
    rows = [Service(name=f"many-{number:03}", created_at=now, updated_at=now) for number in range(count)]
    Service.objects.bulk_create(rows)


def three() -> None:
    """Three services that differ in everything."""
    for name, replicas in (("alpha", 2), ("beta", 4), ("gamma", 1)):
        deployed(name, replicas)
    told("alpha", "READY", "2 of 2 ready", 2)
    told("beta", "NOT_READY", "no probe passes", 1)
    told("gamma", "FAILED", "all failed")


@pytest.mark.parametrize(
    ("address", "names"),
    [
        ("", ["alpha", "beta", "gamma"]),
        ("?q=BET", ["beta"]),
        ("?q=probe", ["beta"]),
        ("?q=fail", ["gamma"]),
        ("?q=%25", []),
        ("?status=READY", ["alpha"]),
        ("?status=trouble", ["beta", "gamma"]),
        ("?status=trouble&q=all", ["gamma"]),
        ("?status=NONSENSE", ["alpha", "beta", "gamma"]),
        ("?provider=fake", ["alpha", "beta", "gamma"]),
        ("?provider=local", []),
        ("?sort=-name", ["gamma", "beta", "alpha"]),
        ("?sort=status", ["gamma", "beta", "alpha"]),
        ("?sort=ready", ["gamma", "beta", "alpha"]),
        ("?sort=-ready", ["alpha", "beta", "gamma"]),
        ("?sort=age", ["gamma", "beta", "alpha"]),
        ("?sort=-age", ["alpha", "beta", "gamma"]),
        ("?sort=password&page=x", ["alpha", "beta", "gamma"]),
    ],
)
def test_the_address_says_what_is_shown_in_what_order(address: str, names: list[str]) -> None:
    three()
    assert shown(address) == names


def test_the_owner_is_a_filter() -> None:
    three()
    Service.objects.filter(name="beta").update(owner=person("operator"))
    assert shown("?owner=operator") == ["beta"]
    assert shown("?owner=nobody") == []
    assert presenters.services_snapshot()["owners"] == ["operator"]


def test_pages_hold_everything_once_and_the_last_one_stands_for_those_behind_it() -> None:
    crowd(2 * listing.PER_PAGE + 3)
    pages = [shown(f"?page={number}") for number in (1, 2, 3)]
    assert [len(page) for page in pages] == [listing.PER_PAGE, listing.PER_PAGE, 3]
    names = [name for page in pages for name in page]
    assert names == sorted(set(names))
    assert shown("?page=99") == pages[2]
    snapshot = presenters.services_snapshot(Wanted(page=2))
    assert (snapshot["pages"], snapshot["matched"], len(snapshot["index"])) == (3, 103, 103)


def test_a_page_of_many_takes_no_more_queries_than_one_of_few(django_assert_max_num_queries: Any) -> None:
    three()
    for name in ("alpha", "beta"):
        cast.ready(Service.objects.get(name=name))
    crowd(100)
    with django_assert_max_num_queries(9):
        presenters.services_snapshot(Wanted(q="a", sort="status"))


def test_the_names_of_all_pages_are_had_in_one_answer_with_an_end() -> None:
    crowd(BULK_MOST + 1)
    answer = browser("viewer").get("/services/names.json?q=many").json()
    assert len(answer["names"]) == BULK_MOST
    assert answer["more"] is True
    assert browser("viewer").get("/services/names.json?q=many-001").json() == {"names": ["many-001"], "more": False}


def bulk(data: dict[str, Any], path: str = "services/bulk", role: str = "operator") -> HttpResponse:
    """Posted by a script."""
    return browser(role).post(f"/{path}", data, headers={"Accept": "application/json"})


def test_many_are_scaled_restarted_and_taken_down_through_the_same_actions() -> None:
    three()
    names = ["alpha", "beta"]
    assert bulk({"verb": "scale", "names": names, "target": "3"}).json()["message"] == "2 services are scaled."
    assert bulk({"verb": "restart", "names": names}).json()["message"] == "2 services restart."
    assert bulk({"verb": "down", "names": names[:1]}).json()["message"] == "1 service is taken down."
    targets = dict(Service.objects.values_list("name", "target"))
    assert targets == {"alpha": 3, "beta": 3, "gamma": 1}
    assert dict(Service.objects.values_list("name", "last_version")) == {"alpha": 2, "beta": 2, "gamma": 1}
    assert list(Service.objects.filter(desired=Desired.DOWN).values_list("name", flat=True)) == ["alpha"]
    assert {each.actor for each in Event.objects.filter(trigger__in=["scaled", "restarted"])} == {"operator"}


def test_those_that_refuse_are_named_and_the_others_go_on() -> None:
    three()
    services.take_down(Service.objects.get(name="beta").pk, purge=False, actor="ann")
    answer = bulk({"verb": "restart", "names": ["alpha", "beta", "nobody"]})
    assert answer.status_code == 409
    assert answer.json()["message"] == (
        "1 service restarts. 2 services refused: beta: it is taken down; nobody: it is not there any more."
    )
    assert Service.objects.get(name="alpha").last_version == 2


def test_services_of_others_are_left_alone_and_named() -> None:
    three()
    for name, owner in (("alpha", "operator"), ("beta", "deployer")):
        Service.objects.filter(name=name).update(owner=person(owner))
    told = bulk({"verb": "restart", "names": ["alpha", "beta", "gamma"]}).json()["message"]
    assert told.startswith("2 services restart. 1 service refused: beta: Service beta belongs to deployer")
    assert Service.objects.get(name="beta").last_version == 1
    ids = [cast.operation_of(cast.pending(Service.objects.get(name=name))).pk for name in ("alpha", "beta")]
    told = bulk({"verb": "cancel", "ids": ids}, "operations/bulk").json()["message"]
    assert told.startswith(f"1 operation is cancelled. 1 operation refused: {ids[1]}: Service beta belongs")


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        ({"verb": "scale", "names": ["alpha"]}, "target: Say how many"),
        ({"verb": "restart"}, "names: "),
        ({"verb": "forget", "names": ["alpha"]}, "verb: "),
        ({"verb": "restart", "names": [str(number) for number in range(BULK_MOST + 1)]}, "names: 501 are too many"),
    ],
)
def test_a_wrong_post_changes_nothing_and_names_the_field(data: dict[str, Any], fault: str) -> None:
    three()
    answer = bulk(data)
    assert answer.status_code == 400
    assert fault in answer.json()["message"]
    assert not Event.objects.filter(actor="operator").exists()


def test_many_launches_are_cancelled_and_those_that_cannot_be_are_named() -> None:
    service = deployed()
    ids = [cast.operation_of(cast.pending(service)).pk for _ in range(2)]
    answer = bulk({"verb": "cancel", "ids": [*ids, 999]}, "operations/bulk")
    assert answer.json()["message"].startswith("2 operations are cancelled. 1 operation refused: 999: there is no")
    assert set(Operation.objects.values_list("status", flat=True)) == {"CANCELLED"}
    assert bulk({"verb": "cancel", "ids": ["x"]}, "operations/bulk").status_code == 400


def test_an_undo_of_a_scaling_goes_back_to_the_earlier_target() -> None:
    deployed(replicas=2)
    client = browser("operator")
    scaled = client.post("/services/web/scale", {"target": "5"}, headers={"Accept": "application/json"}).json()
    assert scaled["undo"] == {"action": "/services/web/scale", "fields": {"target": 2, "expected": 5}}
    client.post(scaled["undo"]["action"], scaled["undo"]["fields"])
    assert Service.objects.get().target == 2
    again = client.post("/services/web/scale", {"target": "2"}, headers={"Accept": "application/json"}).json()
    assert "undo" not in again


def test_an_undo_leaves_the_number_to_the_load_where_that_had_it() -> None:
    policy = "  replica_policy:\n    min_replicas: 1\n    max_replicas: 4\n    target_qps_per_replica: 5\n"
    applied(text().replace("  replicas: 2\n", policy))
    client, asked = browser("operator"), {"headers": {"Accept": "application/json"}}
    undo = client.post("/services/web/scale", {"target": "3"}, **asked).json()["undo"]
    assert undo == {"action": "/services/web/release", "fields": {"expected": 3}}
    redo = client.post(undo["action"], undo["fields"], **asked).json()["undo"]
    assert not Service.objects.get().pinned
    assert redo == {"action": "/services/web/scale", "fields": {"target": 3, "expected": "load"}}
    client.post(redo["action"], redo["fields"])
    assert (Service.objects.get().pinned, Service.objects.get().target) == (True, 3)


def test_an_undo_takes_back_nothing_that_somebody_else_wants_by_then() -> None:
    deployed(replicas=3)
    client, asked = browser("operator"), {"headers": {"Accept": "application/json"}}
    first = client.post("/services/web/scale", {"target": "4"}, **asked).json()["undo"]
    second = client.post("/services/web/scale", {"target": "6"}, **asked).json()["undo"]
    refused = client.post(first["action"], first["fields"], **asked)
    assert refused.status_code == 409
    assert "scaled meanwhile: 6 are wanted by now" in refused.json()["message"]
    assert Service.objects.get().target == 6
    client.post(second["action"], second["fields"])
    assert Service.objects.get().target == 4
    client.post(first["action"], first["fields"])
    assert Service.objects.get().target == 3


def test_an_undo_of_a_release_or_to_one_leaves_a_number_set_meanwhile() -> None:
    policy = "  replica_policy:\n    min_replicas: 1\n    max_replicas: 4\n    target_qps_per_replica: 5\n"
    applied(text().replace("  replicas: 2\n", policy))
    client, asked = browser("operator"), {"headers": {"Accept": "application/json"}}
    undo = client.post("/services/web/scale", {"target": "3"}, **asked).json()["undo"]
    client.post("/services/web/scale", {"target": "4"})
    assert client.post(undo["action"], undo["fields"], **asked).status_code == 409
    redo = client.post("/services/web/release", **asked).json()["undo"]
    client.post("/services/web/scale", {"target": "2"})
    assert client.post(redo["action"], redo["fields"], **asked).status_code == 409
    assert (Service.objects.get().pinned, Service.objects.get().target) == (True, 2)
