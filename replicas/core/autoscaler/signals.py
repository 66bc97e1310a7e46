"""What each signal asks for: a number of replicas that would carry what was measured."""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from replicas.core.autoscaler.values import Policy, Sample

SLACK = 0.02  # a load this little above what so many replicas carry does not ask for one more
LATENCY_STEP = 2.0  # latency tells that there are too few, not how many: it at most doubles them, and at most halves


@dataclass(frozen=True, slots=True)
class Means:
    """The measured part of a stretch of time, averaged over it. `covered`: the share of it that has samples."""

    covered: float
    qps: float | None
    inflight: float | None
    queued: float | None
    p95: float | None
    custom: float | None
    ready: int


@dataclass(frozen=True, slots=True)
class Ask:
    """How many replicas the load would fill (4.2 of them, say), and the signal that asks for the most."""

    load: float
    signal: str

    @property
    def replicas(self) -> int:
        """The same in whole replicas."""
        return whole(self.load)


def whole(load: float) -> int:
    """Replicas that carry a load."""
    return math.ceil(load - SLACK) if load > SLACK else int(load > 0)


def means(samples: Sequence[Sample], start: datetime, end: datetime) -> Means:
    """Averages over the samples that ended in (start, end], weighted by their seconds. They come in order of time."""
    first = bisect_right(samples, start, key=_ended)
    inside = samples[first : bisect_right(samples, end, key=_ended)]
    span = (end - start).total_seconds()
    return averaged(inside, span)


def averaged(inside: Sequence[Sample], span: float = 0.0) -> Means:
    """Averages over all these samples, which cover a part of `span` seconds.

    The latency is weighted by requests: a second with one slow request tells little beside one with a hundred.
    """
    return Means(
        covered=min(1.0, sum(sample.seconds for sample in inside) / span) if span > 0 else 0.0,
        qps=_mean([(s.qps, s.seconds) for s in inside]),
        inflight=_mean([(s.inflight, s.seconds) for s in inside]),
        queued=_mean([(s.queued, s.seconds) for s in inside]),
        p95=_mean([(s.p95, s.seconds * (1.0 if s.qps is None else s.qps)) for s in inside]),
        custom=_mean([(s.custom, s.seconds) for s in inside]),
        ready=max((sample.ready for sample in inside), default=0),
    )


def _ended(sample: Sample) -> datetime:
    return sample.at


def _mean(values: Sequence[tuple[float | None, float]]) -> float | None:
    known = [(value, weight) for value, weight in values if value is not None]
    total = sum(weight for _, weight in known)
    return sum(value * weight for value, weight in known) / total if total else None


def ask(policy: Policy, seen: Means, capacities: Sequence[str | None]) -> Ask | None:
    """The most that any signal asks for, before the bounds; None when nothing of it was measured.

    `capacities`: the accelerators of the replicas there are, the ones that stay longest first.
    """
    asks = []
    if policy.qps is not None and seen.qps is not None:
        asks.append(Ask(_for_qps(policy.qps, seen.qps, capacities), "requests per second"))
    if policy.inflight is not None and seen.inflight is not None:
        asks.append(Ask((seen.inflight + (seen.queued or 0.0)) / policy.inflight, "requests in flight"))
    if policy.queue is not None and seen.queued is not None:
        asks.append(Ask(seen.ready + seen.queued / policy.queue if seen.queued else 0.0, "queue"))
    if policy.p95 is not None and seen.p95 is not None:
        share = min(LATENCY_STEP, max(1 / LATENCY_STEP, seen.p95 / policy.p95))
        asks.append(Ask(seen.ready * share, "p95 latency"))
    if policy.custom is not None and seen.custom is not None:
        asks.append(Ask(seen.custom / policy.custom, "custom number"))
    return max(asks, key=lambda one: one.load, default=None)


def _for_qps(rates: float | Mapping[str, float], qps: float, capacities: Sequence[str | None]) -> float:
    """How many replicas `qps` fills. With a rate for each accelerator: those there are by theirs (SkyServe sums the
    rates of its replicas so), further ones by the lowest rate."""
    if not isinstance(rates, Mapping):
        return qps / rates
    left = qps
    for number, accelerator in enumerate(capacities):
        rate = rate_of(rates, accelerator)
        if left <= rate:
            return number + left / rate
        left -= rate
    return len(capacities) + left / min(rates.values())


def rate_of(rates: Mapping[str, float], accelerator: str | None) -> float:
    """The rate of a replica with `accelerator`, such as A100:8; one that is not named has the lowest.

    A rate for A100 counts for any number of them; A100 and A100:1 are the same.
    """
    name, _, number = (accelerator or "").partition(":")
    for key in (f"{name}:{number or 1}", accelerator, name):
        if key is not None and key in rates:
            return rates[key]
    return min(rates.values())


def history(
    policy: Policy,
    samples: Sequence[Sample],
    now: datetime,
    capacities: Sequence[str | None],
    *,
    span: float,
    window: float,
    step: float,
) -> list[float | None]:
    """What the load was, in replicas, at each `step` seconds of the last `span` seconds, the oldest first.

    Each entry is over the `window` seconds before it; None where less than half of them was measured.
    """
    asked: list[float | None] = []
    count = max(1, round(span / step))
    width = timedelta(seconds=window)
    for back in range(count - 1, -1, -1):
        end = now - timedelta(seconds=back * step)
        seen = means(samples, end - width, end)
        one = ask(policy, seen, capacities) if seen.covered >= 0.5 else None
        asked.append(one.load if one else None)
    return asked
