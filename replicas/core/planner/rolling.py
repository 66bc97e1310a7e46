"""How many replicas of each side a rolling update allows: capacity and surge are held, whatever fails on the way."""

from dataclasses import dataclass

from replicas.core.planner.fleet import Fleet, count_ready
from replicas.core.values import ReplicaState
from replicas.core.views import ServiceView, Surge

S = ReplicaState
UNPROVEN = frozenset({S.PENDING, S.PROVISIONING, S.STARTING})


@dataclass(frozen=True, slots=True)
class Allowance:
    """`live`: replicas that may be alive in all; `new` and `old`: how many of each side may stay."""

    live: int
    new: int
    old: int


def allow(service: ServiceView, fleet: Fleet, halted: bool) -> Allowance:
    """What the active version and the others may have now.

    Without another version alive that is the target. Else the rule of Kubernetes' Deployments ("Rolling update"): at
    most target + max_surge alive, and old ones make room only as far as target - max_unavailable stay ready. A version
    that was given up does not take from the old ones at all.
    """
    foreign = [replica for replica in fleet.leaving if replica.version != service.version]
    if not fleet.old and not foreign:
        return Allowance(live=service.target, new=service.target, old=0)
    surge = possible(service.surge)
    unavailable = 0 if halted else surge.max_unavailable
    kept = max(0, service.target - unavailable - count_ready(fleet.new))
    old = min(kept, sum(replica.state not in UNPROVEN for replica in fleet.old))
    live = service.target + surge.max_surge
    return Allowance(live=live, new=min(service.target, live - old), old=old)


def possible(surge: Surge) -> Surge:
    """Bounds under which an update can move: both 0 would allow nothing, so one replica may be added."""
    if surge.max_surge <= 0 and surge.max_unavailable <= 0:
        return Surge(max_surge=1, max_unavailable=0)
    return Surge(max_surge=max(0, surge.max_surge), max_unavailable=max(0, surge.max_unavailable))
