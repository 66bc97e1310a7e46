"""The plan that is shown is what the planner does: counts and bounds, over generated services and updates."""

import re
from collections import Counter
from dataclasses import dataclass, field

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from replicas.core.beginning import good_version
from replicas.core.planner import Adopt, Cancel, Create, Drain, Plan, Retire, Withdraw
from replicas.core.preview import Move, There, brought, count, preview
from replicas.core.spec import Spec
from replicas.core.values import RolloutKind, RolloutMode
from replicas.core.views import RolloutPolicy, Surge
from tests.core.cast import web
from tests.core.rows import WAY_OUT, Version
from tests.core.world import World

LIMITS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=150)
MODES = st.sampled_from([RolloutMode.ROLLING, RolloutMode.BLUE_GREEN])


@dataclass
class Watched:
    """What the planner did until the world came to rest."""

    launched: Counter[int] = field(default_factory=Counter)
    adopted: set[int] = field(default_factory=set)
    gone: set[int] = field(default_factory=set)
    most: int = 0
    least: int = 99

    def see(self, world: World, decided: Plan) -> None:
        """Keep what a plan asks for."""
        self.most = max(self.most, len(world.live()))
        self.least = min(self.least, len(world.serving()))
        for action in decided.actions:
            if isinstance(action, Create):
                self.launched[action.version] += 1
            elif isinstance(action, Adopt):
                self.adopted.add(action.replica_id)
            elif isinstance(action, Drain | Retire | Withdraw | Cancel):
                self.gone.add(action.replica_id)


def there(world: World, process: int) -> list[There]:
    """The replicas that may stay, as the plan is made from them."""
    good = good_version(reversed(world.rollouts))
    found: dict[int, Counter] = {}
    for row in world.staying():
        found.setdefault(row.version, Counter())[row.state] += 1
    return [
        There(version, counts, world.versions[version].process == process, world.listed(version) or version == good)
        for version, counts in sorted(found.items())
    ]


def update(world: World, made: Version, target: int) -> tuple[list[There], Move]:
    """Another version and another target; what was there just before, and the move that it began."""
    before = there(world, made.process)
    leaving = sum(row.state in WAY_OUT for row in world.live())
    world.update(made)
    world.scale(target)
    rollout = world.rollout
    return before, Move(
        rollout.to_version,
        RolloutKind(rollout.kind),
        rollout.mode,
        rollout.good_version,
        switched=rollout.switched_at is not None,
        one_port=made.policy.one_port,
        leaving=leaving,
    )


@LIMITS
@given(
    first=st.integers(1, 4),
    target=st.integers(0, 4),
    surge=st.integers(0, 2),
    unavailable=st.integers(0, 2),
    mode=MODES,
    canary=st.sampled_from([None, None, 1, 2, "50%"]),
    one_port=st.sampled_from([False, False, True]),
    same=st.booleans(),
)
def test_an_update_of_a_service_that_serves_does_what_was_shown(
    first: int,
    target: int,
    surge: int,
    unavailable: int,
    mode: RolloutMode,
    canary: int | str | None,
    one_port: bool,
    same: bool,
) -> None:
    canary = canary if mode is RolloutMode.ROLLING else None
    policy = RolloutPolicy(min_ready_seconds=1, canary=canary, one_port=one_port)
    world = World(web(target=first, surge=Surge(surge, unavailable), policy=policy))
    world.heal()
    process = 1 if same else 2
    made = Version(2, process, Surge(surge, unavailable), policy, mode)
    before, move = update(world, made, target)
    counts = count(target, before)
    rollout = {"max_surge": surge, "max_unavailable": unavailable, "canary": canary}
    spec = Spec.from_json({"name": "web", "run": "x", "service": {"replicas": target, "rollout": rollout}})
    lines = "\n".join(preview(move, target, before, spec, spec))
    watched = Watched()
    world.heal(lambda decided: watched.see(world, decided))
    told = "\n".join([lines, *world.log])
    extra = brought(move, target, counts, spec)
    assert watched.launched == +Counter({2: counts.launched, 1: extra}), told
    assert len(watched.adopted) == counts.adopted, told
    assert len(watched.gone) == counts.older + counts.held + counts.surplus + extra, told
    alive = re.search(r"At most (\d+) are alive|up to (\d+) are alive", lines)
    if alive:
        assert watched.most <= max(int(alive[1] or alive[2]), first), told
    ready = re.search(r"at least (\d+) stay ready", lines)
    if ready:
        assert watched.least >= min(int(ready[1]), first), told
