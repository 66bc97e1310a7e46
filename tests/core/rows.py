"""The rows of the model world, and what can be seen in them without the product's own rules."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from replicas.core.values import (
    OperationKind,
    ReplicaState,
    RolloutKind,
    RolloutMode,
    RolloutState,
)
from replicas.core.views import (
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
class Rows:
    """One service and its replicas, versions and rollouts; `log` tells what happened."""

    service: ServiceView = field(default_factory=lambda: web(target=2, surge=Surge(1, 0), restart=RestartPolicy()))
    replicas: dict[int, ReplicaView] = field(default_factory=dict)
    now: datetime = NOW
    log: list[str] = field(default_factory=list)
    operations: int = 0
    versions: dict[int, Version] = field(default_factory=dict)
    rollouts: list[RolloutView] = field(default_factory=list)

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
        stand_ins = self.service.target if self.service.spot else 0
        if not self.mixed() and not self.unsettled():
            return self.service.target + stand_ins
        if self.rollout.mode is RolloutMode.BLUE_GREEN:
            return 2 * self.service.target + stand_ins
        return self.service.target + self.surge().max_surge + stand_ins

    def floor(self) -> int:
        """How many replicas must keep getting traffic as far as it is up to the planner."""
        moving = self.mixed() or self.unsettled()
        spare = self.service.spot.spare if self.service.spot else 0
        return self.service.target - spare - (self.surge().max_unavailable if moving else 0)

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
