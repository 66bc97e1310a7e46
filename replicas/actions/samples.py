"""What the gateway measured, at a resolution that falls with age: each second for an hour, each minute for a week."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Max

from replicas.core import latency
from replicas.models import Sample

SECOND, MINUTE = 1, 60
FINE_AGE = timedelta(hours=1)
COARSE_AGE = timedelta(days=7)
LENGTH = timedelta(seconds=MINUTE)
COLUMNS = (
    *("at", "seconds", "requests", "in_flight", "queued", "held", "ready", "p50", "p95", "p99", "codes"),
    "replicas",
)


def keep(samples: Sequence[Sample]) -> None:
    """Store the samples of one second, in one statement."""
    Sample.objects.bulk_create(samples)


def tidy(now: datetime) -> None:
    """Make samples of the minutes that have passed, and delete what is too old. Safe to repeat and to miss."""
    until = now.replace(second=0, microsecond=0)
    newest = Sample.objects.filter(resolution=MINUTE).aggregate(newest=Max("at"))["newest"]
    since = max(newest or until - FINE_AGE, until - FINE_AGE)
    fold(since, until)
    Sample.objects.filter(resolution=SECOND, at__lt=now - FINE_AGE).delete()
    Sample.objects.filter(resolution=MINUTE, at__lt=now - COARSE_AGE).delete()


def fold(since: datetime, until: datetime) -> None:
    """One sample for each service and minute in (since, until]."""
    groups: dict[tuple[int, datetime], list[Sample]] = defaultdict(list)
    for sample in Sample.objects.filter(resolution=SECOND, at__gt=since, at__lte=until).order_by("at"):
        start = sample.at.replace(second=0, microsecond=0)
        end = start if start == sample.at else start + LENGTH
        groups[sample.service_id, end].append(sample)
    Sample.objects.bulk_create(folded(service, end, found) for (service, end), found in groups.items())


def folded(service_id: int, at: datetime, samples: Sequence[Sample]) -> Sample:
    """Sums of what was counted, means over time of what was there, and the percentiles of all requests together."""
    seconds = sum(sample.seconds for sample in samples) or 1.0
    requests = sum(sample.requests for sample in samples)
    times: dict[str, float] = {}
    for sample in samples:
        latency.add(times, sample.times or latency.guessed(sample.requests, sample.p50, sample.p95, sample.p99))
    replicas: dict[str, list[float]] = {}
    for sample in samples:
        for number, figures in sample.replicas.items():
            replicas[number] = [a + b for a, b in zip(replicas.get(number, [0, 0, 0]), figures, strict=True)]
    return Sample(
        service_id=service_id,
        resolution=MINUTE,
        at=at,
        seconds=seconds,
        requests=requests,
        in_flight=_mean(samples, "in_flight", seconds),
        queued=_mean(samples, "queued", seconds),
        held=_mean(samples, "held", seconds),
        ready=round(_mean(samples, "ready", seconds)),
        p50=latency.percentile(times, 0.50),
        p95=latency.percentile(times, 0.95),
        p99=latency.percentile(times, 0.99),
        times=times,
        codes=[sum(column) for column in zip(*(sample.codes for sample in samples), strict=True)],
        replicas={number: [a, b / len(samples), c] for number, (a, b, c) in replicas.items()},
    )


def _mean(samples: Iterable[Sample], name: str, seconds: float) -> float:
    return float(sum(getattr(sample, name) * sample.seconds for sample in samples)) / seconds


def series(service_id: int, since: datetime, resolution: int) -> dict[str, list[Any]]:
    """The samples since then as columns, oldest first."""
    rows = Sample.objects.filter(service=service_id, resolution=resolution, at__gt=since).order_by("at")
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for row in rows.values_list(*COLUMNS):
        for name, value in zip(COLUMNS, row, strict=True):
            columns[name].append(value)
    return columns
