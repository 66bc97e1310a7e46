"""Compare-and-set of any row together with its event; the one place where a replica's state changes."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from django.conf import settings
from django.db import connection, models, transaction

from replicas import bell, clock
from replicas.actions import origin
from replicas.core import lifecycle
from replicas.core.values import ReplicaState
from replicas.models import Event, Operation, Replica, Rollout, Service
from replicas.models.public import operation_row, replica_row, rollout_row, service_row

OUTBOX_LOCK = 0x526F6C6C  # an advisory lock: events become visible in the order of their ids
M = TypeVar("M", Service, Replica, Operation, Rollout)
ROWS: dict[type[models.Model], tuple[str, Any]] = {
    Service: ("service", service_row),
    Replica: ("replica", replica_row),
    Operation: ("operation", operation_row),
    Rollout: ("rollout", rollout_row),
}


_inside: ContextVar[bool] = ContextVar("inside a transaction of writing()", default=False)


@contextmanager
def writing() -> Iterator[None]:
    """One transaction; whoever listens for events is told, once, when it is committed.

    Those who write take turns, on PostgreSQL as on SQLite: the lock that keeps the events in order comes before those
    of rows. Taken after them, it would close a circle with a writer that has written an event and wants the same row.
    """
    if _inside.get():  # who began it tells
        with transaction.atomic():
            yield
        return
    token = _inside.set(True)
    try:
        with transaction.atomic():
            transaction.on_commit(ring_events)
            take_turn()
            yield
    finally:
        _inside.reset(token)


def take_turn() -> None:
    """Wait until no other transaction may write events."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [OUTBOX_LOCK])


def ring_events() -> None:
    """Tell the controller and the web processes that there is something new."""
    bell.ring(settings.ROLLCALL.run, bell.EVENTS)


def locked(model: type[M], pk: int) -> M | None:
    """The row as it is now, held until the transaction ends; None if there is none."""
    query: Any = (
        model._default_manager.select_for_update(of=("self",))
        if connection.features.has_select_for_update_of
        else model._default_manager
    )
    related = {
        Operation: ("replica", "service"),
        Replica: ("service",),
        Rollout: ("service",),
        Service: ("version", "owner"),
    }[model]
    large = ("version__text", "version__spec", "version__sealed") if model is Service else ()  # and rarely looked at
    row: M | None = next(iter(query.select_related(*related).defer(*large).filter(pk=pk).order_by()), None)
    if isinstance(row, Operation):
        row.replica.service = row.service  # they are the same: this spares a query
    return row


def locked_replica(operation: Operation) -> Replica | None:
    """The replica of an operation that `locked` gave in this transaction, held as well; None if there is none.

    Where a transaction that writes is alone with the database (SQLite), that has been read with the operation.
    """
    if connection.features.has_select_for_update:
        return locked(Replica, operation.replica_id)
    return operation.replica


def change(
    row: M,
    trigger: str,
    *,
    reason: str,
    actor: str,
    old: str = "",
    new: str = "",
    columns: Mapping[str, Any] | None = None,
    **fields: Any,
) -> bool:
    """Set `fields` and `columns` if the row is still at the revision that was read, and write the event.

    False: the race is lost. `reason` is the event's; a row's own reason is among `columns`.
    """
    fields |= columns or {}
    written = (
        type(row)._default_manager.filter(pk=row.pk, revision=row.revision).update(revision=row.revision + 1, **fields)
    )
    if not written:
        return False
    for name, value in fields.items():
        setattr(row, name, value)
    row.revision += 1
    record(row, trigger, reason=reason, actor=actor, old=old, new=new)
    return True


def record(row: M, trigger: str, *, reason: str, actor: str, old: str = "", new: str = "") -> Event:
    """Write the event of a change that this transaction has just made."""
    kind, public = ROWS[type(row)]
    service = row if isinstance(row, Service) else row.service
    number = row.number if isinstance(row, Replica) else row.replica.number if isinstance(row, Operation) else None
    return emit(
        service,
        kind,
        row.pk,
        row.revision,
        trigger,
        public(row),
        reason=reason,
        actor=actor,
        old=old,
        new=new,
        number=number,
    )


def emit(
    service: Service | None,
    kind: str,
    object_id: int,
    revision: int,
    trigger: str,
    data: dict[str, Any],
    *,
    reason: str,
    actor: str,
    old: str = "",
    new: str = "",
    number: int | None = None,
) -> Event:
    """Insert one event row, in commit order; `service` None for what is about none.

    Raises PermissionDenied where the service is no business of `origin`.
    """
    if not _inside.get():
        take_turn()
    by = origin.current()
    if service is not None:
        by.check(service)
    return Event.objects.create(
        at=clock.now(),
        service=service if service and service.pk else None,
        service_name=service.name if service else "",
        kind=kind,
        object_id=object_id,
        number=number,
        revision=revision,
        trigger=trigger,
        old=old,
        new=new,
        reason=reason,
        actor=actor,
        source=by.source,
        address=by.address,
        token=by.token,
        data=data,
    )


def transition(replica: Replica, trigger: str, *, reason: str, actor: str, **facts: Any) -> bool:
    """Let `trigger` happen to the replica; `facts` are further columns (handle, url, ...).

    False where the trigger does not apply to the state any more, or where somebody else was first.
    """
    step = lifecycle.step(
        ReplicaState(replica.state), ReplicaState(replica.outcome) if replica.outcome else None, trigger
    )
    if step is None:
        return False
    now = clock.now()
    fields: dict[str, Any] = {"state_since": now, "reason": reason, **facts}
    if step.state is ReplicaState.PROVISIONING:
        fields["provisioning_at"] = now
    elif step.state is ReplicaState.STARTING:
        fields["launched_at"] = now
    elif step.state is ReplicaState.READY and replica.ready_at is None:
        fields["ready_at"] = now
    elif step.state.ended:
        fields["ended_at"] = now
    if step.state.ended or step.state is ReplicaState.SHUTTING_DOWN:
        fields["reason"] = why_it_ends(replica, step.state, reason)
    return change(
        replica,
        trigger,
        reason=reason,
        actor=actor,
        old=replica.state,
        new=step.state,
        columns={"state": step.state, "outcome": step.outcome or "", **fields},
    )


def why_it_ends(replica: Replica, state: ReplicaState, reason: str) -> str:
    """The reason that stays on the row: the first one that was given for its end; a failed clean-up is added to it."""
    if not replica.outcome or not replica.reason:
        return reason
    if state is ReplicaState.FAILED_CLEANUP:
        return f"{replica.reason}; {reason}"
    return replica.reason
