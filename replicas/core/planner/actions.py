"""What a plan can ask for: one small value per action, each with the sentence that the user reads."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from replicas.core.values import ReplicaState

S = ReplicaState


@dataclass(frozen=True, slots=True)
class Create:
    """Make a PENDING replica of `version` together with its QUEUED launch operation, in one transaction.

    `replaces` is the number of the ended replica whose place it takes, `restarts` the failures in a row before it.
    `spot`: it is to be spot, False: on demand; None: as its resources say.
    """

    version: int
    replaces: int | None
    restarts: int
    reason: str
    spot: bool | None = None


@dataclass(frozen=True, slots=True)
class Withdraw:
    """End a replica whose launch has not begun; its operation is cancelled with it."""

    replica_id: int
    reason: str
    trigger: ClassVar[str] = "withdrawn"
    sources: ClassVar[frozenset[ReplicaState]] = frozenset({S.PENDING})


@dataclass(frozen=True, slots=True)
class Cancel:
    """Give up a launch in flight: the trigger, and a cancel request on the launch operation where one is live.

    The job of the operation cleans up and ends both. In SHUTTING_DOWN only the request is missing.
    """

    replica_id: int
    reason: str
    trigger: ClassVar[str] = "retired"
    sources: ClassVar[frozenset[ReplicaState]] = frozenset({S.PROVISIONING, S.SHUTTING_DOWN})


@dataclass(frozen=True, slots=True)
class Drain:
    """Take a replica out of service and let its work in flight end."""

    replica_id: int
    reason: str
    trigger: ClassVar[str] = "drain_begun"
    sources: ClassVar[frozenset[ReplicaState]] = frozenset({S.READY, S.NOT_READY})


@dataclass(frozen=True, slots=True)
class Retire:
    """Take down a replica that serves nothing."""

    replica_id: int
    reason: str
    trigger: ClassVar[str] = "retired"
    sources: ClassVar[frozenset[ReplicaState]] = frozenset({S.STARTING, S.NOT_READY})


@dataclass(frozen=True, slots=True)
class Drained:
    """End a drain: nothing is in flight, nothing measures it, or its time is over."""

    replica_id: int
    reason: str
    trigger: ClassVar[str] = "drained"
    sources: ClassVar[frozenset[ReplicaState]] = frozenset({S.DRAINING})


@dataclass(frozen=True, slots=True)
class BeginDown:
    """Make the DOWN operation of a replica in SHUTTING_DOWN that has no live operation. No trigger."""

    replica_id: int
    reason: str
    trigger: ClassVar[None] = None
    sources: ClassVar[frozenset[ReplicaState]] = frozenset({S.SHUTTING_DOWN})


@dataclass(frozen=True, slots=True)
class Adopt:
    """Give a running replica the number of a version that asks for the same process. No trigger."""

    replica_id: int
    version: int
    reason: str
    trigger: ClassVar[None] = None
    sources: ClassVar[frozenset[ReplicaState]] = frozenset(
        {S.PENDING, S.PROVISIONING, S.STARTING, S.READY, S.NOT_READY}
    )


@dataclass(frozen=True, slots=True)
class Progress:
    """Keep that so many replicas of the new version have proved themselves, more than ever before."""

    rollout_id: int
    revision: int
    best: int
    reason: str


@dataclass(frozen=True, slots=True)
class Promote:
    """The canary has proved itself: let the new version grow beyond it."""

    rollout_id: int
    revision: int
    reason: str


@dataclass(frozen=True, slots=True)
class Switch:
    """From now on the new version is listed and no other; void unless `least` of its replicas are READY then."""

    rollout_id: int
    revision: int
    least: int
    reason: str


@dataclass(frozen=True, slots=True)
class Succeed:
    """The new version has taken over."""

    rollout_id: int
    revision: int
    reason: str


@dataclass(frozen=True, slots=True)
class Fail:
    """The new version is given up."""

    rollout_id: int
    revision: int
    reason: str


@dataclass(frozen=True, slots=True)
class Rollback:
    """Go back to the good version of a rollout that has failed; void unless that is still the latest."""

    rollout_id: int
    reason: str


Leave = Withdraw | Cancel | Drain | Retire
OnReplica = Withdraw | Cancel | Drain | Retire | Drained | BeginDown | Adopt
OnRollout = Progress | Promote | Switch | Succeed | Fail | Rollback
Action = Create | OnReplica | OnRollout


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do now, in this order, and what only time would change.

    An action on a replica is void unless the replica is still in one of its `sources` when it is applied; one on the
    rollout is void once that is at another revision.
    `wake_at`: the next moment at which time alone would change the plan. `notes`: what waits, and for what; the text
    stays the same while nothing changes. `halted`: why nothing more is launched, None while launches go on.
    """

    actions: tuple[Action, ...] = ()
    wake_at: datetime | None = None
    notes: tuple[str, ...] = ()
    halted: str | None = None


def join(parts: Iterable[Plan]) -> Plan:
    """One plan out of parts: everything in order, the earliest wake-up, the first reason to halt."""
    parts = tuple(parts)
    return Plan(
        actions=tuple(action for part in parts for action in part.actions),
        wake_at=min((part.wake_at for part in parts if part.wake_at is not None), default=None),
        notes=tuple(note for part in parts for note in part.notes),
        halted=next((part.halted for part in parts if part.halted is not None), None),
    )
