"""The planner: what is wanted of a service and what is there, turned into the next actions."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from replicas.core.backoff import CLOCK_STEP
from replicas.core.planner.actions import Adopt, Plan, join
from replicas.core.planner.fleet import Fleet, count_ready, going_order, sort_out
from replicas.core.planner.launching import halt, launch
from replicas.core.planner.leaving import see_off, take_all, take_away
from replicas.core.planner.rolling import Allowance, allow
from replicas.core.values import Desired
from replicas.core.views import ReplicaView, ServiceView
from replicas.core.wording import named, some


def plan(service: ServiceView, replicas: Sequence[ReplicaView], now: datetime) -> Plan:
    """Decide the next actions for a service.

    `replicas` are all live ones and the ended ones of late: the failures of the active version since `forgiven_at` and
    what replaced them must be among them. Replicas and their live operations come from one consistent read. Planning
    again after the actions were applied asks for nothing twice.
    """
    service = _believe(service, now)
    fleet = sort_out(service, replicas)
    ending = see_off(service, fleet.leaving, now)
    if service.desired is Desired.DOWN:
        return join((ending, take_all(going_order(fleet.staying), "the service is being taken down")))
    asked = Plan(actions=tuple(take_away(replica, reason) for replica, reason in fleet.unwanted))
    halted = halt(service, fleet)
    allowance = allow(service, fleet, halted is not None)
    surplus, kept = _choose(service, fleet, allowance)
    return join(
        (
            ending,
            asked,
            surplus,
            _adopt(service, kept),
            Plan(halted=halted) if halted else _launch(service, fleet, allowance, len(kept), now),
            _explain(service, fleet, allowance, halted),
        )
    )


def _believe(service: ServiceView, now: datetime) -> ServiceView:
    """Forgiveness from the future (the clock was set back) would forgive each failure to come: it is left out."""
    if service.forgiven_at is not None and service.forgiven_at > now + CLOCK_STEP:
        return replace(service, forgiven_at=None)
    return service


def _choose(service: ServiceView, fleet: Fleet, allowance: Allowance) -> tuple[Plan, Sequence[ReplicaView]]:
    """Who goes because there are too many, and who of the new ones stays."""
    old = going_order(fleet.old)
    new = going_order(fleet.new)
    surplus_old = old[: max(0, len(old) - allowance.old)]
    surplus_new = new[: max(0, len(new) - allowance.new)]
    takes_over = f"version {service.version} takes over"
    going = join(
        (
            take_all(surplus_old, takes_over),
            take_all(surplus_new, f"{service.target} wanted, {len(fleet.new)} there"),
        )
    )
    return going, new[len(surplus_new) :]


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


def _launch(service: ServiceView, fleet: Fleet, allowance: Allowance, kept: int, now: datetime) -> Plan:
    """Fill the places that are both wanted and free; who is on the way out holds a place until it has ended."""
    wanted = allowance.new - kept
    free = allowance.live - fleet.live
    launches = launch(service, fleet, min(wanted, free), now)
    if wanted <= max(0, free) or not fleet.leaving:
        return launches
    goers = sorted(replica.number for replica in fleet.leaving)
    note = f"{named(goers)} must end before more are launched"
    return join((launches, Plan(notes=(note,))))


def _explain(service: ServiceView, fleet: Fleet, allowance: Allowance, halted: str | None) -> Plan:
    """What an update waits for."""
    if not fleet.old or not allowance.old:
        return Plan()
    older = some(allowance.old, "older replica")
    if halted:
        return Plan(notes=(f"{older} kept, because version {service.version} was given up",))
    ready = f"{count_ready(fleet.new)} of {service.target} ready"
    return Plan(notes=(f"version {service.version} takes over: {ready}, {older} kept until it is",))
