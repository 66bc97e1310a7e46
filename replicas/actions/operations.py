"""An operation's life: queued, claimed, waiting, settled; every settle is fenced by the claim that it began with."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import F

from replicas import clock
from replicas.actions.transition import change, locked, locked_replica, record, ring_events, transition, writing
from replicas.core.backoff import LONGEST_WAIT, set_back
from replicas.core.values import Lane, OperationKind, OperationStatus, ReplicaState
from replicas.models import Operation, Replica
from replicas.models.fields import ALIVE

S = OperationStatus
NO_OWNER: dict[str, Any] = {"owner_host": "", "owner_pid": None, "owner_start": None, "heartbeat_at": None}
EARLY = timedelta(milliseconds=50)  # a delivery may come this much before its time


@dataclass(frozen=True, slots=True)
class Owner:
    """A process that works on an operation: its identity is pid and start time (clock ticks since boot) on a host."""

    host: str
    pid: int
    start: int


@dataclass(frozen=True, slots=True)
class Usage:
    """What one step cost: CPU seconds, and the peak memory of its process in bytes."""

    cpu_seconds: float = 0.0
    peak_memory: int = 0


def create(replica: Replica, kind: OperationKind, *, reason: str, actor: str, key: str | None = None) -> Operation:
    """A queued operation. The database refuses a second live one for the same replica, and a repeated key."""
    operation = Operation.objects.create(
        service=replica.service,
        replica=replica,
        kind=kind,
        lane=Lane.LONG,
        key=key,
        reason=reason,
        revision=1,
        created_at=clock.now(),
    )
    operation.log = str(settings.ROLLCALL.home / "logs" / "operations" / f"{operation.pk}.log")
    Operation.objects.filter(pk=operation.pk).update(log=operation.log)
    record(operation, "queued", reason=reason, actor=actor, new=S.QUEUED)
    return operation


def live_of(replica_id: int) -> Operation | None:
    """The replica's live operation."""
    return Operation.objects.select_related("replica", "service").filter(ALIVE, replica_id=replica_id).first()


def mark_enqueued(ids: Sequence[int]) -> None:
    """Note that the operations were handed to the queue (again)."""
    Operation.objects.filter(pk__in=ids).update(enqueued_at=clock.now(), deliveries=F("deliveries") + 1)


def hold(operation_id: int, waits_for: str) -> None:
    """Say what a queued operation waits for; nothing is written when it already says so."""
    with writing():
        operation = locked(Operation, operation_id)
        if operation is not None and operation.status == S.QUEUED and operation.waits_for != waits_for:
            change(
                operation, "held", reason=waits_for, actor="controller", old=S.QUEUED, new=S.QUEUED, waits_for=waits_for
            )


def claim(operation_id: int, owner: Owner) -> Operation | None:
    """Take the operation up. None: it is not there, has ended, has an owner, or its time has not come."""
    with writing():
        operation = locked(Operation, operation_id)
        now = clock.now()
        if operation is None or operation.status not in (S.QUEUED, S.WAITING):
            return None
        cancelling = operation.cancel_requested_at is not None
        if operation.retry_at is not None and not _due(operation.retry_at, now) and not cancelling:
            return None
        first = operation.status == S.QUEUED
        fields: dict[str, Any] = {
            "status": S.RUNNING,
            "claim": operation.claim + 1,
            "steps": operation.steps + 1,
            "owner_host": owner.host,
            "owner_pid": owner.pid,
            "owner_start": owner.start,
            "heartbeat_at": now,
            "watch": None,
            "deliveries": 0,
        }
        if operation.started_at is None:
            fields |= {"started_at": now, "attempts": 1}
        if operation.kind == OperationKind.LAUNCH and operation.replica.state == ReplicaState.PENDING:
            transition(
                operation.replica,
                "launch_begun",
                reason="a worker has taken up its launch",
                actor="job",
            )
        if first:
            won = change(
                operation, "running", reason="", actor="job", old=S.QUEUED, new=S.RUNNING, waits_for="", **fields
            )
        else:  # a poll of a wait: nothing that people see changes
            won = bool(
                Operation.objects.filter(pk=operation.pk, claim=operation.claim, status=S.WAITING).update(**fields)
            )
            for name, value in fields.items():
                setattr(operation, name, value)
        return operation if won else None


def _due(moment: datetime, now: datetime) -> bool:
    return moment <= now + EARLY or set_back(moment, now)


def beat(operation: Operation) -> bool:
    """Renew the heartbeat of a claim. False: the claim was taken away; stop."""
    return bool(
        Operation.objects.filter(pk=operation.pk, claim=operation.claim, status=S.RUNNING).update(
            heartbeat_at=clock.now()
        )
    )


def at_work(lane: Lane, host: str) -> int:
    """How many of the lane's operations are in a step on that host."""
    return Operation.objects.filter(lane=lane, status=S.RUNNING, owner_host=host).count()


def held_by_claim(operation: Operation) -> Operation | None:
    """The operation as it is now, if this claim still holds it; to be called inside `writing()`."""
    current = locked(Operation, operation.pk)
    if current is None or current.claim != operation.claim or current.status != S.RUNNING:
        return None
    return current


def told(operation: Operation) -> OperationStatus:
    """The status that the last event ended in: a poll of a wait has none, and is still the wait."""
    return S.WAITING if operation.status == S.RUNNING and operation.waits_for else S(operation.status)


def wait(
    operation: Operation,
    *,
    checkpoint: dict[str, Any] | None,
    reason: str,
    seconds: float,
    watch: Sequence[int] | None,
    usage: Usage,
    attempts: int | None = None,
    error: str | None = None,
) -> bool:
    """Store where the operation is and let it go until `seconds`, LONGEST_WAIT at most, have passed. False: the claim
    was lost."""
    with writing():
        current = held_by_claim(operation)
        if current is None:
            return False
        fields = _settled(current, usage) | {
            "status": S.WAITING,
            "checkpoint": checkpoint,
            "retry_at": clock.now() + min(timedelta(seconds=seconds), LONGEST_WAIT),
            "watch": list(watch) if watch else None,
            "orphaned": 0,
        }
        if current.waits_for == reason and attempts is None and error is None:
            return bool(Operation.objects.filter(pk=current.pk, claim=current.claim).update(**fields))
        if attempts is not None:
            fields["attempts"] = attempts
        if error is not None:
            fields["error"] = error
        return change(
            current, "waiting", reason=reason, actor="job", old=told(current), new=S.WAITING, waits_for=reason, **fields
        )


def _settled(operation: Operation, usage: Usage) -> dict[str, Any]:
    return {
        **NO_OWNER,
        "enqueued_at": None,
        "cpu_seconds": operation.cpu_seconds + usage.cpu_seconds,
        "peak_memory": max(operation.peak_memory or 0, usage.peak_memory) or None,
    }


def settle(
    operation: Operation,
    status: OperationStatus,
    trigger: str | None,
    *,
    reason: str,
    usage: Usage,
    error: str = "",
    **facts: Any,
) -> str:
    """End the operation and let `trigger` happen to its replica, both or neither.

    Answers "settled"; "stale" when the claim was lost; "refused" when the trigger does not apply to the replica any
    more (then nothing is written: the job goes on by what the replica is now).
    """
    with writing():
        current = held_by_claim(operation)
        if current is None:
            return "stale"
        replica = locked_replica(current)
        if replica is None:
            return "stale"
        if trigger is not None and not transition(replica, trigger, reason=reason, actor="job", **facts):
            return "refused"
        current.replica = replica
        change(
            current,
            status.lower(),
            reason=reason,
            actor="job",
            old=told(current),
            new=status,
            **_settled(current, usage) | _ended(status, error),
        )
        return "settled"


def _ended(status: OperationStatus, error: str) -> dict[str, Any]:
    return {
        "status": status,
        "ended_at": clock.now(),
        "error": error,
        "waits_for": "",
        "retry_at": None,
        "watch": None,
        "orphaned": 0,
    }


def end_unclaimed(operation: Operation, *, reason: str, actor: str) -> bool:
    """Cancel an operation that nobody has taken up; its replica has been ended in this transaction."""
    if operation.status == S.RUNNING:
        return mark_cancel(operation, reason=reason, actor=actor)
    return change(
        operation,
        "cancelled",
        reason=reason,
        actor=actor,
        old=operation.status,
        new=S.CANCELLED,
        cancel_reason=reason,
        **_ended(S.CANCELLED, ""),
    )


def mark_cancel(operation: Operation, *, reason: str, actor: str) -> bool:
    """Ask the operation's job to stop and clean up; it is looked at between steps."""
    if operation.cancel_requested_at is not None:
        return True
    return change(
        operation,
        "cancel_requested",
        reason=reason,
        actor=actor,
        old=told(operation),
        new=told(operation),
        cancel_reason=reason,
        cancel_requested_at=clock.now(),
    )


class Refused(Exception):
    """The wish cannot be carried out; the text says why and what to do instead."""


def request_cancel(operation_id: int, *, actor: str) -> Operation:
    """A person wants a launch stopped: its replica is retired with it. Raises Refused."""
    with writing():
        operation = locked(Operation, operation_id)
        if operation is None:
            raise Refused(f"there is no operation {operation_id}; `operations` lists them")
        if not OperationStatus(operation.status).live:
            raise Refused(
                f"operation {operation_id} has already ended ({operation.status}); there is nothing to cancel"
            )
        if operation.kind == OperationKind.DOWN:
            raise Refused(
                f"operation {operation_id} is a down; it cannot be cancelled, or its replica would be left over"
            )
        replica = locked(Replica, operation.replica_id)
        reason = f"launch cancelled by {actor}"
        if replica is not None and replica.state == ReplicaState.PENDING:
            transition(replica, "withdrawn", reason=reason, actor=actor)
            operation.replica = replica
            end_unclaimed(operation, reason=reason, actor=actor)
        else:
            if replica is not None and transition(replica, "retired", reason=reason, actor=actor):
                operation.replica = replica
            mark_cancel(operation, reason=reason, actor=actor)
        return operation


def told_cancelled(operation: Operation) -> str:
    """What follows on a cancel, for whoever asked for it."""
    service = operation.service
    return (
        f"The launch of replica {operation.replica.number} of {service.name} is being cancelled. While {service.name}"
        " wants as many replicas as now, another launch takes its place."
    )


def told_retried(operation: Operation) -> str:
    """What follows on a retry, for whoever asked for it."""
    thing = f"The {operation.kind.lower()} of replica {operation.replica.number} of {operation.service.name}"
    return f"{thing} is looked at again at once; it goes on as soon as it can."


def request_retry(operation_id: int, *, actor: str) -> Operation:
    """A person wants it now: a waiting operation goes on at once, a failed down is tried again. Raises Refused."""
    with writing():
        operation = locked(Operation, operation_id)
        if operation is None:
            raise Refused(f"there is no operation {operation_id}; `operations` lists them")
        if operation.status == S.WAITING:
            change(
                operation,
                "retry_requested",
                reason=f"retry asked for by {actor}",
                actor=actor,
                old=S.WAITING,
                new=S.WAITING,
                retry_at=clock.now(),
            )
            return operation
        replica = locked(Replica, operation.replica_id)
        if (
            operation.status == S.FAILED
            and operation.kind == OperationKind.DOWN
            and replica is not None
            and replica.state == ReplicaState.FAILED_CLEANUP
            and live_of(replica.pk) is None
        ):
            return create(replica, OperationKind.DOWN, reason=f"retry asked for by {actor}", actor=actor)
        later = operation.replica.operations.filter(pk__gt=operation_id).order_by("-pk").first()
        if operation.kind == OperationKind.DOWN and operation.status == S.FAILED and later is not None:
            raise Refused(f"operation {operation_id} was retried already: operation {later.pk} is {later.status}")
        raise Refused(
            f"operation {operation_id} is {operation.status}: only a waiting operation or a failed down can be retried;"
            " a failed launch is replaced by the controller, `restart` makes it try at once"
        )


def orphan(operation: Operation, *, reason: str) -> bool:
    """Take the operation from an owner that died or went silent, so that it is claimed again and goes on.

    `orphaned` counts such owners in a row. False: it had moved on by itself.
    """
    with writing():
        current = held_by_claim(operation)
        if current is None:
            return False
        return change(
            current,
            "orphaned",
            reason=reason,
            actor="controller",
            old=told(current),
            new=S.WAITING,
            **NO_OWNER
            | {
                "status": S.WAITING,
                "claim": current.claim + 1,
                "orphaned": current.orphaned + 1,
                "retry_at": clock.now(),
                "enqueued_at": None,
                "waits_for": reason,
            },
        )


def hasten(operation_id: int) -> None:
    """What a waiting operation waited for has happened: its next step is due now."""
    hastened = Operation.objects.filter(pk=operation_id, status=S.WAITING).update(
        retry_at=clock.now(), watch=None, enqueued_at=None
    )
    if hastened:
        ring_events()
