"""Whatever happens in whatever order: the planner keeps its bounds, and once everything works it arrives and rests."""

from collections import Counter
from datetime import timedelta

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from replicas.core import lifecycle
from replicas.core.planner import Cancel, Create, Drain, Plan, plan
from replicas.core.status import status
from replicas.core.values import Desired, OperationKind, ReplicaState, ServiceStatus
from replicas.core.views import RestartPolicy, Surge
from tests.core.cast import web
from tests.core.world import World

S = ReplicaState
SURGES = st.builds(Surge, max_surge=st.integers(0, 3), max_unavailable=st.integers(0, 3))
FAULTS = ("exited", "lost", "preempted", "initial_delay_passed", "probe_exhausted", "probe_failed")


def check(world: World, decided: Plan) -> None:
    """What must be true of every plan for the world that it was made for."""
    aimed = [action.replica_id for action in decided.actions if not isinstance(action, Create)]
    assert max(Counter(aimed).values(), default=0) <= 1, f"two actions on one replica: {decided.actions}"
    assert all(action.reason for action in decided.actions)
    for action in decided.actions:
        if not isinstance(action, Create):
            _check_applies(world, action)
    creates = [action for action in decided.actions if isinstance(action, Create)]
    if creates:
        _check_launches(world, creates)
    if decided.halted:
        assert not creates
        _check_halt(world)
    _check_capacity(world, decided)
    _check_wake_at(world, decided)


def _check_applies(world: World, action) -> None:
    row = world.replicas[action.replica_id]
    assert row.state in action.sources, f"{action} on {row}"
    if action.trigger is not None and not (isinstance(action, Cancel) and row.state is S.SHUTTING_DOWN):
        assert lifecycle.step(row.state, row.outcome, action.trigger) is not None


def _check_launches(world: World, creates: list[Create]) -> None:
    """No more than there is room for, nobody's place filled twice, and not before a backoff is over."""
    live, bound = len(world.live()), world.bound()
    assert live + len(creates) <= bound, f"above {bound}: {creates}"
    lines = [action.replaces for action in creates if action.replaces is not None]
    lines += [row.replaces for row in world.replicas.values() if row.replaces is not None]
    assert max(Counter(lines).values(), default=0) <= 1, f"two replicas in one place: {creates}"
    if _clock_was_set_back(world):
        return
    held = {row.number for row in world.open_failures() if world.held_until(row) > world.now}
    assert not held & {action.replaces for action in creates}, f"before the backoff is over: {creates}"
    due = {row.number for row in world.open_failures()} - held
    fresh = [action for action in creates if action.replaces not in due]
    assert len(fresh) <= max(0, bound - live - len(held)), f"the places of {held} were filled past their backoff"


def _check_halt(world: World) -> None:
    """Only a version that failed often enough and was never ready is given up."""
    never = [row for row in world.unforgiven_failures() if row.ready_at is None]
    assert len(never) >= world.service.restart.max_never_ready
    assert world.ready(world.service.version) == 0
    assert all(row.ready_at is None for row in world.unforgiven_failures())


def _check_capacity(world: World, decided: Plan) -> None:
    """Ready replicas are given up only as far as the floor allows, unless somebody asked for it."""
    if world.service.desired is Desired.DOWN:
        return
    rows = [world.replicas[action.replica_id] for action in decided.actions if isinstance(action, Drain)]
    given_up = [row for row in rows if row.state is S.READY and not world.doomed(row)]
    if given_up:
        asked = sum(row.state is S.READY and world.doomed(row) for row in rows)
        assert world.ready() - asked - len(given_up) >= world.floor(), f"too many ready ones given up: {decided}"


def _check_wake_at(world: World, decided: Plan) -> None:
    """Time alone changes nothing before `wake_at`."""
    assert decided.wake_at is None or decided.wake_at > world.now
    if any(isinstance(action, Create) for action in decided.actions) or _clock_was_set_back(world):
        return
    end = world.now + timedelta(days=1) if decided.wake_at is None else decided.wake_at - timedelta(milliseconds=1)
    just_before = plan(world.service, list(world.replicas.values()), end)
    assert just_before.actions == decided.actions
    assert just_before.notes == decided.notes


def _clock_was_set_back(world: World) -> bool:
    moments = [row.state_since for row in world.replicas.values()]
    return max(*moments, world.service.forgiven_at or world.now, world.now) > world.now


class Controlled(RuleBasedStateMachine):
    """A service under a random operator, random jobs, a random enemy and a controller that ticks now and then."""

    @initialize(wanted=st.integers(0, 5), surge=SURGES, most=st.integers(1, 5))
    def begin(self, wanted: int, surge: Surge, most: int) -> None:
        self.world = World(web(target=wanted, surge=surge, restart=RestartPolicy(max_never_ready=most)))

    def _pick(self, data: st.DataObject, *states: ReplicaState):
        return data.draw(st.sampled_from(sorted(row.id for row in self.world.in_state(*states))))

    # The controller

    @rule()
    def tick(self) -> None:
        decided = self.world.decide()
        check(self.world, decided)
        self.world.apply(decided)
        self._check_applied()

    @rule()
    def ticks(self) -> None:
        self.world.settle(lambda decided: check(self.world, decided))
        self._check_applied()

    @rule(data=st.data())
    @precondition(lambda self: self.world.live())
    def tick_too_late(self, data: st.DataObject) -> None:
        """Something happens to a replica between the decision and the deed: the deed is void, not wrong."""
        decided = self.world.decide()
        check(self.world, decided)
        limit = max(self.world.bound(), len(self.world.live()))
        for _ in range(data.draw(st.integers(1, 4))):
            self._anything(data)
        self.world.apply(decided)
        assert len(self.world.live()) <= limit

    def _check_applied(self) -> None:
        kept = [row for row in self.world.staying() if not self.world.doomed(row)]
        if self.world.service.desired is Desired.UP:
            assert len(kept) <= self.world.bound()

    # Jobs, probes, faults

    def _anything(self, data: st.DataObject) -> None:
        rows = self.world.live()
        if not rows:
            return
        row = data.draw(st.sampled_from(rows))
        if row.operation is not None and data.draw(st.booleans()):
            self.world.job_step(row.id, fails=data.draw(st.booleans()))
        else:
            self.world.trigger(row.id, data.draw(st.sampled_from((*FAULTS, "probe_passed"))), "something happened")

    @rule(data=st.data(), fails=st.sampled_from((False, False, False, True)))
    @precondition(lambda self: self.world.with_live(OperationKind.LAUNCH))
    def launch_goes_on(self, data: st.DataObject, fails: bool) -> None:
        ids = sorted(row.id for row in self.world.with_live(OperationKind.LAUNCH))
        self.world.job_step(data.draw(st.sampled_from(ids)), fails=fails)

    @rule(data=st.data(), fails=st.sampled_from((False, False, False, True)))
    @precondition(lambda self: self.world.with_live(OperationKind.DOWN))
    def down_ends(self, data: st.DataObject, fails: bool) -> None:
        ids = sorted(row.id for row in self.world.with_live(OperationKind.DOWN))
        self.world.job_step(data.draw(st.sampled_from(ids)), fails=fails)

    @rule()
    def all_launches_work(self) -> None:
        for row in self.world.with_live(OperationKind.LAUNCH):
            while self.world.replicas[row.id].operation is not None:
                self.world.job_step(row.id)
            self.world.trigger(row.id, "probe_passed")

    @rule(seconds=st.sampled_from((0.0, 15.0)))
    def everything_crashes(self, seconds: float) -> None:
        """All that is launched runs and exits at once, and is cleaned up."""
        for row in self.world.with_live(OperationKind.LAUNCH):
            while self.world.replicas[row.id].operation is not None:
                self.world.job_step(row.id)
        for row in self.world.in_state(S.STARTING, S.READY, S.NOT_READY, S.DRAINING):
            self.world.trigger(row.id, "exited", "exit code 7")
        self.ticks()
        for row in self.world.with_live(OperationKind.DOWN):
            self.world.job_step(row.id)
        self.world.wait(seconds)

    @rule(data=st.data())
    @precondition(lambda self: self.world.in_state(S.STARTING, S.NOT_READY))
    def probe_passes(self, data: st.DataObject) -> None:
        self.world.trigger(self._pick(data, S.STARTING, S.NOT_READY), "probe_passed")

    @rule(data=st.data(), fault=st.sampled_from(FAULTS))
    @precondition(lambda self: self.world.live())
    def something_breaks(self, data: st.DataObject, fault: str) -> None:
        row = data.draw(st.sampled_from(self.world.live()))
        self.world.trigger(row.id, fault, f"{fault} for a test")

    @rule(data=st.data())
    @precondition(lambda self: self.world.in_state(S.PENDING, S.PROVISIONING))
    def worker_vanishes(self, data: st.DataObject) -> None:
        self.world.lose_operation(self._pick(data, S.PENDING, S.PROVISIONING))

    @rule(data=st.data(), in_flight=st.integers(0, 3))
    @precondition(lambda self: self.world.in_state(S.READY, S.NOT_READY, S.DRAINING))
    def traffic(self, data: st.DataObject, in_flight: int) -> None:
        self.world.serve(self._pick(data, S.READY, S.NOT_READY, S.DRAINING), in_flight)

    @rule(seconds=st.sampled_from((0.5, 5.0, 30.0, 300.0, 1000.0, -3600.0, 3600.0)))
    def time_passes(self, seconds: float) -> None:
        self.world.wait(seconds)

    # Users

    @rule(wanted=st.integers(0, 6))
    def scale(self, wanted: int) -> None:
        self.world.scale(wanted)

    @rule(data=st.data())
    @precondition(lambda self: self.world.staying())
    def terminate(self, data: st.DataObject) -> None:
        self.world.terminate(data.draw(st.sampled_from(sorted(row.id for row in self.world.staying()))))

    @rule(data=st.data())
    @precondition(lambda self: any(row.operation for row in self.world.in_state(S.PENDING, S.PROVISIONING)))
    def cancel(self, data: st.DataObject) -> None:
        rows = [row.id for row in self.world.in_state(S.PENDING, S.PROVISIONING) if row.operation]
        self.world.cancel_launch(data.draw(st.sampled_from(rows)))

    @rule(data=st.data(), surge=SURGES)
    def update(self, data: st.DataObject, surge: Surge) -> None:
        known = sorted({row.version for row in self.world.live()})
        compatible = data.draw(st.sets(st.sampled_from(known))) if known else set()
        self.world.update(frozenset(compatible), surge)

    @rule()
    def restart(self) -> None:
        self.world.restart()

    @rule(desired=st.sampled_from(Desired))
    def want(self, desired: Desired) -> None:
        self.world.want(desired)

    # What is always true

    @invariant()
    def status_tells_the_truth(self) -> None:
        if not hasattr(self, "world"):
            return
        world = self.world
        state, reason = status(world.service, list(world.replicas.values()), world.decide())
        assert reason
        assert "\n" not in reason
        if world.service.desired is Desired.DOWN:
            assert state in (ServiceStatus.SHUTTING_DOWN, ServiceStatus.FAILED_CLEANUP, ServiceStatus.DOWN)
            assert (state is ServiceStatus.SHUTTING_DOWN) == bool(world.live())
        else:
            assert (state is ServiceStatus.READY) == (world.ready() > 0)
            assert state is not ServiceStatus.NO_REPLICA or world.service.target == 0

    def teardown(self) -> None:
        """Once everything works, the target is reached and nothing more is planned."""
        if not hasattr(self, "world"):
            return
        world = self.world
        world.heal(lambda decided: check(world, decided))
        wanted = world.service.target if world.service.desired is Desired.UP else 0
        assert world.ready(world.service.version) == len(world.live()) == wanted
        at_rest = world.decide()
        assert at_rest == Plan()


Controlled.TestCase.settings = settings(
    max_examples=200,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    database=None,
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestControlled = Controlled.TestCase
