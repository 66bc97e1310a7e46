"""Over the API: apply and plan, scale, steer, roll back, restart, terminate, take down, cancel and retry."""

import json
from typing import Any

import pytest

from replicas.actions import operations, services
from replicas.actions.operations import Usage
from replicas.core.values import Role, Scope
from replicas.models import Event, Operation, Replica, Service, ServiceVersion
from tests import cast
from tests.api.caller import Caller
from tests.web.people import applied, deployed, text

pytestmark = pytest.mark.django_db


def problem(answer: Any, status: int, code: str) -> dict[str, Any]:
    """The refusal, which has to be this one."""
    assert answer.status_code == status, answer.content
    found: dict[str, Any] = answer.json()["error"]
    assert found["code"] == code
    assert found["message"]
    assert found["next"]
    return found


def test_a_yaml_becomes_a_service_of_the_users() -> None:
    ann = Caller()
    answer = ann.post("/apply", text("web", 2).encode(), "application/yaml", message="first")
    assert answer.status_code == 201
    body = answer.json()
    assert (body["change"], body["version"], body["service"]["owner"]) == ("created", 1, "ann")
    assert body["rollout"]["to_version"] == 1
    assert body["plan"]
    event = Event.objects.get(trigger="created", kind="service")
    assert (event.actor, event.source, event.address, event.token) == ("ann", "api", "192.0.2.9", ann.row.prefix)
    assert ServiceVersion.objects.get().message == "first"


def test_the_same_again_changes_nothing_and_another_text_makes_a_version() -> None:
    ann = Caller()
    ann.post("/apply", {"yaml": text("web", 2)})
    assert ann.post("/apply", {"yaml": text("web", 2)}).json()["change"] == "unchanged"
    body = ann.post("/apply", {"yaml": text("web", 2), "env": {"GREETING": "hi"}, "expected_version": 1}).json()
    assert (body["change"], body["version"]) == ("updated", 2)
    assert ServiceVersion.objects.get(number=2).spec["envs"]["GREETING"] == "hi"
    conflict = ann.post("/apply", {"yaml": text("web", 3), "expected_version": 1})
    assert "at version 2 by now" in problem(conflict, 409, "conflict")["message"]
    assert Service.objects.get().last_version == 2


@pytest.mark.parametrize("way", ["plan", "query", "body", "both"])
def test_a_dry_run_writes_nothing(way: str) -> None:
    ann, body, query = Caller(), {"yaml": text("web", 2)}, {}
    if way in {"body", "both"}:
        body |= {"dry_run": True}  # type: ignore[dict-item]
    if way in {"query", "both"}:
        query = {"dry_run": "true"}
    found = ann.post("/plan" if way == "plan" else "/apply", body, **query).json()
    assert (found["kind"], found["name"], found["version"]) == ("create", "web", 0)
    assert found["plan"]
    assert not Service.objects.exists()


def test_faults_of_a_spec_have_their_lines() -> None:
    answer = Caller().post("/apply", b"name: web\nrun: x\nservise: {}\n", "application/yaml")
    found = problem(answer, 400, "invalid_spec")
    assert {fault["line"] for fault in found["faults"]} >= {3}
    assert all(fault["column"] >= 1 for fault in found["faults"])


def test_files_of_the_machine_that_asks_are_refused_plainly() -> None:
    source = text("web", 1).replace("provider: fake", "provider: local") + "workdir: ./my-app\n"
    found = problem(Caller().post("/apply", source.encode(), "application/yaml"), 400, "invalid_spec")
    assert "looked for on the server" in found["next"]
    assert not Service.objects.exists()


@pytest.mark.parametrize(
    ("body", "kind", "status", "code"),
    [
        (b"name: web", "application/x-www-form-urlencoded", 415, "unsupported_media_type"),
        (b"name: \xff", "application/yaml", 400, "invalid_request"),
        (b"{", "application/json", 400, "invalid_request"),
        (b"[1]", "application/json", 400, "invalid_request"),
        (b'{"yaml": 1}', "application/json", 400, "invalid_request"),
        (b'{"yaml": "name: x", "dryrun": true}', "application/json", 400, "invalid_request"),
        (b'{"yaml": "name: x", "mode": "in_place"}', "application/json", 400, "invalid_request"),
        (b"x" * (2 << 20), "application/yaml", 413, "too_large"),
    ],
)
def test_a_wrong_body_is_refused(body: bytes, kind: str, status: int, code: str) -> None:
    problem(Caller().post("/apply", body, kind), status, code)


@pytest.mark.parametrize("wrong", [True, "2", 2.0, -1, 100_001, None])
def test_a_number_is_a_number(wrong: object) -> None:
    deployed()
    body = json.dumps({"target": wrong}).encode()
    found = problem(Caller().post("/services/web/scale", body, "application/json"), 400, "invalid_request")
    assert "target" in found["message"]
    problem(Caller().post("/services/web/scale", b'{"target": 1}', "text/html"), 415, "unsupported_media_type")
    assert Service.objects.get().target == 2


def test_a_misspelt_option_is_no_wish_for_something_else() -> None:
    answer = Caller().post("/apply", text().encode(), "application/yaml", dryrun="true")
    assert "dryrun" in problem(answer, 400, "invalid_request")["message"]
    assert not Service.objects.exists()


@pytest.mark.parametrize("field", ["message", "name", "yaml"])
def test_what_no_database_stores_is_refused(field: str) -> None:
    body = {"yaml": text(), field: "a\0b"}
    problem(Caller().post("/apply", body), 400, "invalid_request")
    problem(Caller().get("/events", service="a\0b"), 400, "invalid_request")
    problem(Caller().get("/services/a%00b"), 400, "invalid_request")


def test_scale_restart_and_down() -> None:
    deployed()
    ann = Caller()
    assert ann.post("/services/web/scale", {"target": 5}).json()["service"]["target"] == 5
    problem(ann.post("/services/web/scale", {"target": -1}), 400, "invalid_request")
    problem(ann.post("/services/web/scale"), 400, "invalid_request")
    assert "not fixed by hand" in problem(ann.post("/services/web/release"), 422, "impossible")["message"]
    assert ann.post("/services/web/restart", {"expected_version": 1}).json()["service"]["version"] == 2
    problem(ann.post("/services/web/restart", {"expected_version": 1}), 409, "conflict")
    assert ann.post("/services/web/down").json()["service"]["desired"] == "DOWN"
    problem(ann.post("/services/web/restart"), 409, "refused")
    problem(ann.post("/services/web/scale", {"target": 2}), 422, "impossible")


def test_a_number_fixed_by_hand_is_released() -> None:
    policy = "replica_policy: {min_replicas: 2, max_replicas: 4, target_qps_per_replica: 1}"
    applied(text(replicas=2).replace("replicas: 2", policy))
    ann = Caller()
    assert ann.post("/services/web/scale", {"target": 3}).json()["service"]["pinned"] is True
    assert ann.post("/services/web/release").json()["service"]["pinned"] is False


def test_a_rollout_is_steered_and_rolled_back() -> None:
    service = deployed()
    ann = Caller()
    rollout = ann.get("/services/web").json()["rollout"]["id"]
    assert ann.post("/services/web/pause", {"rollout": rollout}).json()["rollout"]["paused_at"]
    problem(ann.post("/services/web/pause", {"rollout": rollout + 1}), 409, "conflict")
    assert ann.post("/services/web/resume").json()["rollout"]["paused_at"] is None
    assert "no canary" in problem(ann.post("/services/web/promote"), 409, "refused")["message"]
    problem(ann.post("/services/web/abort"), 409, "refused")
    applied(text("web", 4))
    back = ann.post("/services/web/rollback", {"version": 1, "message": "slow", "expected_version": 2})
    assert back.json()["service"]["version"] == 3
    assert ServiceVersion.objects.get(service=service, number=3).message == "slow"
    problem(ann.post("/services/web/rollback", {"version": 9}), 409, "refused")


def test_a_replica_is_terminated() -> None:
    replica = cast.ready(deployed())
    ann = Caller()
    path = f"/services/web/replicas/{replica.number}/terminate"
    assert ann.post(path).status_code == 200
    replica.refresh_from_db()
    assert replica.retire_reason == "terminated by ann"
    problem(ann.post("/services/web/replicas/99/terminate"), 404, "not_found")


def test_an_ended_replica_can_only_be_forgotten() -> None:
    replica = cast.pending(deployed())
    operations.request_cancel(cast.operation_of(replica).pk, actor="ann")
    path = f"/services/web/replicas/{replica.number}/terminate"
    problem(Caller().post(path), 409, "refused")
    assert Caller().post(path, {"purge": True}).status_code == 200
    assert not Replica.objects.exists()


def test_operations_are_cancelled_and_tried_again() -> None:
    operation = operations.claim(cast.operation_of(cast.pending(deployed())).pk, cast.WORKER)
    assert operation is not None
    operations.wait(operation, checkpoint=None, reason="a port", seconds=300, watch=None, usage=Usage())
    ann = Caller()
    assert ann.post(f"/operations/{operation.pk}/retry").json()["status"] == "WAITING"
    assert ann.post(f"/operations/{operation.pk}/cancel").json()["status"] == "CANCELLING"
    assert Operation.objects.get().cancel_requested_at is not None
    problem(ann.post("/operations/999/cancel"), 404, "not_found")


def test_anothers_service_is_left_alone() -> None:
    ann, bob = Caller("ann"), Caller("bob")
    ann.post("/apply", {"yaml": text("web", 2)})
    for path, body in (("/apply", {"yaml": text("web", 3)}), ("/services/web/scale", {"target": 3})):
        assert "belongs to ann" in problem(bob.post(path, body), 403, "forbidden")["message"]
    services.take_down(Service.objects.get().pk, purge=False, actor="ann")
    problem(bob.post("/apply", {"yaml": text("web", 3)}), 403, "forbidden")
    assert Service.objects.get().last_version == 1
    assert Caller("adam", Role.ADMIN).post("/apply", {"yaml": text("web", 3)}).status_code == 200
    assert Service.objects.get().owner.username == "ann"  # type: ignore[union-attr]


def test_a_token_for_some_services_makes_and_changes_no_other() -> None:
    deployed("free")
    ann = Caller(services=["web"])
    assert ann.post("/apply", {"yaml": text("web", 1)}).status_code == 201
    assert "only for web" in problem(ann.post("/apply", {"yaml": text("free", 1)}), 403, "forbidden")["message"]
    problem(ann.post("/services/free/scale", {"target": 1}), 403, "forbidden")
    problem(ann.get("/services/free"), 403, "forbidden")
    assert [each["name"] for each in ann.get("/services").json()["services"]] == ["web"]
    assert {each["service"] for each in ann.get("/events").json()["events"]} == {"web"}


def test_a_token_reaches_as_far_as_its_scope() -> None:
    deployed()
    read, operate = Caller(scope=Scope.READ), Caller(scope=Scope.OPERATE)
    assert (
        "scope read; this needs operate"
        in problem(read.post("/services/web/scale", {"target": 1}), 403, "forbidden")["message"]
    )
    assert operate.post("/services/web/scale", {"target": 1}).status_code == 200
    problem(operate.post("/apply", {"yaml": text("web", 3)}), 403, "forbidden")
    problem(operate.post("/services/web/rollback"), 403, "forbidden")
