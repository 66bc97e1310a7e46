"""Which log is meant: from the rows of a replica or an operation to a file. Paths come from rows alone."""

from typing import NamedTuple

from replicas.core.values import ENDS, LIVE_OPERATIONS, OperationKind
from replicas.models import Operation, Replica

RUN, LAUNCH, OPERATION = "run", "launch", "operation"


class Key(NamedTuple):
    """A log by what it belongs to: the `run` or `launch` log of a replica, or the log of an `operation`, by its id."""

    which: str
    id: int


class Place(NamedTuple):
    """Where a log is ("" while that is not known), whether its writer has ended, and a name for people."""

    path: str
    ended: bool
    name: str


def place(key: Key) -> Place | None:
    """Where the log is; None where there is no such replica or operation."""
    if key.which == OPERATION:
        return _of_operation(Operation.objects.select_related("service", "replica").filter(pk=key.id).first())
    replica = Replica.objects.select_related("service").filter(pk=key.id).first()
    if replica is None:
        return None
    if key.which == RUN:
        return Place(replica.log, replica.state in ENDS, f"{replica.service.name}-{replica.number}-run")
    launches = Operation.objects.select_related("service", "replica").filter(replica=replica, kind=OperationKind.LAUNCH)
    found = _of_operation(launches.exclude(log="").order_by("-pk").first())
    return found or Place("", replica.state in ENDS, f"{replica.service.name}-{replica.number}-launch")


def places(keys: list[Key]) -> list[Place | None]:
    """`place` of each."""
    return [place(key) for key in keys]


def _of_operation(operation: Operation | None) -> Place | None:
    if operation is None:
        return None
    name = f"{operation.service.name}-{operation.replica.number}-{operation.kind.lower()}"
    return Place(operation.log, operation.status not in LIVE_OPERATIONS, name)
