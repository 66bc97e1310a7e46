"""The cast of the tests of decisions: a service named web, its replicas and their operations, as plain values."""

from datetime import UTC, datetime, timedelta
from typing import Any

from replicas.core.planner import Create, Plan
from replicas.core.values import Desired, OperationKind, OperationStatus, ReplicaState
from replicas.core.views import OperationView, ReplicaView, ServiceView

S = ReplicaState
NOW = datetime(2026, 3, 14, 12, 0, 0, tzinfo=UTC)
WAS_READY = frozenset({S.READY, S.NOT_READY, S.DRAINING})


def ago(seconds: float) -> datetime:
    """A moment before NOW."""
    return NOW - timedelta(seconds=seconds)


def later(seconds: float) -> datetime:
    """A moment after NOW."""
    return NOW + timedelta(seconds=seconds)


def web(target: int = 3, version: int = 1, **fields: Any) -> ServiceView:
    """The service."""
    fields.setdefault("desired", Desired.UP)
    return ServiceView(id=1, name="web", target=target, version=version, **fields)


def operation(number: int, kind: OperationKind = OperationKind.LAUNCH, **fields: Any) -> OperationView:
    """A live operation of the replica with that number."""
    fields.setdefault("status", OperationStatus.QUEUED)
    fields.setdefault("service_id", 1)
    fields.setdefault("created_at", ago(60))
    fields.setdefault("replica_id", number)
    return OperationView(id=fields.pop("id", 1000 + number), kind=kind, **fields)


def replica(number: int, state: ReplicaState = S.READY, version: int = 1, **fields: Any) -> ReplicaView:
    """A replica as it usually is in that state; its id is its number."""
    fields.setdefault("created_at", ago(3600))
    fields.setdefault("state_since", ago(60))
    if state in WAS_READY:
        fields.setdefault("ready_at", ago(1800))
    if state is S.READY:
        fields.setdefault("probed_at", NOW)
    if state in (S.PENDING, S.PROVISIONING):
        fields.setdefault("operation", operation(number))
    if state.ended:
        fields.setdefault("ended_at", fields["state_since"])
        if state is not S.FAILED_CLEANUP:
            fields.setdefault("outcome", state)
    return ReplicaView(id=number, number=number, version=version, state=state, **fields)


def ready(*numbers: int, version: int = 1) -> list[ReplicaView]:
    """READY replicas with these numbers."""
    return [replica(number, S.READY, version) for number in numbers]


def doing(decided: Plan) -> list[tuple[str, int]]:
    """What a plan does to whom, without the reasons: ("Drain", 3); a Create is told by its version."""
    return [
        (type(action).__name__, action.version if isinstance(action, Create) else action.replica_id)
        for action in decided.actions
    ]
