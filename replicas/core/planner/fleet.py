"""The replicas of a service, sorted by what the planner can still decide about them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from replicas.core.values import OperationKind, ReplicaState, RolloutState
from replicas.core.views import ReplicaView, ServiceView

S = ReplicaState

LAUNCHING = frozenset({S.PENDING, S.PROVISIONING})
WAY_OUT = frozenset({S.DRAINING, S.SHUTTING_DOWN})
RANK = {S.PENDING: 0, S.PROVISIONING: 1, S.STARTING: 2, S.NOT_READY: 3, S.READY: 4}


@dataclass(frozen=True, slots=True)
class Fleet:
    """`new` and `old` may stay; `unwanted` must go, each with its reason; `leaving` is on its way; `ended` is history.

    `new` is of the active version, or will be by adoption; `old` is of any other version; `held` of one that the
    rollout keeps from traffic.
    Everything but `ended` is alive and holds a place, until its down has ended.
    """

    new: tuple[ReplicaView, ...]
    old: tuple[ReplicaView, ...]
    unwanted: tuple[tuple[ReplicaView, str], ...]
    leaving: tuple[ReplicaView, ...]
    ended: tuple[ReplicaView, ...]
    held: tuple[ReplicaView, ...] = ()

    @property
    def live(self) -> int:
        """How many replicas hold a place."""
        return len(self.staying) + len(self.leaving)

    @property
    def staying(self) -> tuple[ReplicaView, ...]:
        """The live replicas whose end has not been decided."""
        return self.new + self.old + self.held + tuple(replica for replica, _ in self.unwanted)


def sort_out(service: ServiceView, replicas: Iterable[ReplicaView]) -> Fleet:
    """Put each replica where it belongs."""
    new: list[ReplicaView] = []
    old: list[ReplicaView] = []
    unwanted: list[tuple[ReplicaView, str]] = []
    leaving: list[ReplicaView] = []
    ended: list[ReplicaView] = []
    held: list[ReplicaView] = []
    ours = adopted(service) | {service.version}
    unlisted = service.rollout.held if service.rollout else frozenset()
    for replica in replicas:
        if replica.state.ended:
            ended.append(replica)
        elif replica.state in WAY_OUT or goes_down(replica):
            leaving.append(replica)
        elif reason := why_unwanted(replica):
            unwanted.append((replica, reason))
        elif replica.version in ours:
            new.append(replica)
        elif replica.version in unlisted:
            held.append(replica)
        else:
            old.append(replica)
    return Fleet(tuple(new), tuple(old), tuple(unwanted), tuple(leaving), tuple(ended), tuple(held))


def adopted(service: ServiceView) -> frozenset[int]:
    """The versions whose replicas the active one adopts: none while it is given up for a good one."""
    return frozenset() if given_up(service) else service.compatible


def given_up(service: ServiceView) -> bool:
    """True when the rollout has failed and there is a good version to fill its places with."""
    rollout = service.rollout
    return rollout is not None and rollout.state is RolloutState.FAILED and rollout.good_version != 0


def goes_down(replica: ReplicaView) -> bool:
    """True while a down works on the replica."""
    return replica.operation is not None and replica.operation.kind is OperationKind.DOWN


def why_unwanted(replica: ReplicaView) -> str | None:
    """Why a replica must go whatever the target is; None when it may stay."""
    if replica.retire_reason is not None:
        return replica.retire_reason or "it was asked to go"
    if replica.state in LAUNCHING and replica.operation is None:
        return "its launch operation is gone"
    if replica.state in LAUNCHING and replica.operation is not None and replica.operation.cancelling:
        return "its launch was cancelled"
    return None


def going_order(replicas: Iterable[ReplicaView]) -> Sequence[ReplicaView]:
    """Who goes first: by RANK, the least useful in front; then the oldest version; then the newest number.

    This is SkyServe's rule for scaling down.
    """
    return sorted(replicas, key=lambda replica: (RANK[replica.state], replica.version, -replica.number))


def count_ready(replicas: Iterable[ReplicaView]) -> int:
    """How many of them serve."""
    return sum(replica.state is S.READY for replica in replicas)
