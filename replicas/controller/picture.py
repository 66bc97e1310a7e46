"""What the controller has read of replicas and operations, kept from one look to the next.

There may be very many of both, and little of it changes between two looks: so only that is read again. Each change of a
row has its event, which names the row; the few columns that change without one are those of operations in flight, and
these are read each time.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Q

from replicas.core.values import OperationKind, OperationStatus, ReplicaState
from replicas.core.views import OperationView, ReplicaView
from replicas.jobs.probing import newest_event
from replicas.models import Event, Operation, Replica
from replicas.models.fields import ALIVE

BLOCK = 500  # ids in one query
COLUMNS = (
    "id", "service_id", "number", "version_number", "state", "state_since", "created_at", "outcome", "launched_at",
    "ready_at", "ended_at", "restarts", "replaces", "retire_reason", "reason", "provider", "handle", "purge",
    "adopted_at", "probe_at", "probe_ok", "probe_detail", "spot",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Seen:
    """A replica's facts that only the controller's own parts need."""

    id: int
    provider: str
    state: ReplicaState
    handle: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Owned:
    """Who works on a live operation, and what a waiting one waits for."""

    id: int
    status: OperationStatus
    host: str
    pid: int | None
    start: int | None
    claim: int
    heartbeat_at: datetime | None
    watch: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Living:
    """A live replica, without its operation. `process`: the process digest of its version."""

    service_id: int
    process: str
    view: ReplicaView
    seen: Seen


@dataclass(frozen=True, slots=True)
class Work:
    """A live operation. `waits_for`: what its row says of that."""

    view: OperationView
    owned: Owned
    waits_for: str

    @property
    def in_flight(self) -> bool:
        """It was handed over, or is past that: its row may change without an event."""
        return self.view.enqueued_at is not None or self.view.status is not OperationStatus.QUEUED


@dataclass(slots=True)
class Picture:
    """All live replicas and operations by their ids, as they were at the event `cursor` or later."""

    cursor: int = 0
    replicas: dict[int, Living] = field(default_factory=dict)
    operations: dict[int, Work] = field(default_factory=dict)

    def forget(self) -> None:
        """Read everything at the next look."""
        self.cursor = 0

    def look(self) -> None:
        """Bring it up to date."""
        changed = self._changed()
        if changed is None:  # operations first: one that a replica has begun meanwhile is seen at the next look
            self.operations = {work.view.id: work for work in _works(Q())}
            self.replicas = {living.view.id: living for living in _living(Q())}
            return
        self._look_at_operations(changed["operation"])
        for ids in blocks(changed["replica"]):
            found = {living.view.id: living for living in _living(Q(pk__in=ids))}
            self.replicas.update(found)
            for gone in set(ids) - found.keys():
                self.replicas.pop(gone, None)

    def _changed(self) -> dict[str, set[int]] | None:
        """The ids of what has changed since the last look, by kind of row; None where that cannot be told."""
        events = Event.objects.filter(id__gte=self.cursor).order_by("id").values_list("id", "kind", "object_id")
        news = list(events) if self.cursor else []
        if not news or news[0][0] != self.cursor:  # nothing was read yet, or events were pruned meanwhile
            self.cursor = newest_event()
            return None
        self.cursor = news[-1][0]
        changed: dict[str, set[int]] = defaultdict(set)
        for _, kind, number in news[1:]:
            changed[kind].add(number)
        return changed

    def _look_at_operations(self, changed: set[int]) -> None:
        known = self.operations
        doubtful = changed | {number for number, work in known.items() if work.in_flight}
        found = {work.view.id: work for work in _works(~Q(status=OperationStatus.QUEUED, enqueued_at=None))}
        for ids in blocks(doubtful - found.keys()):
            found |= {work.view.id: work for work in _works(Q(pk__in=ids))}
        same = {number: work for number, work in known.items() if number not in doubtful}
        self.operations = dict(sorted((same | found).items()))


def blocks(ids: Iterable[int]) -> Iterator[list[int]]:
    """The ids in parts that fit into a query."""
    ordered = sorted(ids)
    for start in range(0, len(ordered), BLOCK):
        yield ordered[start : start + BLOCK]


def _living(which: Q) -> Iterator[Living]:
    for row in Replica.objects.filter(ALIVE, which).order_by().values(*COLUMNS, "version__process_digest"):
        seen = Seen(row["id"], row["provider"], ReplicaState(row["state"]), row["handle"])
        yield Living(row["service_id"], row["version__process_digest"], view_of(row), seen)


def _works(which: Q) -> Iterator[Work]:
    for row in Operation.objects.filter(ALIVE, which).order_by("id"):
        view = OperationView(
            id=row.pk,
            kind=OperationKind(row.kind),
            status=OperationStatus(row.status),
            service_id=row.service_id,
            replica_id=row.replica_id,
            created_at=row.created_at,
            enqueued_at=row.enqueued_at,
            retry_at=row.retry_at,
            cancelling=row.cancel_requested_at is not None,
            deliveries=row.deliveries,
        )
        watch = (row.watch[0], row.watch[1]) if row.watch else None
        owned = Owned(
            row.pk, view.status, row.owner_host, row.owner_pid, row.owner_start, row.claim, row.heartbeat_at, watch
        )
        yield Work(view, owned, row.waits_for)


def view_of(row: dict[str, Any]) -> ReplicaView:
    """A replica's row (its COLUMNS) as decisions see it, without its operation."""
    return ReplicaView(
        id=row["id"],
        number=row["number"],
        version=row["version_number"],
        state=ReplicaState(row["state"]),
        state_since=row["state_since"],
        created_at=row["created_at"],
        outcome=ReplicaState(row["outcome"]) if row["outcome"] else None,
        launched_at=row["launched_at"],
        ready_at=row["ready_at"],
        ended_at=row["ended_at"],
        restarts=row["restarts"],
        replaces=row["replaces"],
        retire_reason=row["retire_reason"] or None,
        reason=row["reason"],
        adopted_at=row["adopted_at"],
        probed_at=row["probe_at"] if row["probe_ok"] else None,
        probe_failure=row["probe_detail"] if row["probe_ok"] is False else "",
        spot=row["spot"],
    )
