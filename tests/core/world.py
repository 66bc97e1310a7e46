"""A model of everything around the planner: rows, jobs, probes, users and faults, without clock, database or process.

The planner's actions are applied as the controller applies them: each is void unless the replica is still in one of its
sources. Every move keeps the book that the invariants are read from.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from replicas.core import lifecycle
from replicas.core.planner import (
    Action,
    Adopt,
    BeginDown,
    Cancel,
    Create,
    Drain,
    Drained,
    Plan,
    Retire,
    Withdraw,
    plan,
)
from replicas.core.values import Desired, OperationKind, OperationStatus, ReplicaState
from replicas.core.views import OperationView, ReplicaView, RestartPolicy, ServiceView, Surge
from tests.core.cast import NOW, web

S = ReplicaState
LAUNCHING = frozenset({S.PENDING, S.PROVISIONING})
WAY_OUT = frozenset({S.DRAINING, S.SHUTTING_DOWN})
SETTLES_WITHIN = 8  # passes of the planner between two things that happen outside


@dataclass
class World:
    """One service and its replicas. `log` tells what happened, for whoever reads a failing example."""

    service: ServiceView = field(default_factory=lambda: web(target=2, surge=Surge(1, 0), restart=RestartPolicy()))
    replicas: dict[int, ReplicaView] = field(default_factory=dict)
    now: datetime = NOW
    log: list[str] = field(default_factory=list)
    operations: int = 0

    # What can be seen

    def live(self) -> list[ReplicaView]:
        return [r for r in self.replicas.values() if not r.state.ended]

    def staying(self) -> list[ReplicaView]:
        return [r for r in self.live() if r.state not in WAY_OUT]

    def in_state(self, *states: ReplicaState) -> list[ReplicaView]:
        return [r for r in self.replicas.values() if r.state in states]

    def ready(self, version: int | None = None) -> int:
        return sum(version in (None, r.version) for r in self.in_state(S.READY))

    def with_live(self, kind: OperationKind) -> list[ReplicaView]:
        return [r for r in self.replicas.values() if r.operation is not None and r.operation.kind is kind]

    def mixed(self) -> bool:
        """True while replicas are alive that the active version replaces: of other versions, and not to be adopted."""
        return any(r.version != self.service.version and not self._adoptable(r) for r in self.live())

    def _adoptable(self, row: ReplicaView) -> bool:
        return row.version in self.service.compatible and row.state not in WAY_OUT and not self.doomed(row)

    def doomed(self, row: ReplicaView) -> bool:
        """True for a replica that somebody other than the planner has sent away."""
        lost = row.state in LAUNCHING and (row.operation is None or row.operation.cancelling)
        return row.retire_reason is not None or lost

    def bound(self) -> int:
        """How many replicas may be alive because the planner launched them."""
        surge = self.service.surge
        if not self.mixed():
            return self.service.target
        return self.service.target + surge.max_surge

    def floor(self) -> int:
        """How many replicas must stay ready as far as it is up to the planner."""
        surge = self.service.surge
        missing = surge.max_unavailable or (0 if surge.max_surge else 1)
        return self.service.target - (missing if self.mixed() else 0)

    def clock_was_set_back(self) -> bool:
        """True when rows speak of a moment that has not come yet."""
        moments = [row.state_since for row in self.replicas.values()]
        return max(*moments, self.service.forgiven_at or self.now, self.now) > self.now

    def unforgiven_failures(self) -> list[ReplicaView]:
        """Failures of the active version since the user last began anew, told without the product's own counting."""
        since = self.service.forgiven_at
        ends = {S.FAILED, S.FAILED_PROVISION, S.FAILED_INITIAL_DELAY, S.FAILED_PROBING}
        return [
            r
            for r in self.replicas.values()
            if r.version == self.service.version
            and (r.state in ends or (r.state is S.FAILED_CLEANUP and r.outcome in ends))
            and (since is None or r.ended_at > since)
        ]

    def open_failures(self) -> list[ReplicaView]:
        """Those of them whose place nobody has taken."""
        taken = {r.replaces for r in self.replicas.values()}
        return [r for r in self.unforgiven_failures() if r.number not in taken]

    def held_until(self, row: ReplicaView) -> datetime:
        """When the place of a failed replica may be filled at the earliest."""
        served = (row.ended_at - row.ready_at).total_seconds() if row.ready_at else 0.0
        waits = (0, 10, 20, 40, 80, 160)
        count = 0 if served >= 600 else row.restarts
        return row.ended_at + timedelta(seconds=waits[count] if count < len(waits) else 300)

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

    def wait(self, seconds: float) -> None:
        self.log.append(f"{seconds:g} s pass")
        self.now += timedelta(seconds=seconds)

    # The controller

    def decide(self) -> Plan:
        return plan(self.service, list(self.replicas.values()), self.now)

    def apply(self, decided: Plan) -> None:
        for action in decided.actions:
            self.log.append(f"planner: {action}")
            if isinstance(action, Create):
                self._create(action)
            elif self.replicas[action.replica_id].state in action.sources:
                self._apply_one(action)

    def settle(self, check: Callable[[Plan], None] = lambda decided: None) -> None:
        """Let the controller tick until nothing is left to do now."""
        for _ in range(SETTLES_WITHIN):
            decided = self.decide()
            if not decided.actions:
                return
            check(decided)
            self.apply(decided)
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
                operation=self.begin(OperationKind.LAUNCH, number),
            )
        )

    def _apply_one(self, action: Action) -> None:
        before = self.replicas[action.replica_id]
        match action:
            case Adopt():
                self.put(replace(before, version=action.version))
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

    # Users

    def scale(self, target: int) -> None:
        self._want(f"scale to {target}", target=target)

    def terminate(self, number: int) -> None:
        self.log.append(f"terminate replica {number}")
        self.put(replace(self.replicas[number], retire_reason="a user asked for it"))

    def update(self, compatible: frozenset[int] = frozenset(), surge: Surge | None = None) -> None:
        number = self.service.version + 1
        self._want(
            f"version {number}, compatible with {sorted(compatible)}",
            version=number,
            compatible=compatible,
            surge=surge or self.service.surge,
            forgiven_at=self.now,
        )

    def restart(self) -> None:
        """A restart is a new version with the same text."""
        self.update()

    def want(self, desired: Desired) -> None:
        begun_anew = desired is Desired.UP and self.service.desired is Desired.DOWN
        forgiven_at = self.now if begun_anew else self.service.forgiven_at
        self._want(f"desired {desired}", desired=desired, forgiven_at=forgiven_at)

    def _want(self, what: str, **fields: object) -> None:
        self.log.append(what)
        self.service = replace(self.service, **fields)

    # Health

    def heal(self, check: Callable[[Plan], None] = lambda decided: None, until_quiet: int = 400) -> None:
        """From here on everything works: jobs succeed, probes pass, time passes when nothing else is left to happen."""
        for _ in range(until_quiet):
            self.settle(check)
            if self._work_one():
                continue
            decided = self.decide()
            if decided.halted:
                self.restart()
            elif decided.wake_at is None:
                return
            else:
                self.wait((decided.wake_at - self.now).total_seconds())
        raise AssertionError("the service never comes to rest:\n" + "\n".join(self.log[-60:]))

    def _work_one(self) -> bool:
        for row in self.live():
            if row.operation is not None:
                self.job_step(row.id)
                return True
            if row.state in (S.STARTING, S.NOT_READY):
                return self.trigger(row.id, "probe_passed")
        return False
