"""How a replica is taken away, from the decision to the down operation that ends it."""

from collections.abc import Iterable
from datetime import datetime

from replicas.core.backoff import waits_until
from replicas.core.planner.actions import (
    Action,
    BeginDown,
    Cancel,
    Drain,
    Drained,
    Leave,
    Plan,
    Retire,
    Withdraw,
    join,
)
from replicas.core.planner.fleet import goes_down
from replicas.core.values import ReplicaState
from replicas.core.views import ReplicaView, ServiceView
from replicas.core.wording import at, seconds, short

S = ReplicaState


def take_away(replica: ReplicaView, reason: str) -> Leave:
    """The first action on the way out of a replica that is not on it yet. Work in flight is drained."""
    match replica.state:
        case S.PENDING:
            return Withdraw(replica.id, reason)
        case S.PROVISIONING:
            return Cancel(replica.id, reason)
        case S.STARTING:
            return Retire(replica.id, reason)
        case S.NOT_READY if not replica.in_flight:
            return Retire(replica.id, reason)
        case S.NOT_READY | S.READY:
            return Drain(replica.id, reason)
        case _:
            raise ValueError(f"replica {replica.number} is {replica.state}: it cannot be taken away from there")


def take_all(replicas: Iterable[ReplicaView], reason: str) -> Plan:
    """Take all of them away for one reason."""
    return Plan(actions=tuple(take_away(replica, reason) for replica in replicas))


def see_off(service: ServiceView, leaving: Iterable[ReplicaView], now: datetime) -> Plan:
    """Take replicas that are on their way out to their end: drains that are over, downs that nobody has begun."""
    return join(_see_off_one(service, replica, now) for replica in leaving)


def _see_off_one(service: ServiceView, replica: ReplicaView, now: datetime) -> Plan:
    if goes_down(replica):
        return Plan()
    if replica.state is S.DRAINING:
        return _drain_on(service, replica, now)
    action = _bring_down(replica)
    return Plan(actions=(action,)) if action else Plan()


def _drain_on(service: ServiceView, replica: ReplicaView, now: datetime) -> Plan:
    if replica.in_flight is None:
        return Plan(actions=(Drained(replica.id, "asked to end; what it is doing may go on within its grace"),))
    if replica.in_flight <= 0:
        return Plan(actions=(Drained(replica.id, "nothing is in flight any more"),))
    end = waits_until(replica.state_since, service.drain_seconds, now)
    if end is None:
        over = f"{seconds(service.drain_seconds)} of draining are over with {replica.in_flight} in flight"
        return Plan(actions=(Drained(replica.id, over),))
    return Plan(
        wake_at=end, notes=(f"replica {replica.number} drains its work in flight, until {at(end)} at the latest",)
    )


def _bring_down(replica: ReplicaView) -> Action | None:
    """What a replica in SHUTTING_DOWN still needs; a launch that is being cancelled cleans up by itself."""
    if replica.operation is None:
        return BeginDown(replica.id, short(replica.reason) or "it is on its way out")
    if not replica.operation.cancelling:
        return Cancel(replica.id, short(replica.reason) or "it is on its way out")
    return None
