"""The last minutes of every service at once, for the sparklines on the page of all services."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, Max, Sum, TextField
from django.db.models.functions import Cast, Substr

from replicas.actions import samples
from replicas.models import Sample, Service
from replicas.models.public import Row, stamp

POINT_SECONDS = 10
POINTS = 60
TENS_OF_SECONDS = 18  # so many characters of "2026-11-30 21:54:5" are the same for ten seconds
# A service without traffic has a sample each 13 s at the latest (QUIET_SECONDS and a look later).
LATEST_SECONDS = 20
RATE_SECONDS = 5


@dataclass(slots=True)
class Line:
    """One service: what the newest samples say, and its last ten minutes. None: not measured."""

    rate: float | None = None
    in_flight: float | None = None
    queued: float | None = None
    rates: list[float | None] = field(default_factory=lambda: [None] * POINTS)
    in_flights: list[float | None] = field(default_factory=lambda: [None] * POINTS)


def lines(now: datetime) -> Row:
    """`{now, from, step, services}`, in a constant number of queries.

    `services` maps each name to `{rate, in_flight, queued, rates, in_flights}`: requests per second (over the newest
    5 s or more), requests at replicas, waiting ones; and the first two as POINTS numbers, each the mean of `step`
    seconds, the first of which begin at `from`. None where nothing was measured.
    """
    begin = _floor(now) - timedelta(seconds=POINT_SECONDS * (POINTS - 1))
    found: dict[int, Line] = defaultdict(Line)
    _draw(found, begin)
    _tell(found, now)
    names = Service.objects.order_by("name").values_list("id", "name")
    return {
        "now": stamp(now),
        "from": stamp(begin),
        "step": POINT_SECONDS,
        "services": {name: _shown(found[key]) for key, name in names},
    }


def _shown(line: Line) -> Row:
    return {
        "rate": line.rate,
        "in_flight": line.in_flight,
        "queued": line.queued,
        "rates": line.rates,
        "in_flights": line.in_flights,
    }


def _floor(at: datetime) -> datetime:
    return at.replace(second=at.second // POINT_SECONDS * POINT_SECONDS, microsecond=0)


def _draw(found: dict[int, Line], begin: datetime) -> None:
    """Fill in the series. The database adds up: a busy service has 600 samples in the time."""
    of_step = Substr(Cast("at", TextField()), 1, TENS_OF_SECONDS)
    rows = (
        Sample.objects.filter(resolution=samples.SECOND, at__gte=begin)
        .annotate(of_step=of_step)
        .order_by()
        .values("service_id", "of_step")
        .annotate(
            end=Max("at"), length=Sum("seconds"), arrived=Sum("requests"), busy=Sum(F("in_flight") * F("seconds"))
        )
    )
    for row in rows:
        if row["length"] > 0:
            _put(found[row["service_id"]], begin, row)


def _put(line: Line, begin: datetime, row: dict[str, Any]) -> None:
    """Enter a step, and the earlier ones that its samples cover too and that have none of their own."""
    last = int((row["end"] - begin).total_seconds() // POINT_SECONDS)
    start = row["end"] - timedelta(seconds=row["length"])
    first = max(int((start - begin).total_seconds() // POINT_SECONDS), 0)
    rate, busy = round(row["arrived"] / row["length"], 2), round(row["busy"] / row["length"], 2)
    for at in range(min(first, last), min(last + 1, POINTS)):
        if at == last or line.rates[at] is None:
            line.rates[at], line.in_flights[at] = rate, busy


def _tell(found: dict[int, Line], now: datetime) -> None:
    """Fill in what is now, from the newest samples of each service."""
    rows = Sample.objects.filter(resolution=samples.SECOND, at__gt=now - timedelta(seconds=LATEST_SECONDS))
    of_service: dict[int, list[tuple[float, int, float, float]]] = defaultdict(list)
    for key, *figures in rows.order_by("-at").values_list(
        "service_id", "seconds", "requests", "in_flight", "queued", "held"
    ):
        seconds, requests, in_flight, queued, held = figures
        of_service[key].append((seconds, requests, in_flight, queued + held))
    for key, newest in of_service.items():
        found[key].rate = rate((seconds, requests) for seconds, requests, _, _ in newest)
        _, _, found[key].in_flight, found[key].queued = newest[0]


def rate(newest: Iterable[tuple[float, int]]) -> float:
    """Requests per second over the newest samples that cover RATE_SECONDS."""
    seconds, requests = 0.0, 0
    for length, arrived in newest:
        seconds, requests = seconds + length, requests + arrived
        if seconds >= RATE_SECONDS:
            break
    return round(requests / seconds, 2) if seconds else 0.0
