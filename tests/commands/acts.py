"""What happens to replicas in life, done to rows through the same doors; the service is one that `apply` made."""

from pathlib import Path

from replicas.actions import operations, replicas, services
from replicas.actions.operations import Usage
from replicas.core.values import OperationStatus, ReplicaState, ServiceStatus
from replicas.models import Operation, Replica, Service
from tests.cast import WORKER, operation_of, pending, ready, starting

__all__ = [
    "WORKER",
    "cleanup_failed",
    "down",
    "end",
    "fail",
    "operation_of",
    "pending",
    "ready",
    "report",
    "service",
    "starting",
]


def service(name: str = "web") -> Service:
    """The service as it is now."""
    return Service.objects.select_related("version").get(name=name)


def fail(replica: Replica, reason: str = "exited with code 7", lines: tuple[str, ...] = ()) -> Replica:
    """The replica's run ends by itself, and it is cleaned up."""
    assert replicas.observe(replica.pk, "exited", reason=reason, actor="controller", last_lines=list(lines))
    return down(replica)


def end(replica: Replica) -> Replica:
    """The replica is not wanted any more, and is taken down."""
    assert replicas.retire(replica.pk, "retired", reason="scaled down", actor="controller")
    return down(replica)


def down(replica: Replica) -> Replica:
    """What is shutting down ends."""
    return _settle(replica, OperationStatus.SUCCEEDED, "gone", "nothing is left")


def cleanup_failed(replica: Replica) -> Replica:
    """The replica is not wanted any more, but its down fails for good."""
    assert replicas.retire(replica.pk, "retired", reason="scaled down", actor="controller")
    return _settle(replica, OperationStatus.FAILED, "cleanup_failed", "it does not die")


def _settle(replica: Replica, status: OperationStatus, trigger: str, reason: str) -> Replica:
    begun = replicas.begin_down(replica.pk, reason="to be cleaned up", actor="controller")
    assert begun is not None
    claimed = operations.claim(begun.pk, WORKER)
    assert claimed is not None
    error = reason if status == OperationStatus.FAILED else ""
    assert (
        operations.settle(claimed, status, trigger, reason=reason, usage=Usage(0.5, 3 << 20), error=error) == "settled"
    )
    replica.refresh_from_db()
    assert ReplicaState(replica.state).ended
    return replica


def report(status: ServiceStatus, reason: str, name: str = "web") -> None:
    """The controller says what it sees."""
    found = service(name)
    live = Replica.objects.filter(service=found, ended_at=None)
    count = live.filter(state=ReplicaState.READY).count()
    services.report(found.pk, status=status, reason=reason, ready=count, live=live.count(), actor="controller")


def say(operation: Operation, text: str) -> Path:
    """Write to the operation's log."""
    path = Path(operation.log)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(text)
    return path
