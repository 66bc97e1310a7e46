"""A model of everything around the planner: rows, jobs, probes, users and faults, without clock, database or process.

The planner's actions are applied as the controller applies them: each is void unless the replica is still in one of its
sources. Every move keeps the book that the invariants are read from.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from replicas.core import lifecycle
from replicas.core.beginning import Group, begin, good_version
from replicas.core.planner import (
    Action,
    Adopt,
    BeginDown,
    Cancel,
    Create,
    Drain,
    Drained,
    Fail,
    OnRollout,
    Plan,
    Progress,
    Promote,
    Retire,
    Rollback,
    Succeed,
    Switch,
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
    RestartPolicy,
    RolloutPolicy,
    RolloutView,
    ServiceView,
    Surge,
)
from tests.core.cast import NOW, web

S = ReplicaState
LAUNCHING = frozenset({S.PENDING, S.PROVISIONING})
WAY_OUT = frozenset({S.DRAINING, S.SHUTTING_DOWN})
SETTLES_WITHIN = 12  # passes of the planner between two things that happen outside


@dataclass(frozen=True)
class Version:
    """What a version is in the model. `text` and `process`: equal ones ask for the same.

    `bad`: "" works; "never" is never ready; "late" is ready and exits some seconds after.
    """

    text: int
    process: int
    surge: Surge
    policy: RolloutPolicy
    mode: RolloutMode
    bad: str = ""


@dataclass
class World:
    """One service and its replicas. `log` tells what happened, for whoever reads a failing example."""

    service: ServiceView = field(default_factory=lambda: web(target=2, surge=Surge(1, 0), restart=RestartPolicy()))
    replicas: dict[int, ReplicaView] = field(default_factory=dict)
    now: datetime = NOW
    log: list[str] = field(default_factory=list)
    operations: int = 0
    versions: dict[int, Version] = field(default_factory=dict)
    rollouts: list[RolloutView] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.versions:
            self.versions = {1: Version(1, 1, self.service.surge, self.service.policy, RolloutMode.ROLLING)}
            self.roll(RolloutKind.FIRST, 1, None)

    # What can be seen

    @property
    def rollout(self) -> RolloutView:
        return self.rollouts[-1]

    def seen(self) -> ServiceView:
        """The service as the controller reads it."""
        own = self.versions[self.service.version].process
        fits = {row.version for row in self.live() if self.versions[row.version].process == own}
        good = self.rollout.good_version
        return replace(
            self.service,
            compatible=frozenset(fits - {self.service.version}),
            rollout=self.rollout,
            good_fits=good != 0 and self.versions[good].process == own,
        )

    def listed(self, version: int) -> bool:
        """True when READY replicas of the version get traffic, told without the product's own rule."""
        rollout = self.rollout
        own = self.versions[version].process == self.versions[rollout.to_version].process
        if rollout.mode is not RolloutMode.BLUE_GREEN:
            return version not in rollout.held
        if rollout.switched_at:
            return own
        return version not in rollout.held and version != rollout.to_version

    def serving(self) -> list[ReplicaView]:
        """The replicas that get traffic."""
        return [row for row in self.in_state(S.READY) if self.listed(row.version)]

    def unsettled(self) -> bool:
        """True while the rollout may need two sides."""
        rollout = self.rollout
        if rollout.state is RolloutState.FAILED:
            return rollout.good_version != 0
        return rollout.state is RolloutState.PROGRESSING and rollout.kind is not RolloutKind.FIRST

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
        own = self.versions[self.service.version].process
        return self.versions[row.version].process == own and row.state not in WAY_OUT and not self.doomed(row)

    def doomed(self, row: ReplicaView) -> bool:
        """True for a replica that somebody other than the planner has sent away."""
        lost = row.state in LAUNCHING and (row.operation is None or row.operation.cancelling)
        return row.retire_reason is not None or lost

    def surge(self) -> Surge:
        """The bounds that count."""
        surge = self.service.surge
        if self.service.policy.one_port:
            return Surge(0, max(1, surge.max_unavailable))
        return surge if surge.max_surge or surge.max_unavailable else Surge(0, 1)

    def bound(self) -> int:
        """How many replicas may be alive because the planner launched them."""
        if not self.mixed() and not self.unsettled():
            return self.service.target
        if self.rollout.mode is RolloutMode.BLUE_GREEN:
            return 2 * self.service.target
        return self.service.target + self.surge().max_surge

    def floor(self) -> int:
        """How many replicas must keep getting traffic as far as it is up to the planner."""
        moving = self.mixed() or self.unsettled()
        return self.service.target - (self.surge().max_unavailable if moving else 0)

    def clock_was_set_back(self) -> bool:
        """True when rows speak of a moment that has not come yet."""
        moments = [row.state_since for row in self.replicas.values()]
        moments += [self.rollout.started_at, self.rollout.progressed_at]
        return max(*moments, self.service.forgiven_at or self.now, self.now) > self.now

    def unforgiven_failures(self, version: int | None = None) -> list[ReplicaView]:
        """Failures of a version (None: the active one) since the user began anew, told without the product."""
        since = self.service.forgiven_at
        ends = {S.FAILED, S.FAILED_PROVISION, S.FAILED_INITIAL_DELAY, S.FAILED_PROBING}
        return [
            r
            for r in self.replicas.values()
            if r.version == (version or self.service.version)
            and (r.state in ends or (r.state is S.FAILED_CLEANUP and r.outcome in ends))
            and (since is None or r.ended_at > since)
        ]

    def open_failures(self, version: int | None = None) -> list[ReplicaView]:
        """Those of them whose place nobody has taken."""
        taken = {r.replaces for r in self.replicas.values()}
        return [r for r in self.unforgiven_failures(version) if r.number not in taken]

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
        for row in self.in_state(S.READY):
            bad = self.versions[row.version].bad
            if bad == "never":
                self.trigger(row.id, "probe_failed", "HTTP 500")
            elif bad == "late" and self.now - row.state_since >= timedelta(seconds=5):
                self.trigger(row.id, "exited", "exit code 7")

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
                operation=self.begin(OperationKind.LAUNCH, number),
            )
        )

    def _move_on(self, action: OnRollout) -> None:
        if isinstance(action, Rollback):
            if action.rollout_id == self.rollout.id and self.rollout.state is RolloutState.FAILED:
                self.go_back(self.rollout.good_version)
            return
        if (action.rollout_id, action.revision) != (self.rollout.id, self.rollout.revision):
            return
        if self.rollout.state is not RolloutState.PROGRESSING:
            return
        match action:
            case Progress():
                self._change_rollout(best=action.best, progressed_at=self.now)
            case Promote():
                self._change_rollout(promoted_at=self.now, progressed_at=self.now)
            case Switch():
                if self.ready(self.service.version) >= action.least:
                    self._change_rollout(switched_at=self.now, progressed_at=self.now)
            case Succeed():
                self._change_rollout(state=RolloutState.SUCCEEDED, ended_at=self.now)
            case Fail():
                self._change_rollout(state=RolloutState.FAILED, ended_at=self.now, reason=action.reason)

    def _change_rollout(self, **fields: object) -> None:
        rollout = self.rollout
        self.log.append(f"rollout {rollout.id}: {fields}")
        self.rollouts[-1] = replace(rollout, revision=rollout.revision + 1, **fields)

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

    # Users

    def scale(self, target: int) -> None:
        if target > self.service.target and self.rollout.state is RolloutState.PROGRESSING:
            self._change_rollout(progressed_at=self.now)
        self._want(f"scale to {target}", target=target)

    def terminate(self, number: int) -> None:
        self.log.append(f"terminate replica {number}")
        self.put(replace(self.replicas[number], retire_reason="a user asked for it"))

    def update(self, made: Version) -> None:
        """A new version becomes the wanted one."""
        self._make(made, RolloutKind.UPDATE)

    def restart(self) -> None:
        """A new version with the same text, which no replica fits."""
        self._make(replace(self.versions[self.service.version], process=self.fresh()), RolloutKind.RESTART)

    def go_back(self, number: int) -> None:
        """A new version with the text of an earlier one; to one that never proved itself as in an update."""
        old = self.versions[number]
        good = {r.to_version for r in self.rollouts if r.state is RolloutState.SUCCEEDED and r.best}
        proved = number == self.rollout.good_version or any(self.versions[n].text == old.text for n in good)
        self._make(old, RolloutKind.ROLLBACK if proved else RolloutKind.UPDATE)

    def abort(self) -> None:
        """Somebody gives the rollout up."""
        good = self.rollout.good_version
        if self.rollout.state is not RolloutState.PROGRESSING or not good:
            return
        same = self.versions[good].text == self.versions[self.service.version].text
        if not (self.rollout.kind is RolloutKind.ROLLBACK and same):
            self._change_rollout(state=RolloutState.ABORTED, ended_at=self.now)
            self.go_back(good)

    def pause(self) -> None:
        if self.rollout.state is RolloutState.PROGRESSING and not self.rollout.paused_at:
            self._change_rollout(paused_at=self.now)

    def resume(self) -> None:
        if self.rollout.state is RolloutState.PROGRESSING and self.rollout.paused_at:
            self._change_rollout(paused_at=None, progressed_at=self.now)

    def promote(self) -> None:
        rollout = self.rollout
        promotable = rollout.mode is not RolloutMode.BLUE_GREEN or rollout.switched_at
        if rollout.state is RolloutState.PROGRESSING and not rollout.promoted_at and promotable:
            self._change_rollout(promoted_at=self.now, progressed_at=self.now)

    def fresh(self) -> int:
        """A text or a process that there is not yet."""
        return 1 + max(max(v.text, v.process) for v in self.versions.values())

    def _make(self, made: Version, kind: RolloutKind) -> None:
        if self.service.desired is Desired.DOWN:
            return
        number = max(self.versions) + 1
        self.versions[number] = made
        self.roll(kind, number, self.service.version)
        self._want(
            f"version {number}: {made}",
            version=number,
            surge=made.surge,
            policy=made.policy,
            forgiven_at=self.now,
        )

    def roll(self, kind: RolloutKind, number: int, before: int | None) -> None:
        """A rollout to the version begins, and supersedes the one that goes on."""
        made = self.versions[number]
        good = good_version(reversed(self.rollouts))
        rows = {row.version for row in self.staying()} if before else set()
        there = [Group(version, str(self.versions[version].process), self.listed(version)) for version in sorted(rows)]
        if self.rollouts and self.rollout.state is RolloutState.PROGRESSING:
            self._change_rollout(state=RolloutState.SUPERSEDED, ended_at=self.now)
        begun = begin(
            there,
            str(made.process),
            before=str(self.versions[before].process) if before else None,
            asked=made.mode,
            good=good,
            one_port=made.policy.one_port,
        )
        self.rollouts.append(
            RolloutView(
                id=len(self.rollouts) + 1,
                revision=1,
                kind=kind,
                mode=begun.mode,
                state=RolloutState.PROGRESSING,
                from_version=before or 0,
                to_version=number,
                good_version=good,
                started_at=self.now,
                progressed_at=self.now,
                held=frozenset(begun.held),
                switched_at=self.now if begun.switched else None,
            )
        )
        self.log.append(f"rollout begins: {self.rollout}")

    def want(self, desired: Desired) -> None:
        if desired is self.service.desired:
            return
        forgiven_at = self.now if desired is Desired.UP else self.service.forgiven_at
        if desired is Desired.DOWN and self.rollout.state is RolloutState.PROGRESSING:
            self._change_rollout(state=RolloutState.ABORTED, ended_at=self.now)
        if desired is Desired.UP:
            self.roll(RolloutKind.FIRST, self.service.version, None)
        self._want(f"desired {desired}", desired=desired, forgiven_at=forgiven_at)

    def _want(self, what: str, **fields: object) -> None:
        self.log.append(what)
        self.service = replace(self.service, **fields)
        self.now += timedelta(milliseconds=1)  # what comes next is later than the wish

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
            if decided.wake_at is None:
                return
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
