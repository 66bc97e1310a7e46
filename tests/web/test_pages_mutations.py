"""Acting from the browser: each post does one thing through the actions, says what, and does it once."""

from typing import Any

import pytest
from django.http import HttpResponse

from replicas.actions import operations, services
from replicas.actions.operations import Usage
from replicas.core.values import Desired, OperationStatus, ReplicaState
from replicas.models import Event, Operation, Replica, Service, ServiceVersion
from tests import cast
from tests.web.people import applied, browser, deployed, text

pytestmark = pytest.mark.django_db


def post(path: str, data: dict[str, Any] | None = None, role: str = "operator") -> HttpResponse:
    """Posted by a script."""
    return browser(role).post(path, data or {}, headers={"Accept": "application/json"})


def events(trigger: str) -> list[Event]:
    """The events of that trigger."""
    return list(Event.objects.filter(trigger=trigger).order_by("id"))


def test_scale_sets_the_target_and_names_who_did_it() -> None:
    deployed(replicas=2)
    answer = post("/services/web/scale", {"target": "5"})
    assert (answer.json()["level"], answer.json()["message"]) == ("success", "web is to have 5 replicas.")
    assert Service.objects.get().target == 5
    (event,) = events("scaled")
    assert (event.actor, event.reason) == ("operator", "scaled from 2 to 5 by operator")


def test_a_double_click_on_scale_scales_once() -> None:
    deployed(replicas=2)
    for _ in range(2):
        assert post("/services/web/scale", {"target": "5"}).status_code == 200
    assert len(events("scaled")) == 1


@pytest.mark.parametrize("target", ["-1", "many", "", "100001", "1e3"])
def test_a_wrong_target_is_refused_with_the_field(target: str) -> None:
    deployed(replicas=2)
    answer = post("/services/web/scale", {"target": target})
    assert answer.status_code == 400
    assert answer.json()["message"].startswith("target: ")
    assert Service.objects.get().target == 2


def test_what_is_down_cannot_be_scaled_or_restarted() -> None:
    services.take_down(deployed().pk, purge=False, actor="ann")
    for verb, data in (("scale", {"target": "3"}), ("restart", {"expected": "1"})):
        answer = post(f"/services/web/{verb}", data)
        assert answer.status_code == 409
        assert "taken down" in answer.json()["message"]
    assert Service.objects.get().target == 2
    assert Service.objects.get().last_version == 1


def test_restart_makes_a_version_and_a_second_click_does_not() -> None:
    deployed()
    first = post("/services/web/restart", {"expected": "1"})
    second = post("/services/web/restart", {"expected": "1"})
    assert first.json()["message"] == "web restarts: version 2 replaces every replica."
    assert second.status_code == 409
    assert "at version 2 by now" in second.json()["message"]
    assert "version 2 are launched" in ServiceVersion.objects.get(number=2).plan[1]
    assert Service.objects.get().last_version == 2


@pytest.mark.parametrize(("purge", "kept"), [({}, False), ({"purge": "on"}, True)])
def test_down_wants_nothing_running_and_purge_forgets(purge: dict[str, str], kept: bool) -> None:
    deployed()
    for _ in range(2):
        assert post("/services/web/down", purge).status_code == 200
    service = Service.objects.get()
    assert (service.desired, service.purge) == (Desired.DOWN, kept)
    assert len(events("down_requested")) == 1


def test_terminate_wishes_one_replica_gone() -> None:
    service = deployed()
    wanted, other = cast.ready(service), cast.ready(service)
    for _ in range(2):
        answer = post(f"/services/web/replicas/{wanted.number}/terminate")
        assert answer.json()["level"] == "success"
    wanted.refresh_from_db()
    other.refresh_from_db()
    assert wanted.retire_reason == "terminated by operator"
    assert other.retire_reason == ""
    assert len(events("terminate_requested")) == 1


def test_a_replica_that_has_ended_can_only_be_forgotten() -> None:
    replica = cast.pending(deployed())
    operations.request_cancel(cast.operation_of(replica).pk, actor="ann")
    refused = post(f"/services/web/replicas/{replica.number}/terminate")
    assert refused.status_code == 409
    assert "ended already (TERMINATED)" in refused.json()["message"]
    assert post(f"/services/web/replicas/{replica.number}/terminate", {"purge": "on"}).status_code == 200
    assert not Replica.objects.exists()
    assert post(f"/services/web/replicas/{replica.number}/terminate").status_code == 404


def test_cancel_stops_a_launch_once() -> None:
    replica = cast.pending(deployed())
    operation = cast.operation_of(replica)
    assert post(f"/operations/{operation.pk}/cancel").status_code == 200
    again = post(f"/operations/{operation.pk}/cancel")
    assert again.status_code == 409
    assert "already ended" in again.json()["message"]
    replica.refresh_from_db()
    assert replica.state == ReplicaState.TERMINATED


def test_retry_lets_a_waiting_operation_go_on() -> None:
    operation = operations.claim(cast.operation_of(cast.pending(deployed())).pk, cast.WORKER)
    assert operation is not None
    operations.wait(operation, checkpoint=None, reason="a port", seconds=300, watch=None, usage=Usage())
    assert post(f"/operations/{operation.pk}/retry").status_code == 200
    operation.refresh_from_db()
    assert operation.status == OperationStatus.WAITING
    assert operations.claim(operation.pk, cast.WORKER) is not None


@pytest.mark.parametrize("verb", ["cancel", "retry"])
def test_an_operation_that_is_not_there_is_named(verb: str) -> None:
    for number in (99, 99999999999999999999999):
        answer = post(f"/operations/{number}/{verb}")
        assert answer.status_code == 409
        assert f"There is no operation {number}" in answer.json()["message"]


def test_without_a_script_a_post_redirects_back_and_the_page_says_what_happened() -> None:
    service = deployed()
    replica = cast.ready(service)
    client = browser("operator")
    for path, data, to in [
        ("/services/web/scale", {"target": "3"}, "/services/web/"),
        ("/services/web/scale", {"target": "-3"}, "/services/web/"),
        (f"/services/web/replicas/{replica.number}/terminate", {}, f"/services/web/replicas/{replica.number}/"),
        ("/operations/99/cancel", {}, "/operations/"),
    ]:
        answer = client.post(path, data)
        assert (answer.status_code, answer["Location"]) == (302, to)
    page = client.get("/operations/").content.decode()
    assert "web is to have 3 replicas." in page
    assert 'data-level="error"' in page
    assert Operation.objects.count() == 1


def test_a_number_fixed_by_hand_is_released() -> None:
    policy = "replica_policy: {min_replicas: 2, max_replicas: 4, target_qps_per_replica: 1}"
    service = applied(text(replicas=2).replace("replicas: 2", policy)).service
    post("/services/web/scale", {"target": "3"})
    service.refresh_from_db()
    assert service.pinned
    answer = post("/services/web/release")
    undo = {"action": "/services/web/scale", "fields": {"target": 3, "expected": "load"}}
    said = "The load decides again how many replicas web has."
    assert answer.json() == {"level": "success", "message": said, "undo": undo}
    service.refresh_from_db()
    assert (service.pinned, service.target) == (False, 3)
    assert "not fixed by hand" in post("/services/web/release").json()["message"]
