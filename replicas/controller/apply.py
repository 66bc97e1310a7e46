"""Carries a plan out: each action through its door, in short transactions fenced by the controller's lease."""

from collections.abc import Callable, Sequence

from replicas.actions import leases, replicas, rollouts
from replicas.actions.transition import writing
from replicas.core.planner import (
    Action,
    Adopt,
    BeginDown,
    Cancel,
    Create,
    Drain,
    Drained,
    Fail,
    Progress,
    Promote,
    Retire,
    Rollback,
    Succeed,
    Switch,
    Withdraw,
)

ACTOR = "controller"
BATCH = 25  # actions in one transaction: few enough that nobody waits long for the write lock


class Deposed(Exception):
    """The lease went to another controller; nothing more may be written."""


class Applier:
    """Applies plans under one holding of the lease."""

    def __init__(self, lease: str, holder: str, fence: int) -> None:
        self.lease = lease
        self.holder = holder
        self.fence = fence

    def apply(self, service_id: int, actions: Sequence[Action]) -> None:
        """All actions in order. Raises Deposed, with the rest undone, when the lease is lost on the way."""
        for start in range(0, len(actions), BATCH):
            with writing():
                self.check()
                for action in actions[start : start + BATCH]:
                    DOORS[type(action)](service_id, action)

    def check(self) -> None:
        """Raises Deposed when this holder does not hold the lease any more."""
        if not leases.holds(self.lease, self.holder, self.fence):
            raise Deposed(f"the lease {self.lease} is no longer ours")


def create(service_id: int, action: Create) -> None:
    """A new replica with its launch."""
    replicas.create(
        service_id,
        action.version,
        replaces=action.replaces,
        restarts=action.restarts,
        reason=action.reason,
        actor=ACTOR,
        spot=action.spot,
    )


def withdraw(_service: int, action: Withdraw) -> None:
    """End one whose launch has not begun."""
    replicas.withdraw(action.replica_id, reason=action.reason, actor=ACTOR)


def leave(_service: int, action: Cancel | Drain | Retire | Drained) -> None:
    """Begin, or go on with, the end of one."""
    replicas.retire(action.replica_id, action.trigger, reason=action.reason, actor=ACTOR, among=action.sources)


def begin_down(_service: int, action: BeginDown) -> None:
    """Have it taken away."""
    replicas.begin_down(action.replica_id, reason=action.reason, actor=ACTOR)


def adopt(_service: int, action: Adopt) -> None:
    """Give it the number of the active version."""
    replicas.adopt(action.replica_id, action.version, reason=action.reason, actor=ACTOR)


def progress(_service: int, action: Progress) -> None:
    """Keep how far the rollout has come."""
    rollouts.progress(action.rollout_id, action.revision, action.best, reason=action.reason, actor=ACTOR)


def promote(_service: int, action: Promote) -> None:
    """Let the new version grow beyond its canary."""
    rollouts.promoted(action.rollout_id, action.revision, reason=action.reason, actor=ACTOR)


def switch(_service: int, action: Switch) -> None:
    """List the new version in place of the old one."""
    rollouts.switch(action.rollout_id, action.revision, least=action.least, reason=action.reason, actor=ACTOR)


def succeed(_service: int, action: Succeed) -> None:
    """The rollout has come to a good end."""
    rollouts.succeed(action.rollout_id, action.revision, reason=action.reason, actor=ACTOR)


def fail(_service: int, action: Fail) -> None:
    """The rollout is given up."""
    rollouts.fail(action.rollout_id, action.revision, reason=action.reason, actor=ACTOR)


def roll_back(_service: int, action: Rollback) -> None:
    """Make the good version the wanted one again."""
    rollouts.turn_back(action.rollout_id, reason=action.reason, actor=ACTOR)


DOORS: dict[type, Callable[..., None]] = {
    Create: create,
    Withdraw: withdraw,
    Cancel: leave,
    Drain: leave,
    Retire: leave,
    Drained: leave,
    BeginDown: begin_down,
    Adopt: adopt,
    Progress: progress,
    Promote: promote,
    Switch: switch,
    Succeed: succeed,
    Fail: fail,
    Rollback: roll_back,
}
