"""Every interleaving of a small world: each thing that can happen next is tried in each state that can be reached.

Replicas that are alike are told apart by nothing, so that one of them stands for all. Times are told as ages, up to the
longest that a decision asks for.
"""

from collections import deque
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace

from replicas.core.planner import Create, OnRollout, Plan
from replicas.core.values import OperationKind, ReplicaState, RolloutMode, RolloutState
from replicas.core.views import ReplicaView, RestartPolicy, RolloutPolicy, Surge
from tests.core.cast import web
from tests.core.rows import LAUNCHING, Version
from tests.core.world import World

S = ReplicaState
POLICY = RolloutPolicy(progress_deadline=30.0, min_ready_seconds=10.0, max_failures=2)
BAKE = 20.0
RESTART = RestartPolicy(backoff_seconds=0.0, max_never_ready=3)


class Silence(list):  # type: ignore[type-arg]
    """A log that nobody reads."""

    def append(self, _: object) -> None:
        """Forget it."""


@dataclass(frozen=True)
class Case:
    """What is explored: an update of a service that serves, and how much may go wrong on the way."""

    name: str
    target: int
    surge: Surge
    mode: RolloutMode = RolloutMode.ROLLING
    bad: str = ""
    crashes: int = 0
    cancels: int = 0
    aborts: int = 0
    blinds: int = 0
    canary: int | None = None
    auto_rollback: bool = True


@dataclass
class State:
    """A world, the plan that the controller has made and not carried out, and what may still go wrong.

    `lost`: replicas with traffic that ended since the plan was made. `limit`: how many might be alive by it.
    """

    world: World
    pending: Plan | None = None
    crashes: int = 0
    cancels: int = 0
    aborts: int = 0
    blinds: int = 0
    lost: int = 0
    limit: int = 0

    def copy(self) -> "State":
        """One that can go another way."""
        old = self.world
        world = World.__new__(World)
        world.service, world.now, world.log, world.operations = old.service, old.now, old.log, old.operations
        world.replicas, world.versions, world.rollouts = dict(old.replicas), old.versions.copy(), list(old.rollouts)
        return replace(self, world=world)

    def key(self) -> Hashable:
        """Equal for states that are alike."""
        world = self.world
        tellings = {row.id: tell(world, row) for row in world.live()}
        order = sorted(tellings, key=lambda number: tellings[number])
        places = {number: place for place, number in enumerate(order)}
        rollout = world.rollout
        ended = [(row.version, row in world.open_failures(row.version)) for row in failed(world)]
        late = age(world, rollout.progressed_at, POLICY.progress_deadline)
        told = (rollout.id, rollout.state, late if rollout.state is RolloutState.PROGRESSING else 0.0)
        plan = None if self.pending is None else tuple(self._action(action, places) for action in self.pending.actions)
        done = (rollout.switched_at is not None, rollout.promoted_at is not None, rollout.best)
        wishes = (world.service.version, world.service.target, done)
        left = (self.crashes, self.cancels, self.aborts, self.blinds, self.lost, self.limit)
        return (tuple(tellings[number] for number in order), tuple(sorted(ended)), told, plan, wishes, left)

    def _action(self, action: object, places: dict[int, int]) -> Hashable:
        kind = type(action).__name__
        if isinstance(action, Create):
            return kind, action.version
        if isinstance(action, OnRollout):
            return kind, action.rollout_id, getattr(action, "revision", 0) == self.world.rollout.revision
        return kind, places.get(action.replica_id, -1)  # type: ignore[attr-defined]


def age(world: World, moment: object, longest: float) -> float:
    """Seconds since then, up to the longest that is asked for: all older than that are alike."""
    return min(longest, (world.now - moment).total_seconds())  # type: ignore[operator]


def tell(world: World, row: ReplicaView) -> tuple[object, ...]:
    """All of a live replica that a decision could ask for."""
    operation = (row.operation.kind, row.operation.cancelling) if row.operation else ("", False)
    longest = BAKE if world.service.policy.canary else POLICY.min_ready_seconds
    since = age(world, row.state_since, longest) if row.state is S.READY else 0.0
    adopted = age(world, row.adopted_at, longest) if row.adopted_at else -1.0
    asked = -1.0
    if row.state is S.READY and row.probed_at is not None:
        asked = max(
            -1.0,
            min(longest, (row.probed_at - max(row.state_since, row.adopted_at or row.state_since)).total_seconds()),
        )
    return (row.version, row.state, since, adopted, asked, row.ready_at is not None, operation, row.outcome or "")


def failed(world: World) -> list[ReplicaView]:
    """The failures that still count."""
    return [row for version in world.versions for row in world.unforgiven_failures(version)]


def begin(case: Case) -> State:
    """Version 1 serves and has proved itself; version 2 has just been applied."""
    policy = replace(POLICY, canary=case.canary, bake_seconds=BAKE, auto_rollback=case.auto_rollback)
    world = World(web(target=case.target, surge=case.surge, restart=RESTART, policy=policy))
    world.heal()
    world.log = Silence()
    world.wait(60)
    world.update(Version(2, 2, case.surge, policy, case.mode, case.bad))
    return State(world, None, case.crashes, case.cancels, case.aborts, case.blinds)


def steps(state: State) -> Iterator[State]:
    """Every state that can come next."""
    if state.pending is None:
        yield from _look(state)
    else:
        yield from _carry_out(state)
    seen: set[Hashable] = set()
    for row in state.world.live():
        if (told := tell(state.world, row)) not in seen:
            seen.add(told)
            yield from _of_one(state, row)
    if state.world.decide().wake_at is not None or state.pending is not None:
        yield after(state, lambda world: world.wait(10))
        if state.blinds:
            yield after(state, lambda world: world.wait(10, blind=True), blinds=state.blinds - 1)
    if state.aborts and state.world.rollout.state is RolloutState.PROGRESSING:
        yield after(state, World.abort, aborts=state.aborts - 1)


def after(state: State, happens, **less: int) -> State:  # type: ignore[no-untyped-def]
    """What becomes of it when something happens; traffic that is lost by it is counted."""
    made = state.copy()
    before = len(made.world.answering())
    happens(made.world)
    lost = max(0, before - len(made.world.answering())) if made.pending is not None else 0
    return replace(made, lost=made.lost + lost, **less)


def _look(state: State) -> Iterator[State]:
    """The controller reads the rows and makes up its mind."""
    decided = state.world.decide()
    if decided.actions:
        limit = max(state.world.bound(), len(state.world.live()))
        yield replace(state.copy(), pending=decided, lost=0, limit=limit)


def _carry_out(state: State) -> Iterator[State]:
    """It does what it decided, however late; or it is killed or deposed before, or in the middle.

    Nothing of the rest happens then: a controller that lost its lease writes nothing more, and another one looks anew.
    """
    assert state.pending is not None
    decided = state.pending
    for count in range(len(decided.actions) + 1):
        made = state.copy()
        world = made.world
        before, floor = len(world.answering()), world.floor()
        world.apply(replace(decided, actions=decided.actions[:count]))
        least = min(before, min(floor, world.floor()) - state.lost)
        assert len(world.answering()) >= least, f"traffic taken: {decided}"
        assert len(world.live()) <= max(state.limit, world.bound()), f"too many alive: {decided}"
        yield replace(made, pending=None, lost=0, limit=0)


def _of_one(state: State, row: ReplicaView) -> Iterator[State]:
    """Jobs, probes and faults of one replica."""
    number = row.id
    if row.operation is not None:
        yield after(state, lambda world: world.job_step(number))
        if state.crashes and row.operation.kind is OperationKind.LAUNCH and row.state is S.PROVISIONING:
            yield after(state, lambda world: world.job_step(number, fails=True), crashes=state.crashes - 1)
        if state.cancels and row.state in LAUNCHING and not row.operation.cancelling:
            yield after(state, lambda world: world.cancel_launch(number), cancels=state.cancels - 1)
    if row.state in (S.STARTING, S.NOT_READY):
        yield after(state, lambda world: world.probe(number))
    if row.state is S.READY and row.probed_at is not None and row.probed_at < state.world.now:
        yield after(state, lambda world: world.probe_ready(row))
    if state.crashes and row.state in (S.STARTING, S.READY, S.NOT_READY):
        yield after(state, lambda world: world.trigger(number, "exited"), crashes=state.crashes - 1)


@dataclass
class Found:
    """What an exploration has seen: how many states, the resting ones, and the ways back from each state."""

    states: int = 0
    resting: list[int] = field(default_factory=list)
    before: list[list[int]] = field(default_factory=list)
    stuck: int = 0


def explore(case: Case, most: int = 10**6) -> Found:
    """Visit all states. Raises AssertionError where a bound is broken; `stuck` counts those without a way to rest."""
    first = begin(case)
    known: dict[Hashable, int] = {first.key(): 0}
    found = Found(before=[[]])
    waiting = deque([(0, first)])
    while waiting:
        number, state = waiting.popleft()
        found.states += 1
        assert found.states <= most, f"{case.name}: more than {most} states"
        if at_rest(state):
            found.resting.append(number)
        for following in steps(state):
            key = following.key()
            place = known.get(key)
            if place is None:
                place = known[key] = len(known)
                found.before.append([])
                waiting.append((place, following))
            found.before[place].append(number)
    found.stuck = found.states - len(_reach(found))
    return found


def at_rest(state: State) -> bool:
    """Nothing is left to do, and as many as are wanted get traffic, of versions that work."""
    world = state.world
    if state.pending is not None or len(world.live()) != world.service.target:
        return False
    works = all(not world.versions[row.version].bad for row in world.serving())
    decided = world.decide()
    done = world.rollout.state in (RolloutState.SUCCEEDED, RolloutState.FAILED)
    return works and done and len(world.serving()) == world.service.target and not decided.actions


def _reach(found: Found) -> set[int]:
    """The states from which a resting one can be reached."""
    reached = set(found.resting)
    waiting = deque(found.resting)
    while waiting:
        for number in found.before[waiting.popleft()]:
            if number not in reached:
                reached.add(number)
                waiting.append(number)
    return reached
