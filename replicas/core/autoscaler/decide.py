"""The rule: slow to follow, quick to help.

A stretch of STABLE seconds says what the load asks for. More replicas come when most of the last
`upscale_delay_seconds` asked for more, fewer when most of the last `downscale_delay_seconds` asked for fewer;
both look at a share of the time, so that one sample against the trend changes nothing. A burst (PANIC seconds ask for
twice what there is) is answered at once, and nothing is taken away until it has been over for STABLE seconds, as
Knative's autoscaler does ("Configuring concurrency", stable and panic windows). From nothing, the first request starts
one. What is not measured changes nothing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from replicas.core.autoscaler.recent import STEP
from replicas.core.autoscaler.signals import Ask, Means, ask, history, means, whole
from replicas.core.autoscaler.values import Decision, Memory, Policy, Sample
from replicas.core.backoff import CLOCK_STEP
from replicas.core.wording import at, seconds, some

STABLE = 60.0  # seconds
PANIC = 6.0  # a tenth of it, as Knative
FRESH = 3.0  # seconds that say how far a burst goes
PANIC_RATIO = 2.0  # of the load to what there is
UP_SHARE = 0.6  # of the delay must have asked for more
DOWN_SHARE = 0.8  # of the delay must have asked for fewer
RECENT = 0.25  # of the downscale delay: the most that it asked for stays
UP_TOLERANCE = 0.05  # of what there is: a load so little above it is carried, as Kubernetes' autoscaler has it
DOWN_TOLERANCE = 0.1  # of what there is: so few are not worth a change
STALE = 15.0  # seconds without a sample after which nothing is decided


@dataclass(frozen=True, slots=True)
class Scene:
    """All that a decision looks at, and what the load is over the short and the long stretch.

    `wakes`: there was any request of late, also one that only waits.
    """

    policy: Policy
    samples: Sequence[Sample]
    capacities: Sequence[str | None]
    now: datetime
    base: int
    fresh: Ask | None
    panic: Ask | None
    stable: Ask | None
    seen: Means
    wakes: bool

    def history(self, delay: float) -> list[float | None]:
        """The load, in replicas, each STEP of the last `delay` seconds."""
        return history(
            self.policy,
            self.samples,
            self.now,
            self.capacities,
            span=max(delay, STEP),
            window=STABLE,
            step=STEP,
        )

    def wanted(self, load: float) -> int:
        """Replicas for a load, with what is provided beyond it, within the bounds. No load needs none beyond."""
        asked = whole(load)
        return _bounded(self.policy, asked + self.policy.overprovision if asked else 0)

    @property
    def carried(self) -> int:
        """How many replicas' load is no news: those there are, without the ones to spare."""
        return max(1, self.base - self.policy.overprovision)


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
        return _moved(memory, base, bounded, f"{bound} wanted", {})
    if not policy.measured:
        return Decision(base, replace(memory, target=base), "no signal moves the target")
    if not samples or (now - samples[-1].at).total_seconds() > STALE:
        since = f" since {at(samples[-1].at)}" if samples else ""
        return Decision(base, replace(memory, target=base), f"nothing was measured{since}: the target is held")
    scene = _look(policy, samples, capacities, now, base)
    return _burst(scene, memory) or _by_load(scene, memory)


def _look(
    policy: Policy, samples: Sequence[Sample], capacities: Sequence[str | None], now: datetime, base: int
) -> Scene:
    fresh, short, long = (means(samples, now - timedelta(seconds=span), now) for span in (FRESH, PANIC, STABLE))
    return Scene(
        policy,
        samples,
        capacities,
        now,
        base,
        fresh=ask(policy, fresh, capacities),
        panic=ask(policy, short, capacities),
        stable=ask(policy, long, capacities),
        seen=long,
        wakes=any((fresh.qps, fresh.queued)),
    )


def _burst(scene: Scene, memory: Memory) -> Decision | None:
    """What a burst asks for at once; None where there is none, or where it asks for no more than there is."""
    panic = scene.panic
    load = max(panic.load if panic else 0.0, scene.fresh.load if scene.fresh else 0.0)
    wanted = scene.wanted(load)
    if scene.base == 0 and scene.wakes and scene.policy.maximum:
        why = "requests came while there was none"
        return _change(scene, _panicked(scene, memory), max(1, wanted), why)
    if panic is None or wanted <= scene.base or panic.load < PANIC_RATIO * scene.carried:
        return None
    why = f"a burst: {panic.signal} of the last {seconds(PANIC)} fill {panic.load:.1f}"
    return _change(scene, _panicked(scene, memory), wanted, why)


def _by_load(scene: Scene, memory: Memory) -> Decision:
    """What lasted."""
    policy = scene.policy
    up = _up(scene)
    if up is not None:
        which = scene.stable.signal if scene.stable else "load"
        return _change(scene, memory, up, f"{which} asked for more in most of the last {seconds(policy.upscale_delay)}")
    if memory.panic_until is not None and scene.now < memory.panic_until:
        reason = f"a burst is on: nothing is taken away before {at(memory.panic_until)}"
        return Decision(scene.base, memory, reason, False, _inputs(scene))
    memory = replace(memory, target=scene.base, panic_since=None, panic_until=None)
    down = _down(scene)
    if down is not None:
        why = f"the load asked for fewer in most of the last {seconds(policy.downscale_delay)}"
        return _change(scene, memory, down, why)
    return Decision(scene.base, memory, _holding(scene), False, _inputs(scene))


def _up(scene: Scene) -> int | None:
    """The target that most of the upscale delay asked for, or what is asked for now if that is more; None: no more."""
    if scene.stable is None or not _news(scene, scene.stable.load):
        return None
    asked = scene.history(scene.policy.upscale_delay)
    lasting = _quantile(asked, 1 - UP_SHARE, full=UP_SHARE)
    if lasting is None or not _news(scene, lasting):
        return None
    return max(scene.wanted(lasting), scene.wanted(scene.stable.load))


def _news(scene: Scene, load: float) -> bool:
    return load > scene.carried * (1 + UP_TOLERANCE) and scene.wanted(load) > scene.base


def _down(scene: Scene) -> int | None:
    """The most that was asked for of late, once most of the downscale delay asked for fewer; None: no fewer."""
    if scene.stable is None or scene.wanted(scene.stable.load) >= scene.base:
        return None
    asked = scene.history(scene.policy.downscale_delay)
    enough = _quantile(asked, DOWN_SHARE, full=DOWN_SHARE)
    if enough is None or scene.wanted(enough) >= scene.base:
        return None
    recent = asked[-max(1, round(len(asked) * RECENT)) :]
    kept = scene.wanted(max([scene.stable.load, *(one for one in recent if one is not None)]))
    return kept if kept <= scene.base * (1 - DOWN_TOLERANCE) else None


def _quantile(asked: Sequence[float | None], share: float, *, full: float) -> float | None:
    """The load that `share` of the entries do not exceed; None where less than `full` of them are known."""
    known = sorted(one for one in asked if one is not None)
    if not known or len(known) < full * len(asked):
        return None
    return known[max(0, math.ceil(share * len(known) - 1e-9) - 1)]


def _bounded(policy: Policy, target: int) -> int:
    return max(policy.minimum, min(policy.maximum, target))


def _panicked(scene: Scene, memory: Memory) -> Memory:
    until = scene.now + timedelta(seconds=STABLE)
    return replace(memory, panic_since=memory.panic_since or scene.now, panic_until=until)


def _believe(memory: Memory, now: datetime) -> Memory:
    """A burst that began in the future (the clock was set back) is forgotten: it would hold for too long."""
    if memory.panic_since is not None and memory.panic_since > now + CLOCK_STEP:
        return replace(memory, panic_since=None, panic_until=None)
    return memory


def _change(scene: Scene, memory: Memory, target: int, why: str) -> Decision:
    return _moved(memory, scene.base, target, why, _inputs(scene))


def _moved(memory: Memory, base: int, target: int, why: str, inputs: dict[str, float | int | None]) -> Decision:
    return Decision(target, replace(memory, target=target), f"from {base} to {some(target)}: {why}", True, inputs)


def _holding(scene: Scene) -> str:
    if scene.stable is None:
        return "nothing was measured: the target is held"
    wanted = scene.wanted(scene.stable.load)
    if wanted == scene.base:
        return f"the load asks for {some(scene.base)}"
    delay = scene.policy.upscale_delay if wanted > scene.base else scene.policy.downscale_delay
    return f"{scene.stable.signal} ask for {wanted} now; the target follows when that has lasted for {seconds(delay)}"


def _inputs(scene: Scene) -> dict[str, float | int | None]:
    """The figures behind a decision, rounded for people."""
    seen = scene.seen
    figures: dict[str, float | int | None] = {
        name: round(value, 3)
        for name in ("qps", "inflight", "queued", "p95", "custom")
        if (value := getattr(seen, name)) is not None
    }
    for name, one in (("load", scene.stable), ("load_short", scene.panic)):
        figures[name] = round(one.load, 2) if one else None
    return figures
