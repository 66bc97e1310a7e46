"""What must be true of every plan, whatever came before it. Told with the model world's own counting."""

from collections import Counter
from datetime import timedelta

from replicas.core import lifecycle
from replicas.core.planner import Action, Cancel, Create, Drain, Plan, plan
from replicas.core.status import status
from replicas.core.values import Desired, ReplicaState, ServiceStatus
from tests.core.world import World

S = ReplicaState


def check_plan(world: World, decided: Plan) -> None:
    """A plan for the world as it is."""
    creates = [action for action in decided.actions if isinstance(action, Create)]
    others = [action for action in decided.actions if not isinstance(action, Create)]
    assert all(action.reason for action in decided.actions)
    aimed = Counter(action.replica_id for action in others)
    assert max(aimed.values(), default=0) <= 1, f"two actions on one replica: {others}"
    for action in others:
        _check_applies(world, action)
    if creates:
        _check_launches(world, creates)
    if decided.halted:
        assert not creates
        _check_halt(world)
    _check_capacity(world, decided)
    _check_wake_at(world, decided)
    _check_status(world, decided)


def check_applied(world: World) -> None:
    """After a plan was carried out: what may stay is within bounds."""
    kept = [row for row in world.staying() if not world.doomed(row)]
    wanted = world.bound() if world.service.desired is Desired.UP else 0
    assert len(kept) <= wanted, f"{len(kept)} kept, {wanted} allowed"


def check_late(world: World, limit: int) -> None:
    """After a plan was carried out that others had overtaken: still nobody above the limit it was made for."""
    assert len(world.live()) <= limit


def check_rest(world: World) -> None:
    """Everything works: the target is reached by the active version alone, and nothing is left to do or to wait for."""
    wanted = world.service.target if world.service.desired is Desired.UP else 0
    assert world.ready(world.service.version) == len(world.live()) == wanted
    assert world.decide() == Plan()


def _check_applies(world: World, action: Action) -> None:
    row = world.replicas[action.replica_id]
    assert row.state in action.sources, f"{action} on {row}"
    if action.trigger is not None and not (isinstance(action, Cancel) and row.state is S.SHUTTING_DOWN):
        assert lifecycle.step(row.state, row.outcome, action.trigger) is not None


def _check_launches(world: World, creates: list[Create]) -> None:
    """No more than there is room for, nobody's place filled twice, and not before a backoff is over."""
    live, bound = len(world.live()), world.bound()
    assert live + len(creates) <= bound, f"above {bound}: {creates}"
    assert all(action.version == world.service.version for action in creates)
    lines = [action.replaces for action in creates if action.replaces is not None]
    lines += [row.replaces for row in world.replicas.values() if row.replaces is not None]
    assert max(Counter(lines).values(), default=0) <= 1, f"two replicas in one place: {creates}"
    if world.clock_was_set_back():
        return
    held = {row.number for row in world.open_failures() if world.held_until(row) > world.now}
    assert not held & {action.replaces for action in creates}, f"before the backoff is over: {creates}"
    due = {row.number for row in world.open_failures()} - held
    fresh = [action for action in creates if action.replaces not in due]
    assert len(fresh) <= max(0, bound - live - len(held)), f"the places of {held} were filled past their backoff"


def _check_halt(world: World) -> None:
    """Only a version that failed often enough and was never ready is given up."""
    if world.clock_was_set_back():
        return  # what was forgiven "later than now" counts again
    failures = world.unforgiven_failures()
    assert len(failures) >= world.service.restart.max_never_ready
    assert all(row.ready_at is None for row in failures)
    assert world.ready(world.service.version) == 0


def _check_capacity(world: World, decided: Plan) -> None:
    """Ready replicas are given up only as far as the floor allows, unless somebody asked for it."""
    if world.service.desired is Desired.DOWN:
        return
    rows = [world.replicas[action.replica_id] for action in decided.actions if isinstance(action, Drain)]
    given_up = [row for row in rows if row.state is S.READY and not world.doomed(row)]
    if given_up:
        asked = sum(row.state is S.READY and world.doomed(row) for row in rows)
        floor = world.service.target if decided.halted else world.floor()
        assert world.ready() - asked - len(given_up) >= floor, f"too many ready ones given up: {given_up}"


def _check_wake_at(world: World, decided: Plan) -> None:
    """Time alone changes nothing before `wake_at`."""
    assert decided.wake_at is None or decided.wake_at > world.now
    if any(isinstance(action, Create) for action in decided.actions) or world.clock_was_set_back():
        return
    end = world.now + timedelta(days=1) if decided.wake_at is None else decided.wake_at - timedelta(milliseconds=1)
    just_before = plan(world.service, list(world.replicas.values()), end)
    assert just_before.actions == decided.actions
    assert just_before.notes == decided.notes


def _check_status(world: World, decided: Plan) -> None:
    """The status says what is true."""
    state, reason = status(world.service, list(world.replicas.values()), decided)
    assert reason.strip()
    assert "\n" not in reason
    if world.service.desired is Desired.DOWN:
        assert state in (ServiceStatus.SHUTTING_DOWN, ServiceStatus.FAILED_CLEANUP, ServiceStatus.DOWN)
        assert (state is ServiceStatus.SHUTTING_DOWN) == bool(world.live())
        return
    assert (state is ServiceStatus.READY) == (world.ready() > 0)
    assert (state is ServiceStatus.NO_REPLICA) == (world.service.target == 0 and not world.ready())
    if decided.halted and not world.ready() and world.service.target:
        assert state is ServiceStatus.FAILED
