"""A model of everything around the planner: rows, jobs, probes, users and faults, without clock, database or process.

The planner's actions are applied as the controller applies them: each is void unless the replica is still in one of its
sources. Every move keeps the book that the invariants are read from.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

from replicas.core import lifecycle
from replicas.core.planner import (
    Action,
    Adopt,
    BeginDown,
    Cancel,
    Create,
    Drain,
    Drained,
    OnRollout,
    Plan,
    Retire,
    Withdraw,
    plan,
)
from replicas.core.values import (
    Desired,
    OperationKind,
    OperationStatus,
    ReplicaState,
    RolloutKind,
    RolloutMode,
    RolloutState,
)
from replicas.core.views import (
    OperationView,
    ReplicaView,
)
from tests.core.moving import Moving
from tests.core.rows import Version

S = ReplicaState
SETTLES_WITHIN = 12  # passes of the planner between two things that happen outside


@dataclass
class World(Moving):
    """One service and its replicas. `log` tells what happened, for whoever reads a failing example."""

    def __post_init__(self) -> None:
        if not self.versions:
            self.versions = {1: Version(1, 1, self.service.surge, self.service.policy, RolloutMode.ROLLING)}
            self.roll(RolloutKind.FIRST, 1, None)

    # What happens

    def put(self, changed: ReplicaView) -> None:
        """Store a replica, and refuse what no database would take: an end that changes, an outcome overwritten."""
        before = self.replicas.get(changed.id)
        if before is not None:
            assert not before.state.ended or before.state is changed.state, f"{before} became {changed}"
            assert before.outcome in (None, changed.outcome), f"outcome of {before} overwritten: {changed}"
        if changed.state.ended:
            assert changed.operation is None, f"ended with a live operation: {changed}"
        self.replicas[changed.id] = changed

    def trigger(self, number: int, name: str, reason: str = "", **fields: object) -> bool:
        """Something happens to a replica; False when the replica is past it."""
        before = self.replicas[number]
        step = lifecycle.step(before.state, before.outcome, name)
        if step is None:
            return False
        self.log.append(f"replica {number}: {name}, {before.state} -> {step.state}")
        if step.state is S.READY and before.ready_at is None:
            fields["ready_at"] = self.now
        if step.state is S.READY:
            fields["probed_at"] = self.now
        if step.state.ended:
            fields["ended_at"] = self.now
        after = replace(
            before,
            state=step.state,
            outcome=step.outcome,
            state_since=self.now,
            reason=reason or before.reason,
            **fields,
        )
        self.put(after)
        return True

    def begin(self, kind: OperationKind, number: int) -> OperationView:
        """A new live operation."""
        self.operations += 1
        return OperationView(self.operations, kind, OperationStatus.QUEUED, self.service.id, number, self.now)

    def wait(self, seconds: float, *, blind: bool = False) -> None:
        """Time passes, and every replica is probed at its end; `blind`: nobody probes, and nobody sees anything."""
        self.log.append(f"{seconds:g} s pass" + (" without a probe" if blind else ""))
        self.now += timedelta(seconds=seconds)
        if blind:
            return
        for row in self.in_state(S.READY):
            self.probe_ready(row)

    def probe_ready(self, row: ReplicaView) -> None:
        """A replica that is ready is asked whether it still is; that of a bad version is not, or has died."""
        if self.versions[row.version].bad == "never":
            self.trigger(row.id, "probe_failed", "HTTP 500")
        elif self.is_dead(row):
            self.trigger(row.id, "exited", "exit code 7")
        else:
            self.put(replace(row, probed_at=self.now))

    def is_dead(self, row: ReplicaView) -> bool:
        """Whether it has died, seen or not: that of a version that is ready and dies does so after 5 s."""
        late = self.versions[row.version].bad == "late" and self.now - row.state_since >= timedelta(seconds=5)
        return row.state.ended or (row.state is S.READY and late)

    def answering(self) -> list[ReplicaView]:
        """Those that get traffic and can answer it, whatever the rows say."""
        return [row for row in self.serving() if not self.is_dead(row)]

    # The controller

    def decide(self) -> Plan:
        return plan(self.seen(), list(self.replicas.values()), self.now)

    def apply(self, decided: Plan) -> None:
        for action in decided.actions:
            self.log.append(f"planner: {action}")
            if isinstance(action, Create):
                self._create(action)
            elif isinstance(action, OnRollout):
                self._move_on(action)
            elif self.replicas[action.replica_id].state in action.sources:
                self._apply_one(action)

    def settle(
        self, check: Callable[[Plan], None] = lambda decided: None, deed: Callable[[Plan], None] | None = None
    ) -> None:
        """Let the controller tick until nothing is left to do now; `deed` carries a plan out in place of `apply`."""
        for _ in range(SETTLES_WITHIN):
            decided = self.decide()
            if not decided.actions:
                return
            check(decided)
            (deed or self.apply)(decided)
        raise AssertionError(f"the planner does not come to rest: {self.decide().actions}")

    def _create(self, action: Create) -> None:
        number = max(self.replicas, default=0) + 1
        self.put(
            ReplicaView(
                id=number,
                number=number,
                version=action.version,
                state=S.PENDING,
                state_since=self.now,
                created_at=self.now,
                restarts=action.restarts,
                replaces=action.replaces,
                spot=action.spot,
                operation=self.begin(OperationKind.LAUNCH, number),
            )
        )

    def _apply_one(self, action: Action) -> None:
        before = self.replicas[action.replica_id]
        match action:
            case Adopt():
                self.put(replace(before, version=action.version, adopted_at=self.now))
            case BeginDown():
                assert before.operation is None, f"a second live operation for {before}"
                self.put(replace(before, operation=self.begin(OperationKind.DOWN, before.id)))
            case Withdraw():
                self.trigger(before.id, action.trigger, action.reason, operation=None)
            case Cancel():
                cancelling = replace(before.operation, cancelling=True) if before.operation else None
                if not self.trigger(before.id, action.trigger, action.reason, operation=cancelling):
                    self.put(replace(before, operation=cancelling))
            case Drain() | Retire() | Drained():
                self.trigger(before.id, action.trigger, action.reason)

    # Jobs

    def job_step(self, number: int, *, fails: bool = False) -> None:
        """The job of the live operation goes one step on."""
        row = self.replicas[number]
        assert row.operation is not None
        if row.operation.kind is OperationKind.DOWN:
            self._end(number, "cleanup_failed" if fails else "gone")
        elif row.state is S.PENDING:
            running = replace(row.operation, status=OperationStatus.RUNNING)
            self.trigger(number, "launch_begun", operation=running)
        elif row.operation.cancelling or row.state is S.SHUTTING_DOWN:
            self._end(number, "cleanup_failed" if fails else "gone")
        elif fails:
            self.trigger(number, "launch_failed", "no port is free", operation=None)
        else:
            self.trigger(number, "launched", operation=None)

    def _end(self, number: int, name: str) -> None:
        if not self.trigger(number, name, operation=None):
            # A launch that was cancelled though nobody took the replica away yet: it ends on its own.
            self.trigger(number, "retired", "its launch was cancelled", operation=None)

    def serve(self, number: int, in_flight: int) -> None:
        """Traffic as it was last measured."""
        self.log.append(f"replica {number}: {in_flight} in flight")
        self.put(replace(self.replicas[number], in_flight=in_flight))

    def lose_operation(self, number: int) -> None:
        """The operation is gone without a result: nobody works on the replica any more."""
        self.log.append(f"the operation of replica {number} is gone")
        self.put(replace(self.replicas[number], operation=None))

    def cancel_launch(self, number: int) -> None:
        """A user cancels the launch operation."""
        row = self.replicas[number]
        self.log.append(f"the launch of replica {number} is cancelled")
        self.put(replace(row, operation=replace(row.operation, cancelling=True)))

    # Health

    def heal(
        self,
        check: Callable[[Plan], None] = lambda decided: None,
        deed: Callable[[Plan], None] | None = None,
        until_quiet: int = 2500,
    ) -> None:
        """From here on nothing breaks but bad versions, and people see to what waits for them."""
        for _ in range(until_quiet):
            self.settle(check, deed)
            if self._work_one() or self._see_to_it():
                continue
            decided = self.decide()
            if decided.wake_at is None and not any(self.versions[row.version].bad for row in self.in_state(S.READY)):
                return
            if decided.wake_at is None:
                self.wait(5)  # what does not work will show it
                continue
            self.wait((decided.wake_at - self.now).total_seconds())
        raise AssertionError("the service never comes to rest:\n" + "\n".join(self.log[-60:]))

    def _see_to_it(self) -> bool:
        """What a person does: resumes, promotes, corrects a version that cannot work and has none to go back to."""
        if self.service.desired is Desired.DOWN:
            return False
        rollout = self.rollout
        if self.decide().halted or (self.versions[self.service.version].bad and not rollout.good_version):
            self.update(replace(self.versions[self.service.version], text=self.fresh(), process=self.fresh(), bad=""))
            return True
        if rollout.state is RolloutState.PROGRESSING and rollout.paused_at:
            self.resume()
            return True
        canary = self.service.policy.canary and self.service.target and rollout.mode is RolloutMode.ROLLING
        waits = rollout.state is RolloutState.PROGRESSING and not rollout.promoted_at
        if canary and waits and self.decide().wake_at is None:
            self.promote()
            return True
        return False

    def _work_one(self) -> bool:
        for row in self.live():
            if row.operation is not None:
                self.job_step(row.id)
                return True
            if row.state in (S.STARTING, S.NOT_READY):
                self.probe(row.id)
                return True
        return False

    def probe(self, number: int) -> None:
        """A replica is asked whether it is ready; that of a bad version never is, and ends."""
        row = self.replicas[number]
        if self.versions[row.version].bad != "never":
            self.trigger(number, "probe_passed")
        else:
            self.trigger(number, "probe_exhausted" if row.state is S.NOT_READY else "initial_delay_passed", "HTTP 500")
