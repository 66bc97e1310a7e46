"""What pages are drawn from: snapshots with their cursor first, bounded history, and a constant number of queries."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.db.models import Q
from django.test.utils import CaptureQueriesContext

from replicas.actions import replicas, services
from replicas.core.values import Desired
from replicas.models import Event, Operation, Service
from replicas.web import presenters
from tests import cast
from tests.web.people import applied, browser, deployed, text

pytestmark = pytest.mark.django_db


def embedded(page: bytes) -> dict[str, Any]:
    """The JSON that a page carries for its script."""
    found = re.search(r'<script id="page-data" type="application/json">(.*?)</script>', page.decode(), re.S)
    assert found
    data: dict[str, Any] = json.loads(found[1])
    return data


def withdrawn(service: Service) -> None:
    """A replica that has ended."""
    assert replicas.withdraw(cast.pending(service).pk, reason="not wanted", actor="controller")


def without_clock(snapshot: dict[str, Any]) -> dict[str, Any]:
    """The snapshot without the time at which it was taken."""
    return {key: value for key, value in snapshot.items() if key != "now"}


@pytest.mark.parametrize(
    "path", ["/", "/services/web/", "/services/web/replicas/1/", "/operations/", "/services/web/versions/"]
)
def test_a_page_carries_the_very_snapshot_that_it_fetches_later(path: str) -> None:
    cast.ready(deployed())
    client = browser("viewer")
    page = embedded(client.get(path).content)
    fetched = client.get(page["url"]).json()
    assert without_clock(page["snapshot"]) == without_clock(fetched)
    assert fetched["cursor"] == Event.objects.latest("id").pk


def reading(monkeypatch: pytest.MonkeyPatch, change: Callable[[], None], take: Callable[[], Any]) -> Any:
    """What `take` gives when `change` happens right after it has read the cursor."""
    real = presenters.newest

    def read() -> int:
        at = real()
        change()
        return at

    monkeypatch.setattr(presenters, "newest", read)
    return take()


@pytest.mark.parametrize("name", ["services", "service", "replica", "operations"])
def test_a_change_while_a_snapshot_is_taken_is_in_it_and_comes_again(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = deployed()
    replica = cast.pending(service)
    take: dict[str, Callable[[], Any]] = {
        "services": presenters.services_snapshot,
        "service": lambda: presenters.service_snapshot("web"),
        "replica": lambda: presenters.replica_snapshot("web", replica.number),
        "operations": presenters.operations_snapshot,
    }

    def change() -> None:
        replicas.withdraw(replica.pk, reason="not wanted", actor="ann")
        services.scale(service.pk, 7, actor="ann")

    snapshot = reading(monkeypatch, change, take[name])
    later = Event.objects.filter(pk__gt=snapshot["cursor"])
    assert {each.trigger for each in later} == {"withdrawn", "cancelled", "rollout_extended", "scaled"}
    shown = json.dumps(without_clock(snapshot))
    assert {"services": '"target": 7', "operations": "CANCELLED"}.get(name, "TERMINATED") in shown


def test_history_is_capped_and_counted_while_everything_alive_is_shown() -> None:
    service = deployed(replicas=3)
    for _ in range(presenters.ENDED_SHOWN + 3):
        withdrawn(service)
    alive = [cast.pending(service).number for _ in range(3)]
    snapshot = presenters.service_snapshot("web")
    assert snapshot is not None
    numbers = [each["number"] for each in snapshot["replicas"]]
    assert numbers[:3] == sorted(alive, reverse=True)
    assert len(numbers) == 3 + presenters.ENDED_SHOWN
    assert min(numbers) == 4
    assert snapshot["ended"] == presenters.ENDED_SHOWN + 3


def test_events_come_in_pages_without_gap_or_overlap() -> None:
    service = deployed()
    for target in range(2, 2 + 2 * presenters.EVENTS_SHOWN):
        services.scale(service.pk, target + 1, actor="ann")
    client = browser("viewer")
    seen, before, more = [], "", True
    while more:
        page = client.get(f"/services/web/events.json?before={before}").json()
        seen += [event["id"] for event in page["events"]]
        before, more = seen[-1], page["more"]
    quiet = Q(kind="version") | Q(trigger__in=presenters.QUIET["triggers"])
    wanted = Event.objects.filter(service=service).exclude(quiet).order_by("-id")
    assert seen == [event.pk for event in wanted]


def test_the_timeline_leaves_out_the_steps_of_operations_unless_asked() -> None:
    cast.pending(deployed())
    client = browser("viewer")
    usual = {event["kind"] for event in client.get("/services/web/snapshot.json").json()["events"]}
    everything = {event["kind"] for event in client.get("/services/web/snapshot.json?events=all").json()["events"]}
    assert usual == {"service", "replica"}
    assert everything == {"service", "rollout", "replica", "operation", "version"}


def test_the_timeline_shows_what_is_asked_for() -> None:
    cast.pending(deployed())
    client = browser("operator")
    client.post("/services/web/scale", {"target": "3"})

    def told(choice: str) -> list[tuple[str, str]]:
        page = client.get(f"/services/web/events.json?events={choice}").json()
        return [(event["kind"], event["trigger"]) for event in page["events"]]

    assert told("people") == [("service", "scaled")]
    assert ("service", "scaled") in told("service")
    assert {kind for kind, _ in told("service")} == {"service", "version"}
    assert told("replica") == [("replica", "created")]
    assert told("operation") == [("operation", "queued")]
    assert told("rollout") == [("rollout", "rollout_extended"), ("rollout", "rollout_begun")]
    assert told("autoscaler") == []
    assert told("nonsense") == told("")


def test_a_replica_has_its_own_events_and_those_of_its_operations_only() -> None:
    service = deployed()
    first, second = cast.pending(service), cast.pending(service)
    page = browser("viewer").get(f"/services/web/replicas/{first.number}/events.json").json()
    assert {event["number"] for event in page["events"]} == {first.number}
    assert {event["kind"] for event in page["events"]} == {"replica", "operation"}
    assert second.number != first.number


@pytest.mark.parametrize("before", ["x", "-1", "9" * 30, "", "0"])
def test_a_wrong_cursor_is_harmless(before: str) -> None:
    deployed()
    answer = browser("viewer").get("/services/web/events.json", {"before": before})
    assert answer.status_code == 200


def queries(path: str) -> int:
    """How many queries a page takes."""
    client = browser("root")
    client.get(path)
    with CaptureQueriesContext(
        connection,
    ) as captured:
        assert client.get(path).status_code == 200
    return len(captured)


@pytest.mark.parametrize(
    "path", ["/", "/services/web/", "/services/web/replicas/1/", "/operations/", "/services/web/versions/"]
)
def test_the_number_of_queries_does_not_grow_with_the_rows(path: str) -> None:
    cast.ready(deployed())
    few = queries(path)
    for name in ("web", "other"):
        service = deployed(name)
        for _ in range(5):
            cast.ready(service)
            withdrawn(service)
    assert queries(path) == few
    assert few <= 14


def test_operations_name_their_services() -> None:
    cast.pending(deployed("web"))
    cast.pending(deployed("other"))
    snapshot = presenters.operations_snapshot()
    ids = {str(each["service_id"]) for each in snapshot["operations"]}
    assert {snapshot["services"][each] for each in ids} == {"web", "other"}


def test_recent_operations_are_capped_but_the_live_ones_are_all_there() -> None:
    service = deployed()
    for _ in range(presenters.OPERATIONS_SHOWN + 2):
        withdrawn(service)
    live = cast.operation_of(cast.pending(service))
    rows = presenters.operations_snapshot()["operations"]
    assert len(rows) == presenters.OPERATIONS_SHOWN + 1
    assert live.pk in {row["id"] for row in rows}
    assert Operation.objects.count() == presenters.OPERATIONS_SHOWN + 3


def test_the_spec_of_a_version_is_coloured_by_classes_and_not_by_styles() -> None:
    deployed()
    applied(text(replicas=5), actor="bob")
    client = browser("viewer")
    page = client.get("/services/web/").content.decode()
    assert "Version 2" in page
    old = client.get("/services/web/versions/1/spec").content.decode()
    assert '<span class="nt">name</span>' in old
    assert "style=" not in old
    assert client.get("/services/web/versions/9/spec").status_code == 404


def test_a_service_that_is_down_says_so() -> None:
    service = deployed()
    services.take_down(service.pk, purge=False, actor="ann")
    assert browser("viewer").get("/services/web/snapshot.json").json()["service"]["desired"] == Desired.DOWN


@pytest.mark.parametrize(
    "path",
    [
        "/services/nope/",
        "/services/nope/snapshot.json",
        "/services/nope/edit",
        "/services/nope/versions/",
        "/services/nope/versions.json",
        "/services/nope/versions/1/",
        "/services/web/replicas/99/",
        "/services/web/replicas/99999999999999999999999/",
        "/services/web/replicas/99/snapshot.json",
        "/services/web/replicas/99/events.json",
        "/nowhere",
    ],
)
def test_what_is_not_there_is_said_in_plain_words(path: str) -> None:
    deployed()
    answer = browser("root").get(path)
    assert answer.status_code == 404
    page = answer.content.decode()
    assert re.search(r"There is no (service nope|page at this address)|web has no replica 9+", page)
    assert "Resolver404" not in page


def test_a_fault_of_ours_is_said_in_plain_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(presenters, "services_snapshot", broken)
    answer = browser("viewer").get("/")
    assert answer.status_code == 500
    page = answer.content.decode()
    assert "Running replicas are not touched" in page
    assert "secret detail" not in page


def test_the_empty_page_has_the_lines_that_deploy_an_example() -> None:
    page = browser("root").get("/").content.decode()
    assert "manage.py apply examples/http.yaml --wait" in page
    assert f"export ROLLCALL_HOME={settings.ROLLCALL.home}\n" in page  # not the usual one: a new shell must be told
    assert "/new?example=http" in page
