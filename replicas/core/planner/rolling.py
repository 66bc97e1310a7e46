"""How many replicas of each side a rollout allows: capacity and surge are held, whatever fails on the way."""

from dataclasses import dataclass
from datetime import datetime

from replicas.core.backoff import waits_until
from replicas.core.planner.fleet import Fleet, count_ready, given_up
from replicas.core.planner.launching import find_gaps, find_gone
from replicas.core.planner.proof import Proof
from replicas.core.rollout import canaries
from replicas.core.values import RolloutKind, RolloutMode, RolloutState
from replicas.core.views import ReplicaView, RolloutView, ServiceView, Surge


@dataclass(frozen=True, slots=True)
class Allowance:
    """`live`: replicas that may be alive in all; `new` and `old`: how many of each side may stay.

    `back`: the missing ones of the old side are made, of the good version. `growing` False: no new one is made.
    `still`: nothing is taken away to make room, and so many `idle` ones, which get no traffic, stay too.
    `kept_until`: when the old ones' time after a switch is over.
    """

    live: int
    new: int
    old: int
    back: bool = False
    growing: bool = True
    still: bool = False
    idle: int = 0
    kept_until: datetime | None = None


def allow(service: ServiceView, fleet: Fleet, proof: Proof, halted: bool, now: datetime) -> Allowance:
    """What the active version and the others may have now.

    Without another version alive, and none to be brought back, that is the target. Else by the mode; see docs/rollouts.
    """
    rollout = service.rollout
    if service.target == 0:
        return Allowance(live=_most(service), new=0, old=0)
    if rollout is not None and given_up(service):
        return _after_failure(service, rollout, fleet, proof, now)
    if rollout is not None and rollout.state is RolloutState.PROGRESSING and rollout.paused_at is not None:
        return _while_paused(service, rollout, fleet, proof, halted, now)
    if rollout is not None and rollout.mode is RolloutMode.BLUE_GREEN:
        return _blue_green(service, rollout, fleet, now)
    return _rolling(service, rollout, fleet, proof, halted)


def possible(service: ServiceView) -> Surge:
    """Bounds under which an update can move: both 0 would allow nothing, so one may be missing (as in Kubernetes).

    Replicas that listen on the same port cannot run side by side: the old one goes first.
    """
    surge = Surge(max(0, service.surge.max_surge), max(0, service.surge.max_unavailable))
    if service.policy.one_port:
        return Surge(0, max(1, surge.max_unavailable))
    return surge if surge.max_surge or surge.max_unavailable else Surge(0, 1)


def floor(service: ServiceView) -> int:
    """How many replicas must stay ready, as far as it is up to the rollout."""
    return max(0, service.target - possible(service).max_unavailable)


def returns(service: ServiceView) -> bool:
    """True when there is a good version whose replicas can stand beside those of the active one."""
    rollout = service.rollout
    if rollout is None or not rollout.good_version or rollout.good_version == service.version:
        return False
    if rollout.state is RolloutState.FAILED:
        return True
    return rollout.state is RolloutState.PROGRESSING and rollout.kind is not RolloutKind.FIRST and not service.good_fits


def in_canary(service: ServiceView) -> int | None:
    """How many new replicas there may be until the promotion; None where nothing waits for one."""
    rollout = service.rollout
    if rollout is None or rollout.promoted_at is not None or not returns(service):
        return None
    if rollout.kind is not RolloutKind.UPDATE or rollout.mode is not RolloutMode.ROLLING:
        return None
    return canaries(service.policy.canary, service.target)


def keepable(service: ServiceView, old: tuple[ReplicaView, ...]) -> tuple[ReplicaView, ...]:
    """The old ones that are worth waiting for: they have been ready, or are of the good version."""
    good = service.rollout.good_version if service.rollout and returns(service) else None
    return tuple(replica for replica in old if replica.ready_at is not None or replica.version == good)


def _rolling(service: ServiceView, rollout: RolloutView | None, fleet: Fleet, proof: Proof, halted: bool) -> Allowance:
    """The rule of Kubernetes' Deployments ("Rolling update"), with replicas that have proved themselves for ready ones.

    At most target + max_surge alive, and old ones make room only as far as target - max_unavailable stay. A version
    that was given up does not take from the old ones at all.
    """
    bounds, target = possible(service), service.target
    canary = in_canary(service)
    back = returns(service) and rollout is not None and (rollout.best == 0 or canary is not None)
    if not fleet.old and not fleet.held and not back and not _foreign(service, fleet):
        return Allowance(live=target, new=target, old=0)
    live = target + bounds.max_surge
    least = target if halted else target - bounds.max_unavailable
    needed = max(0, least - proof.proven)
    if canary is not None:
        needed = max(needed, min(target, live - canary))
    old = needed if back else min(needed, len(keepable(service, fleet.old)))
    new = min(target, live - old, target if canary is None else canary)
    return Allowance(live=live, new=max(0, new), old=old, back=back)


def _blue_green(service: ServiceView, rollout: RolloutView, fleet: Fleet, now: datetime) -> Allowance:
    """Two whole sets until the switch; the old one is kept for a while after it."""
    target = service.target
    if rollout.switched_at is None:
        back = returns(service)
        old = target if back else min(target, len(keepable(service, fleet.old)))
        return Allowance(live=2 * target, new=target, old=old, back=back)
    until = None
    if rollout.promoted_at is None and rollout.state is RolloutState.PROGRESSING:
        until = waits_until(rollout.switched_at, service.policy.keep_old_seconds, now)
    old = min(target, len(fleet.old)) if until is not None else 0
    others = fleet.old or fleet.held or _foreign(service, fleet)
    return Allowance(live=2 * target if others else target, new=target, old=old, kept_until=until)


def _while_paused(
    service: ServiceView, rollout: RolloutView, fleet: Fleet, proof: Proof, halted: bool, now: datetime
) -> Allowance:
    """Each side stays as large as it is; what died of it is replaced, and a new target is met by the good version."""
    target, live = service.target, _most(service)
    back = returns(service) and rollout.switched_at is None
    others = len(fleet.old)
    if not others and not fleet.held and not back:
        return Allowance(live=live if _foreign(service, fleet) else target, new=target, old=0, still=True)
    gone = len(find_gaps(service, fleet, now, service.version)) + len(find_gone(fleet, service.version))
    side = min(target, len(fleet.new) + (0 if halted else gone))
    if rollout.mode is RolloutMode.BLUE_GREEN:
        old, new = target if back else min(target, others), target if rollout.switched_at else side
    else:
        excess = max(0, others + len(fleet.new) - live)
        kept = max(min(others, floor(service) - proof.proven), others - excess)
        old = max(kept, min(target - proof.proven, live - side) if back else 0)
        new = max(0, min(side, live - old))
    idle = max(0, live - max(old, others) - max(new, len(fleet.new)))
    return Allowance(live=live, new=new, old=old, back=back, still=True, idle=min(idle, len(fleet.held)))


def _after_failure(service: ServiceView, rollout: RolloutView, fleet: Fleet, proof: Proof, now: datetime) -> Allowance:
    """The new version is launched no more: of it stays what serves, the rest is filled with the good version.

    After a switch nothing else is listed, so that it goes on as it is.
    """
    target = service.target
    if rollout.switched_at is not None:
        return _blue_green(service, rollout, fleet, now)
    serving = 0 if rollout.mode is RolloutMode.BLUE_GREEN else min(target, count_ready(fleet.new))
    proven = min(serving, proof.proven)
    return Allowance(live=_most(service), new=serving, old=target - proven, back=True, growing=False)


def _most(service: ServiceView) -> int:
    """How many may be alive while there are two sides."""
    rollout = service.rollout
    if rollout is not None and rollout.mode is RolloutMode.BLUE_GREEN:
        return 2 * service.target
    return service.target + possible(service).max_surge


def _foreign(service: ServiceView, fleet: Fleet) -> bool:
    """True while a replica of another version is on its way out."""
    return any(replica.version != service.version for replica in fleet.leaving)
