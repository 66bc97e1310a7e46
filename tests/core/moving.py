"""What people do to the service of the model world, and the rollouts that come of it."""

from dataclasses import replace
from datetime import timedelta

from replicas.core.beginning import Group, begin, good_version
from replicas.core.planner import (
    Fail,
    OnRollout,
    Progress,
    Promote,
    Rollback,
    Succeed,
    Switch,
)
from replicas.core.values import (
    Desired,
    RolloutKind,
    RolloutMode,
    RolloutState,
)
from replicas.core.views import (
    RolloutView,
)
from tests.core.rows import Rows, Version


class Moving(Rows):
    """Rows with wishes: targets, versions, rollouts."""

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

    # What the controller decided of rollouts

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
