"""The cast of the tests over rows: services, replicas and workers, made through the same doors as in life."""

import hashlib
import json
import uuid
from typing import Any

from replicas import clock
from replicas.actions import operations, replicas, services
from replicas.actions.operations import Owner, Usage
from replicas.core.values import Lane, OperationKind, OperationStatus, ReplicaState, ServiceStatus
from replicas.models import Operation, Replica, Service

WORKER = Owner("test-host", 4711, 1234567)
OTHER_WORKER = Owner("test-host", 4712, 1234999)


def spec(run: str = "sleep 60", **more: Any) -> dict[str, Any]:
    """The JSON form of a small spec."""
    usual = {"readiness_probe": {"path": "/"}, "replicas": 1}
    section = {"rollout": {"min_ready_seconds": 0}} | more.pop("service", usual)
    return {"provider": "fake", "run": run, "envs": {}, "service": section, **more}


def draft(name: str = "web", target: int = 1, **more: Any) -> services.Draft:
    """A draft of a service with that spec."""
    body = {"name": name} | spec(**more)
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    process = {key: value for key, value in body.items() if key not in {"name", "service"}}
    return services.Draft(
        name=name,
        text=json.dumps(body),
        spec=body,
        digest=digest,
        process_digest=hashlib.sha256(json.dumps(process, sort_keys=True).encode()).hexdigest(),
        target=target,
    )


def service(name: str = "web", target: int = 1, **more: Any) -> Service:
    """An applied service without replicas."""
    return services.apply(draft(name, target, **more), actor="ann").service


def pending(owner: Service, version: int | None = None, replaces: int | None = None) -> Replica:
    """A PENDING replica with its queued launch."""
    number = version or (owner.version.number if owner.version else 1)
    made = replicas.create(owner.pk, number, replaces=replaces, restarts=0, reason="wanted", actor="controller")
    assert made is not None
    return made


def operation_of(replica: Replica) -> Operation:
    """The replica's newest operation."""
    return Operation.objects.filter(replica=replica).latest("id")


def starting(owner: Service) -> Replica:
    """A replica whose launch a worker has finished."""
    replica = pending(owner)
    claimed = operations.claim(operation_of(replica).pk, WORKER)
    assert claimed is not None
    done = operations.settle(
        claimed,
        OperationStatus.SUCCEEDED,
        "launched",
        reason="running",
        usage=Usage(),
        handle={"uid": replica.uid},
        url=f"fake://{replica.uid}",
        pid=None,
        log="",
    )
    assert done == "settled"
    replica.refresh_from_db()
    return replica


def ready(owner: Service) -> Replica:
    """A replica that a probe has found ready."""
    replica = starting(owner)
    assert replicas.observe(replica.pk, "probe_passed", reason="HTTP 200", actor="probe")
    replica.refresh_from_db()
    return replica


def in_bulk(owner: Service, count: int, state: ReplicaState) -> list[Replica]:
    """Very many replicas at once, past the doors: no event tells of them, and those that are PENDING have a launch."""
    owner.refresh_from_db()
    assert owner.version is not None
    now, first = clock.now(), owner.last_number + 1
    usual: dict[str, Any] = {"service": owner, "created_at": now, "revision": 1}
    version = {"version": owner.version, "version_number": owner.version.number, "provider": "fake"}
    times = {"state_since": now, "ready_at": now if state is ReplicaState.READY else None}
    numbers = range(first, first + count)
    rows = [Replica(number=n, uid=uuid.uuid4().hex, state=state, **version, **times, **usual) for n in numbers]
    Replica.objects.bulk_create(rows, batch_size=200)
    Service.objects.filter(pk=owner.pk).update(last_number=numbers[-1])
    made = list(Replica.objects.filter(service=owner, number__gte=first).order_by("number"))
    if state is ReplicaState.PENDING:
        launches = [Operation(replica=each, kind=OperationKind.LAUNCH, lane=Lane.LONG, **usual) for each in made]
        Operation.objects.bulk_create(launches, batch_size=200)
    return made


def fails(service: Service, reason: str = "exited with code 7") -> None:
    """The controller reports that the service has failed."""
    assert services.report(service.pk, status=ServiceStatus.FAILED, reason=reason, ready=0, live=0, actor="controller")
