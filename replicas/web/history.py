"""What the plots of a service are drawn from: its traffic in even steps, its replicas, the autoscaler's decisions."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from django.db.models import Max

from replicas.actions import samples
from replicas.actions.scaling import DECISION
from replicas.core import latency
from replicas.core.values import Desired
from replicas.models import Event, Replica, Sample, Service
from replicas.models.fields import ALIVE
from replicas.models.public import Row, stamp
from replicas.web import usage
from replicas.web.outbox import newest
from replicas.web.recent import LATEST_SECONDS, rate

DECISIONS_MOST = 200
SHARE_AGE = timedelta(minutes=1)
MEASURED = ("at", "seconds", "requests", "in_flight", "queued", "held", "p50", "p95", "p99", "times", "codes")
SHARES = (0.50, 0.95, 0.99)
LEVEL = ("at", "data__ready", "data__target", "data__desired")


@dataclass(slots=True)
class Step:
    """Samples of one step, added up. Percentiles are those of all its requests together, within 6 %."""

    seconds: float = 0.0
    requests: int = 0
    in_flight: float = 0.0  # times seconds, as what waits
    queued: float = 0.0
    times: dict[str, float] = field(default_factory=dict)
    exact: tuple[float | None, ...] | None = None  # the percentiles of the only sample so far
    codes: list[int] = field(default_factory=lambda: [0] * 5)

    def add(self, row: tuple[Any, ...]) -> None:
        """One more sample, as MEASURED has it."""
        _, seconds, requests, in_flight, queued, held, p50, p95, p99, times, codes = row
        self.seconds += seconds
        self.requests += requests
        self.in_flight += in_flight * seconds
        self.queued += (queued + held) * seconds
        if p50 is not None:
            self.exact = None if self.times else (p50, p95, p99)
            latency.add(self.times, times or latency.guessed(requests, p50, p95, p99))
        for at, number in enumerate(codes):
            self.codes[at] += number

    def row(self, at: datetime) -> Row:
        """What the step was, as a column has it."""
        seconds = self.seconds or 1.0
        p50, p95, p99 = self.exact or [latency.percentile(self.times, share) for share in SHARES]
        return {
            "at": stamp(at),
            "seconds": round(self.seconds, 3),
            "requests": self.requests,
            "in_flight": round(self.in_flight / seconds, 3),
            "queued": round(self.queued / seconds, 3),
            "p50": p50,
            "p95": p95,
            "p99": p99,
            "codes": self.codes,
        }


COLUMNS = ("at", "seconds", "requests", "in_flight", "queued", "p50", "p95", "p99", "codes")


def measured(service_id: int, since: datetime, step: int, *, fine: bool) -> dict[str, list[Any]]:
    """Columns (COLUMNS) of what was measured since then, one row for each `step` seconds that has any.

    Steps end at multiples of `step` since the epoch; `at` is when the newest sample of a step was taken, `queued` has
    those that were held too. `fine`: from samples of a second; else from those of a minute and, for the time after the
    newest of them, of a second.
    """
    rows = list(_samples(service_id, samples.SECOND if fine else samples.MINUTE, since))
    if not fine:
        rows += _samples(service_id, samples.SECOND, rows[-1][0] if rows else since)
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for _, group in groupby(rows, key=lambda row: -(-row[0].timestamp() // step)):
        made = Step()
        for row in group:
            made.add(row)
        for name, value in made.row(row[0]).items():
            columns[name].append(value)
    return columns


def _samples(service_id: int, resolution: int, since: datetime) -> Iterator[tuple[Any, ...]]:
    rows = Sample.objects.filter(service=service_id, resolution=resolution, at__gt=since).order_by("at")
    yield from rows.values_list(*MEASURED)


def happened(service_id: int, since: datetime, step: int, after: int | None) -> Row:
    """`{cursor, levels, decisions}`: what events tell, of the time since then or, with `after`, of newer events.

    `levels`: `[at, ready, wanted]` from then on, beginning with what was when the time began; of changes within one
    step the lowest `ready` and the last one. `decisions`: `{id, at, from, target, reason, inputs}`, oldest first, the
    newest DECISIONS_MOST.
    """
    cursor = newest()
    events = Event.objects.filter(service=service_id, pk__lte=cursor)
    fresh = events.filter(at__gt=since) if after is None else events.filter(pk__gt=after)
    told = fresh.filter(kind="service").order_by("id").values_list(*LEVEL)
    before = (
        events.filter(kind="service", at__lte=since).order_by("-id").values_list(*LEVEL)[:1] if after is None else ()
    )
    decided = fresh.filter(kind=DECISION).order_by("-id")[:DECISIONS_MOST]
    levels = [_level(row) for row in [*before, *told.iterator(chunk_size=1000)]]
    if after is None and not levels:
        levels = _unrecorded(service_id, since)
    return {
        "cursor": cursor,
        "levels": [[stamp(at), *level] for at, *level in thinned(levels, step)],
        "decisions": [_decision(event) for event in reversed(decided)],
    }


def _unrecorded(service_id: int, since: datetime) -> list[tuple[datetime, int, int]]:
    """The level of a service whose events were pruned: that of now, from when it can last have changed."""
    row = Service.objects.filter(pk=service_id).values_list("updated_at", "ready", "target", "desired").first()
    if row is None:
        return []
    last = Replica.objects.filter(ALIVE, service=service_id).aggregate(at=Max("ready_at"))["at"]
    return [_level((max(since, row[0], last or since), *row[1:]))]


def _level(row: tuple[Any, ...]) -> tuple[datetime, int, int]:
    at, ready, target, desired = row
    return at, ready or 0, (target or 0) if desired == Desired.UP else 0


def thinned(levels: Iterable[tuple[datetime, int, int]], step: int) -> Iterator[tuple[datetime, int, int]]:
    """Without what repeats the one before, and of each step only the lowest `ready` and the last."""
    last: tuple[int, int] | None = None
    for _, group in groupby(levels, key=lambda level: level[0].timestamp() // step):
        found = list(group)
        for level in (min(found, key=lambda each: each[1]), found[-1]):
            if level[1:] != last:
                last = level[1:]
                yield level


def _decision(event: Event) -> Row:
    told = event.data
    return {
        "id": event.pk,
        "at": stamp(event.at),
        "from": told["from"],
        "target": told["target"],
        "reason": event.reason,
        "inputs": told["inputs"],
    }


def shares(service_id: int, now: datetime) -> Row:
    """`{number: {rate, in_flight, failed}}` of the replicas in traffic: requests per second over the newest 5 s or
    more, requests now, and those that it failed in the last minute. Empty where nothing was measured of late."""
    rows = list(
        Sample.objects.filter(service=service_id, resolution=samples.SECOND, at__gt=now - SHARE_AGE)
        .order_by("-at")
        .values_list("at", "seconds", "replicas")
    )
    if not rows or now - rows[0][0] > timedelta(seconds=LATEST_SECONDS):
        return {}
    return {
        number: {
            "rate": rate((seconds, found.get(number, (0,))[0]) for _, seconds, found in rows),
            "in_flight": newest_of[1],
            "failed": sum(found.get(number, (0, 0, 0))[2] for _, _, found in rows),
        }
        for number, newest_of in rows[0][2].items()
    }


def plots(service_id: int, now: datetime, length: int, step: int, after: datetime | None, cursor: int | None) -> Row:
    """Everything for the plots of the last `length` seconds; with `after` and `cursor` only what is newer."""
    since = now - timedelta(seconds=length)
    fine = timedelta(seconds=length) <= samples.FINE_AGE
    return {
        "now": stamp(now),
        "service": service_id,
        "range": length,
        "step": step,
        "replicas": shares(service_id, now),
        "usage": usage.of(service_id),
        "columns": measured(service_id, max(since, after or since), step, fine=fine),
        **happened(service_id, since, step, cursor),
    }
