"""The rule: slow to follow, quick to help.

A stretch of STABLE seconds says what the load asks for. More replicas come when most of the last
`upscale_delay_seconds` asked for more, fewer when nearly all of the last `downscale_delay_seconds` asked for fewer;
both look at a share of the time, so that one sample against the trend changes nothing. A burst (PANIC seconds ask for
twice what there is) is answered at once, and nothing is taken away until it has been over for STABLE seconds, as
Knative's autoscaler does ("Configuring concurrency", stable and panic windows). From nothing, the first request starts
one. What is not measured changes nothing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from replicas.core.autoscaler.signals import Ask, Means, ask, history, means
from replicas.core.autoscaler.values import Decision, Memory, Policy, Sample
from replicas.core.backoff import CLOCK_STEP
from replicas.core.wording import at, seconds, some

STABLE = 60.0  # seconds
PANIC = 6.0  # a tenth of it, as Knative
PANIC_RATIO = 2.0  # of what is asked for to what there is
STEP = 10.0  # seconds between two entries of the history
UP_SHARE = 0.8  # of the delay must have asked for more
DOWN_SHARE = 0.9  # of the delay must have asked for fewer
STALE = 15.0  # seconds without a sample after which nothing is decided


@dataclass(frozen=True, slots=True)
class Looks:
    """What the load asks for over the short and the long stretch."""

    panic: Ask | None
    stable: Ask | None
    seen: Means


def decide(
    policy: Policy,
    samples: Sequence[Sample],
    memory: Memory,
    now: datetime,
    *,
    target: int,
    capacities: Sequence[str | None] = (),
    pinned: bool = False,
) -> Decision:
    """How many replicas there should be.

    `samples` in order of time reach back as far as the longer delay where there are so many. `target`: how many are
    wanted now, which counts when `memory` has no target of its own (the first time, or scaled by hand since).
    `capacities`: accelerators of the live replicas, see `signals.ask`. `pinned`: somebody fixed the target by hand.
    """
    memory = _believe(memory, now)
    base = memory.target if memory.target is not None else target
    bounded = _bounded(policy, base)
    if pinned:
        kept = Memory(target=target)
        return Decision(target, kept, f"{some(target)} fixed by hand, until that is released")
    if bounded != base:
        bound = f"at least {policy.minimum}" if bounded > base else f"at most {policy.maximum}"
        return _change(policy, memory, base, bounded, f"{bound} wanted", {})
    if not policy.measured:
        return Decision(base, replace(memory, target=base), "no signal moves the target")
    if not samples or (now - samples[-1].at).total_seconds() > STALE:
        since = f" since {at(samples[-1].at)}" if samples else ""
        return Decision(base, replace(memory, target=base), f"nothing was measured{since}: the target is held")
    looks = _look(policy, samples, now, capacities)
    return _by_load(policy, samples, memory, now, base, looks)


def _look(policy: Policy, samples: Sequence[Sample], now: datetime, capacities: Sequence[str | None]) -> Looks:
    short = means(samples, now - timedelta(seconds=PANIC), now)
    long = means(samples, now - timedelta(seconds=STABLE), now)
    return Looks(ask(policy, short, capacities), ask(policy, long, capacities), long)


def _by_load(
    policy: Policy, samples: Sequence[Sample], memory: Memory, now: datetime, base: int, looks: Looks
) -> Decision:
    inputs = _inputs(looks)
    urgent = looks.panic
    wanted = _bounded(policy, urgent.replicas + policy.overprovision) if urgent and urgent.replicas else 0
    if urgent and base == 0 and wanted > 0:
        return _change(policy, _panicked(memory, now), base, wanted, "requests came while there was none", inputs)
    if urgent and wanted > base and urgent.replicas >= PANIC_RATIO * max(1, base - policy.overprovision):
        why = f"a burst: {urgent.signal} of the last {seconds(PANIC)} ask for {urgent.replicas}"
        return _change(policy, _panicked(memory, now), base, wanted, why, inputs)
    up = _up(policy, samples, now, base, looks)
    if up is not None:
        which = looks.stable.signal if looks.stable else "load"
        why = f"{which} asked for more in most of the last {seconds(policy.upscale_delay)}"
        return _change(policy, memory, base, up, why, inputs)
    if memory.panic_until is not None and now < memory.panic_until:
        return Decision(
            base, memory, f"a burst is on: nothing is taken away before {at(memory.panic_until)}", False, inputs
        )
    memory = replace(memory, target=base, panic_since=None, panic_until=None)
    down = _down(policy, samples, now, base)
    if down is not None:
        why = f"the load asked for at most {down} in nearly all of the last {seconds(policy.downscale_delay)}"
        return _change(policy, memory, base, down, why, inputs)
    return Decision(base, memory, _holding(policy, base, looks), False, inputs)


def _up(policy: Policy, samples: Sequence[Sample], now: datetime, base: int, looks: Looks) -> int | None:
    """The target that most of the upscale delay asked for, or what is asked for now if that is more; None: no more."""
    if looks.stable is None or _wanted(policy, looks.stable.replicas) <= base:
        return None
    lasting = _quantile(_history(policy, samples, now, policy.upscale_delay), 1 - UP_SHARE, full=UP_SHARE)
    if lasting is None or _wanted(policy, lasting) <= base:
        return None
    return max(_wanted(policy, lasting), _wanted(policy, looks.stable.replicas))


def _down(policy: Policy, samples: Sequence[Sample], now: datetime, base: int) -> int | None:
    """The target that was enough for nearly all of the downscale delay; None: no fewer."""
    enough = _quantile(_history(policy, samples, now, policy.downscale_delay), DOWN_SHARE, full=DOWN_SHARE)
    if enough is None or _wanted(policy, enough) >= base:
        return None
    return _wanted(policy, enough)


def _history(policy: Policy, samples: Sequence[Sample], now: datetime, delay: float) -> list[int | None]:
    return history(policy, samples, now, max(delay, STEP), STABLE, STEP)


def _quantile(asked: Sequence[int | None], share: float, *, full: float) -> int | None:
    """The number that `share` of the entries do not exceed; None where less than `full` of them are known."""
    known = sorted(one for one in asked if one is not None)
    if not known or len(known) < full * len(asked):
        return None
    return known[min(len(known) - 1, math.ceil(share * len(known)) - 1 if share > 0 else 0)]


def _wanted(policy: Policy, asked: int) -> int:
    """What is asked for, with what is provided beyond it, within the bounds. Nothing asked for needs nothing beyond."""
    return _bounded(policy, asked + policy.overprovision if asked else 0)


def _bounded(policy: Policy, target: int) -> int:
    return max(policy.minimum, min(policy.maximum, target))


def _panicked(memory: Memory, now: datetime) -> Memory:
    return replace(memory, panic_since=memory.panic_since or now, panic_until=now + timedelta(seconds=STABLE))


def _believe(memory: Memory, now: datetime) -> Memory:
    """A burst that began in the future (the clock was set back) is forgotten: it would hold for too long."""
    if memory.panic_since is not None and memory.panic_since > now + CLOCK_STEP:
        return replace(memory, panic_since=None, panic_until=None)
    return memory


def _change(
    policy: Policy, memory: Memory, base: int, target: int, why: str, inputs: dict[str, float | int | None]
) -> Decision:
    over = f", {policy.overprovision} of them to spare" if policy.overprovision and target > policy.minimum else ""
    reason = f"from {base} to {some(target)}{over}: {why}"
    return Decision(target, replace(memory, target=target), reason, True, inputs)


def _holding(policy: Policy, base: int, looks: Looks) -> str:
    if looks.stable is None:
        return "nothing was measured: the target is held"
    wanted = _wanted(policy, looks.stable.replicas)
    if wanted == base:
        return f"{some(base)} carry the load" if base != 1 else "1 replica carries the load"
    delay = policy.upscale_delay if wanted > base else policy.downscale_delay
    return f"{looks.stable.signal} ask for {wanted} now; the target follows when that has lasted for {seconds(delay)}"


def _inputs(looks: Looks) -> dict[str, float | int | None]:
    """The figures behind a decision, rounded for people."""
    figures = {
        "qps": looks.seen.qps,
        "inflight": looks.seen.inflight,
        "queued": looks.seen.queued,
        "p95": looks.seen.p95,
        "custom": looks.seen.custom,
    }
    rounded: dict[str, float | int | None] = {k: round(v, 3) for k, v in figures.items() if v is not None}
    rounded["asked_long"] = looks.stable.replicas if looks.stable else None
    rounded["asked_short"] = looks.panic.replicas if looks.panic else None
    return rounded
