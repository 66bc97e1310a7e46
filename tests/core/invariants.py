"""What must be true of every plan, whatever came before it. Told with the model world's own counting."""

from collections import Counter
from datetime import timedelta

from replicas.core import lifecycle
from replicas.core.planner import Action, Cancel, Create, Drain, OnReplica, OnRollout, Plan, plan
from replicas.core.status import status
from replicas.core.values import Desired, ReplicaState, RolloutState, ServiceStatus
from tests.core.world import World

S = ReplicaState


def check_plan(world: World, decided: Plan) -> None:
    """A plan for the world as it is."""
    creates = [action for action in decided.actions if isinstance(action, Create)]
    others = [action for action in decided.actions if isinstance(action, OnReplica)]
    assert all(action.reason for action in decided.actions)
    aimed = Counter(action.replica_id for action in others)
    assert max(aimed.values(), default=0) <= 1, f"two actions on one replica: {others}"
    for action in others:
        _check_applies(world, action)
    if creates:
        _check_launches(world, creates)
    if decided.halted:
        assert not [action for action in creates if action.version == world.service.version]
        _check_halt(world)
    _check_wake_at(world, decided)
    _check_status(world, decided)


def carry_out(world: World, decided: Plan) -> None:
    """Carry a plan out, and look at what it alone has done: to whom gets traffic, and to how many there are."""
    before, floor = len(world.serving()), world.floor()
    asked = {
        a.replica_id for a in decided.actions if isinstance(a, Drain) and world.doomed(world.replicas[a.replica_id])
    }
    asked &= {row.id for row in world.serving()}
    world.apply(decided)
    if world.service.desired is Desired.DOWN:
        assert not [row for row in world.staying() if not world.doomed(row)]
        return
    least = world.service.target if decided.halted else min(floor, world.floor())
    after = len(world.serving())
    assert after >= min(before - len(asked), least), f"traffic taken from {before - after} of {before}: {decided}"
    if any(isinstance(action, OnRollout) for action in decided.actions):
        return  # what that makes possible, the next plan does
    kept = [row for row in world.staying() if not world.doomed(row)]
    assert len(kept) <= world.bound(), f"{len(kept)} kept, {world.bound()} allowed"


def serving_now(world: World) -> int:
    """How many get traffic."""
    return len(world.serving())


def check_listing(world: World, before: int) -> None:
    """What people do to versions takes traffic from nobody: the controller does, and within its bounds."""
    assert len(world.serving()) >= before


def check_late(world: World, limit: int) -> None:
    """After a plan was carried out that others had overtaken: still nobody above the limit it was made for."""
    assert len(world.live()) <= limit


def check_rest(world: World) -> None:
    """Whatever was: the target gets traffic, of versions that work, and nothing is left to do or to wait for."""
    wanted = world.service.target if world.service.desired is Desired.UP else 0
    assert len(world.serving()) == len(world.live()) == wanted, world.live()
    assert not [row for row in world.live() if world.versions[row.version].bad]
    decided = world.decide()
    assert (decided.actions, decided.wake_at) == ((), None)
    rollout = world.rollout
    if world.service.desired is Desired.UP and wanted:
        assert rollout.state in (RolloutState.SUCCEEDED, RolloutState.FAILED), rollout
        if rollout.state is RolloutState.SUCCEEDED:
            assert decided == Plan()
            assert {row.version for row in world.live()} == {world.service.version}
        else:
            assert rollout.good_version


def _check_applies(world: World, action: Action) -> None:
    row = world.replicas[action.replica_id]
    assert row.state in action.sources, f"{action} on {row}"
    if action.trigger is not None and not (isinstance(action, Cancel) and row.state is S.SHUTTING_DOWN):
        assert lifecycle.step(row.state, row.outcome, action.trigger) is not None


def _check_launches(world: World, creates: list[Create]) -> None:
    """No more than there is room for, nobody's place filled twice, and not before a backoff is over."""
    live, bound = len(world.live()), world.bound()
    assert live + len(creates) <= bound, f"above {bound}: {creates}"
    good = world.rollout.good_version if world.unsettled() else 0
    assert {action.version for action in creates} <= {world.service.version, good}
    lines = [action.replaces for action in creates if action.replaces is not None]
    lines += [row.replaces for row in world.replicas.values() if row.replaces is not None]
    assert max(Counter(lines).values(), default=0) <= 1, f"two replicas in one place: {creates}"
    if world.clock_was_set_back():
        return
    failed = [*world.open_failures(), *(world.open_failures(good) if good else ())]
    held = {row.number for row in failed if world.held_until(row) > world.now}
    assert not held & {action.replaces for action in creates}, f"before the backoff is over: {creates}"
    due = {row.number for row in world.open_failures()} - held
    held = {row.number for row in world.open_failures()} & held
    own = [action for action in creates if action.version == world.service.version]
    fresh = [action for action in own if action.replaces not in due]
    assert len(fresh) <= max(0, bound - live - len(held)), f"the places of {held} were filled past their backoff"


def _check_halt(world: World) -> None:
    """Only a version that failed often enough and was never ready is given up."""
    if world.clock_was_set_back():
        return  # what was forgiven "later than now" counts again
    failures = world.unforgiven_failures()
    assert len(failures) >= world.service.restart.max_never_ready
    assert all(row.ready_at is None for row in failures)
    assert world.ready(world.service.version) == 0


def _check_wake_at(world: World, decided: Plan) -> None:
    """Time alone changes nothing before `wake_at`."""
    assert decided.wake_at is None or decided.wake_at > world.now
    if any(isinstance(action, Create | OnRollout) for action in decided.actions) or world.clock_was_set_back():
        return
    end = world.now + timedelta(days=1) if decided.wake_at is None else decided.wake_at - timedelta(milliseconds=1)
    just_before = plan(world.seen(), list(world.replicas.values()), end)
    assert just_before.actions == decided.actions
    assert just_before.notes == decided.notes


def _check_status(world: World, decided: Plan) -> None:
    """The status says what is true."""
    state, reason = status(world.seen(), list(world.replicas.values()), decided)
    assert reason.strip()
    assert "\n" not in reason
    if world.service.desired is Desired.DOWN:
        assert state in (ServiceStatus.SHUTTING_DOWN, ServiceStatus.FAILED_CLEANUP, ServiceStatus.DOWN)
        assert (state is ServiceStatus.SHUTTING_DOWN) == bool(world.live())
        return
    serving = len(world.serving())
    assert (state is ServiceStatus.READY) == (serving > 0)
    assert (state is ServiceStatus.NO_REPLICA) == (world.service.target == 0 and not serving)
    if decided.halted and not serving and world.service.target:
        assert state is ServiceStatus.FAILED
