"""The planner: what is wanted of a service and what is there, turned into the next actions."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from replicas.core.backoff import CLOCK_STEP
from replicas.core.planner.actions import Adopt, Fail, Plan, Rollback, join
from replicas.core.planner.fleet import Fleet, given_up, going_order, sort_out
from replicas.core.planner.judging import judge
from replicas.core.planner.launching import halt, launch, launch_share
from replicas.core.planner.leaving import see_off, take_all, take_away
from replicas.core.planner.mixing import Share, share_out, tell_mix
from replicas.core.planner.proof import Proof, prove
from replicas.core.planner.rolling import Allowance, allow, keepable
from replicas.core.planner.telling import tell
from replicas.core.values import Desired, RolloutState
from replicas.core.views import ReplicaView, ServiceView
from replicas.core.wording import named


def plan(service: ServiceView, replicas: Sequence[ReplicaView], now: datetime) -> Plan:
    """Decide the next actions for a service.

    `replicas` are all live ones and the ended ones of late: the failures of the active version since `forgiven_at` and
    what replaced them must be among them. Replicas and their live operations come from one consistent read. Planning
    again after the actions were applied asks for nothing twice. Where the service was read just before another version
    was made the wanted one, and its rollout just after, nothing is decided on them.
    """
    service = _believe(service, now)
    fleet = sort_out(service, replicas)
    ending = see_off(service, fleet.leaving, now)
    if service.desired is Desired.DOWN:
        return join((ending, take_all(going_order(fleet.staying), "the service is being taken down")))
    asked = Plan(actions=tuple(take_away(replica, reason) for replica, reason in fleet.unwanted))
    if service.rollout is not None and service.rollout.to_version != service.version:
        return join((ending, asked, Plan(notes=("another version was made the wanted one at this moment",))))
    halted = None if given_up(service) else halt(service, fleet) or _ended_so(service)
    proof = prove(service, fleet.new, now)
    verdict = judge(service, fleet, proof, halted, now)
    if any(isinstance(action, Fail | Rollback) for action in verdict.actions):
        return join((ending, asked, verdict))  # what that means for the replicas is another plan
    allowance = allow(service, fleet, proof, halted is not None, now)
    shares = share_out(service, fleet.new, allowance.new) if allowance.growing else ()
    going, new, old = _choose(service, fleet, allowance, shares)
    notes = (*tell(service, fleet, proof, allowance, halted, now), *tell_mix(shares))
    return join(
        (
            Plan(notes=notes, wake_at=_look_again(proof, allowance, fleet)),
            verdict,
            ending,
            asked,
            going,
            _adopt(service, new),
            Plan(halted=halted),
            _launch(service, fleet, allowance, (len(new), len(old)), () if halted else shares, now, halted is not None),
        )
    )


def _believe(service: ServiceView, now: datetime) -> ServiceView:
    """Forgiveness from the future (the clock was set back) would forgive each failure to come: it is left out."""
    if service.forgiven_at is not None and service.forgiven_at > now + CLOCK_STEP:
        return replace(service, forgiven_at=None)
    return service


def _ended_so(service: ServiceView) -> str | None:
    """Why nothing is launched after a rollout that failed with nothing to fall back on, also when its failures are
    history by now.
    """
    rollout = service.rollout
    if rollout is None or rollout.state is not RolloutState.FAILED or rollout.to_version != service.version:
        return None
    return rollout.reason or f"version {service.version} was given up"


def _look_again(proof: Proof, allowance: Allowance, fleet: Fleet) -> datetime | None:
    """When time alone makes room: a new one proves itself, or the old ones have been kept for long enough."""
    moments = (proof.due, allowance.kept_until if fleet.old else None)
    return min((moment for moment in moments if moment is not None), default=None)


def _choose(
    service: ServiceView, fleet: Fleet, allowance: Allowance, shares: Sequence[Share]
) -> tuple[Plan, Sequence[ReplicaView], Sequence[ReplicaView]]:
    """Who goes because there are too many, and who of the new and of the old ones stays."""
    worth = fleet.old if allowance.still else keepable(service, fleet.old)
    kept = {replica.id for replica in worth}
    held = going_order(fleet.held)
    idle = [*held[: len(held) - allowance.idle], *(r for r in fleet.old if r.id not in kept)]
    old = going_order(worth)
    surplus_old = old[: max(0, len(old) - allowance.old)]
    too_many = f"{service.target} wanted, {len(fleet.new)} there"
    given = f"version {service.version} was given up"
    groups = [(share.there, share.kept, share.words) for share in shares]
    stay: list[ReplicaView] = []
    going = [take_all(going_order([*idle, *surplus_old]), f"version {service.version} takes over")]
    for group, most, why in groups or [(fleet.new, allowance.new, too_many if allowance.growing else given)]:
        ordered = going_order(group)
        surplus = max(0, len(ordered) - most)
        going.append(take_all(ordered[:surplus], why))
        stay += ordered[surplus:]
    return join(going), stay, old[len(surplus_old) :]


def _adopt(service: ServiceView, kept: Sequence[ReplicaView]) -> Plan:
    """Replicas of a compatible version go on under the new number."""
    return Plan(
        actions=tuple(
            Adopt(
                replica.id, service.version, f"version {service.version} asks for the same process: it goes on as it is"
            )
            for replica in kept
            if replica.version != service.version
        )
    )


def _launch(
    service: ServiceView,
    fleet: Fleet,
    allowance: Allowance,
    stay: tuple[int, int],
    shares: Sequence[Share],
    now: datetime,
    halted: bool,
) -> Plan:
    """Fill the places that are both wanted and free; who is on the way out holds a place until it has ended.

    `stay`: how many of the new and of the old side do. What serves comes first: the old ones that are brought back.
    """
    new, old = stay
    free = max(0, allowance.live + sum(share.extra for share in shares) - fleet.live)
    missing_old = max(0, allowance.old - old) if allowance.back else 0
    good = service.rollout.good_version if service.rollout else 0
    parts = [launch(service, fleet, min(missing_old, free), now, good) if missing_old else Plan()]
    left = free - len(parts[0].actions)
    if shares:
        missing = [max(0, share.made - len(share.there)) for share in shares]
        for share, number in zip(shares, missing, strict=True):
            parts.append(launch_share(service, fleet, share, min(number, left), now))
            left -= min(number, left)
    else:
        missing = [max(0, allowance.new - new) if allowance.growing and not halted else 0]
        parts.append(launch(service, fleet, min(missing[0], left), now))
    if missing_old + sum(missing) > free and fleet.leaving:
        goers = sorted(replica.number for replica in fleet.leaving)
        parts.append(Plan(notes=(f"{named(goers)} must end before more are launched",)))
    return join(parts)
