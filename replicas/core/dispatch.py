"""Which operations may be handed to the queue now, and what the others wait for."""

import heapq
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from replicas.core.backoff import retry_delay, set_back, waits_until
from replicas.core.values import OperationKind, OperationStatus
from replicas.core.views import OperationView

LONGEST_REDELIVERY = 300.0


@dataclass(frozen=True, slots=True)
class Limits:
    """How many operations may be in flight.

    `overrides` maps service ids to their own bound of launches. `redeliver_after`: seconds after which an operation
    that was handed over but not claimed is handed over again; it doubles with each delivery, up to five minutes.
    """

    max_launches: int
    max_launches_per_service: int
    max_downs: int
    redeliver_after: float = 5.0
    overrides: Mapping[int, int] = field(default_factory=dict)

    def launches_of(self, service_id: int) -> int:
        """The bound of one service."""
        return self.overrides.get(service_id, self.max_launches_per_service)


@dataclass(frozen=True, slots=True)
class Dispatch:
    """`enqueue`: operation ids in the order in which to hand them over. `holds`: what the others wait for, in words.

    `wake_at`: the next moment at which time alone would change this.
    """

    enqueue: tuple[int, ...]
    holds: Mapping[int, str]
    wake_at: datetime | None


@dataclass(frozen=True, slots=True)
class _Bounds:
    """The bounds of one kind of operation, and the word for it."""

    word: str
    in_all: int
    per_service: Mapping[int, int] | None = None


def dispatch(operations: Sequence[OperationView], limits: Limits, now: datetime) -> Dispatch:
    """Choose what is handed over now.

    In flight is what runs, what waits for its next attempt, and what was handed over. That goes on without asking for a
    place; so does a cancel. The rest takes free places, the service with the fewest in flight first, so that one with
    many launches does not starve another; within a service the oldest first. Launches and downs never wait for each
    other.
    """
    again: list[OperationView] = []
    waits: list[datetime] = []
    fresh: dict[OperationKind, list[OperationView]] = {OperationKind.LAUNCH: [], OperationKind.DOWN: []}
    busy: dict[OperationKind, Counter[int]] = {OperationKind.LAUNCH: Counter(), OperationKind.DOWN: Counter()}
    for operation in operations:
        if not operation.status.live:
            continue
        if _is_fresh(operation):
            fresh[operation.kind].append(operation)
            continue
        busy[operation.kind][operation.service_id] += 1
        if operation.status is OperationStatus.RUNNING:
            continue
        moment = _next_delivery(operation, limits, now)
        if moment is None:
            again.append(operation)
        else:
            waits.append(moment)
    downs, held_downs = _admit(fresh[OperationKind.DOWN], busy[OperationKind.DOWN], _Bounds("downs", limits.max_downs))
    services = {operation.service_id for operation in fresh[OperationKind.LAUNCH]}
    bounds = _Bounds("launches", limits.max_launches, {service: limits.launches_of(service) for service in services})
    launches, held_launches = _admit(fresh[OperationKind.LAUNCH], busy[OperationKind.LAUNCH], bounds)
    again.sort(key=_age)
    enqueue = tuple(operation.id for operation in (*again, *downs, *launches))
    return Dispatch(enqueue, held_downs | held_launches, min(waits, default=None))


def _is_fresh(operation: OperationView) -> bool:
    """Not in flight yet, and nobody wants it cancelled: it needs a place."""
    return operation.status is OperationStatus.QUEUED and operation.enqueued_at is None and not operation.cancelling


def _next_delivery(operation: OperationView, limits: Limits, now: datetime) -> datetime | None:
    """When an operation in flight without an owner is handed over (again); None when that is now."""
    enqueued_at, retry_at = operation.enqueued_at, operation.retry_at
    waiting = operation.status is OperationStatus.WAITING and retry_at is not None and not operation.cancelling
    if waiting and retry_at is not None and (enqueued_at is None or enqueued_at < retry_at):
        # A row from the future means that the clock was set back: then the moment of the retry means nothing.
        since = enqueued_at or operation.created_at
        if not set_back(retry_at, now):
            return waits_until(since, (retry_at - since).total_seconds(), now)
    if enqueued_at is None:
        return None
    patience = retry_delay(operation.deliveries, limits.redeliver_after, 2.0, LONGEST_REDELIVERY)
    return waits_until(enqueued_at, patience, now)


def _admit(
    fresh: Iterable[OperationView], busy: Counter[int], bounds: _Bounds
) -> tuple[list[OperationView], dict[int, str]]:
    """Share the free places out; `busy` counts what is in flight, by service. Returns who may go and who is held."""
    lines: dict[int, deque[OperationView]] = {}
    for operation in sorted(fresh, key=_age):
        lines.setdefault(operation.service_id, deque()).append(operation)
    admitted: list[OperationView] = []
    total = busy.total()
    turns = [(busy[service], _age(line[0]), service) for service, line in lines.items()]
    heapq.heapify(turns)
    full: list[int] = []
    while turns and total < bounds.in_all:
        in_flight, _, service = heapq.heappop(turns)
        if bounds.per_service is not None and in_flight >= bounds.per_service[service]:
            full.append(service)
            continue
        admitted.append(lines[service].popleft())
        total += 1
        if lines[service]:
            heapq.heappush(turns, (in_flight + 1, _age(lines[service][0]), service))
    return admitted, _explain(lines, set(full), total, bounds)


def _explain(
    lines: Mapping[int, Iterable[OperationView]], full: set[int], total: int, bounds: _Bounds
) -> dict[int, str]:
    """What each held operation waits for."""
    holds = {}
    for service, line in lines.items():
        text = f"{total} of {bounds.in_all} {bounds.word} in flight"
        if service in full and bounds.per_service is not None:
            own = bounds.per_service[service]
            text = f"{own} of {own} {bounds.word} of this service in flight"
        holds.update({operation.id: text for operation in line})
    return holds


def _age(operation: OperationView) -> tuple[datetime, int]:
    return operation.created_at, operation.id
