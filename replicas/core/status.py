"""The status of a service and the sentence that explains it, derived from its replicas and from nothing else."""

from collections.abc import Iterable, Sequence
from datetime import timedelta

from replicas.core.history import ended_at, failures, forgiven
from replicas.core.planner import Plan
from replicas.core.rollout import serves
from replicas.core.values import Desired, ReplicaState, ServiceStatus
from replicas.core.views import ReplicaView, ServiceView
from replicas.core.wording import after, at, named

S = ReplicaState
DOING = {
    S.PENDING: "waiting for launch",
    S.PROVISIONING: "being launched",
    S.STARTING: "starting",
    S.READY: "still ready",
    S.NOT_READY: "not ready",
    S.DRAINING: "draining",
    S.SHUTTING_DOWN: "going down",
}
EXPLAINED = frozenset({S.NOT_READY, S.SHUTTING_DOWN})

Verdict = tuple[ServiceStatus, str]


def status(service: ServiceView, replicas: Sequence[ReplicaView], plan_: Plan | None) -> Verdict:
    """What is true of the service now, and why in one sentence. `plan_` adds what it waits for, where it is known.

    FAILED_CLEANUP replicas must be among `replicas` for as long as they are not purged.
    """
    live = [replica for replica in replicas if not replica.state.ended]
    if service.desired is Desired.DOWN:
        return _down(service, replicas, live)
    ready = sum(serves(service, replica) for replica in live)
    if ready:
        return ServiceStatus.READY, _with_leftovers(_ready(service, live, ready, plan_), replicas)
    state, reason = _none_ready(service, replicas, live, plan_)
    return state, _with_leftovers(reason, replicas)


def _down(service: ServiceView, replicas: Sequence[ReplicaView], live: Sequence[ReplicaView]) -> Verdict:
    if live:
        return ServiceStatus.SHUTTING_DOWN, f"going down: {_what_they_do(service, live)}"
    left = _leftovers(replicas)
    if left:
        return ServiceStatus.FAILED_CLEANUP, f"down, but {_left(left)}"
    return ServiceStatus.DOWN, "down: nothing of it runs"


def _ready(service: ServiceView, live: Sequence[ReplicaView], ready: int, plan_: Plan | None) -> str:
    short_of = f"{ready} of {service.target} ready"
    parts = [short_of if ready <= service.target else f"{ready} ready, {service.target} wanted"]
    if plan_ is not None:
        parts += [plan_.halted] if plan_.halted else plan_.notes[:1]
    others = [replica for replica in live if replica.state is not S.READY]
    apart = sum(replica.state is S.READY for replica in live) - ready
    if apart:
        parts.append(f"{apart} more ready without traffic")
    if others:
        parts.append(_what_they_do(service, others))
    return "; ".join(parts)


def _none_ready(
    service: ServiceView, replicas: Sequence[ReplicaView], live: Sequence[ReplicaView], plan_: Plan | None
) -> Verdict:
    none = f"0 of {service.target} ready"
    going_on = f"; {_what_they_do(service, live)}" if live else ""
    if service.target == 0:
        return ServiceStatus.NO_REPLICA, f"no replica is wanted{going_on}"
    if plan_ is not None and plan_.halted:
        return ServiceStatus.FAILED, f"{none}; {plan_.halted}{going_on}"
    failure = _last_failure(service, replicas)
    if failure is not None and not live:
        waits = f"; {plan_.notes[0]}" if plan_ is not None and plan_.notes else _say_failed(failure)
        return ServiceStatus.FAILED, f"{none}, none is alive{waits}"
    state = ServiceStatus.NOT_READY if _was_ready(service, replicas) else ServiceStatus.REPLICA_INIT
    return state, f"{none}{going_on}{_say_failed(failure)}" if live else f"{none}; about to be launched"


def _say_failed(failure: ReplicaView | None) -> str:
    return f"; replica {failure.number} failed{after(failure.reason)}" if failure is not None else ""


def _what_they_do(service: ServiceView, live: Iterable[ReplicaView]) -> str:
    """replica 4 is going down: exited with code 7, replicas 5 and 6 are being launched."""
    by_state: dict[ReplicaState, list[ReplicaView]] = {}
    for replica in sorted(live, key=lambda replica: replica.number):
        by_state.setdefault(replica.state, []).append(replica)
    parts = []
    for state in ReplicaState:
        group = by_state.get(state)
        if group:
            verb = "is" if len(group) == 1 else "are"
            why = after(group[0].reason) if len(group) == 1 and state in EXPLAINED else ""
            if state is S.STARTING:
                why = _not_yet(service, group)
            parts.append(f"{named([replica.number for replica in group])} {verb} {DOING[state]}{why}")
    return ", ".join(parts)


def _not_yet(service: ServiceView, starting: Sequence[ReplicaView]) -> str:
    """What the probe of the first that is starting got, and until when it may take; nothing while that is not known."""
    first = next((replica for replica in starting if replica.probe_failure), None)
    if first is None:
        return ""
    if first.launched_at is None or first.version != service.version:
        return after(first.probe_failure)
    until = at(first.launched_at + timedelta(seconds=service.initial_delay))
    return f"{after(first.probe_failure)} (replica {first.number} has until {until} to become ready)"


def _last_failure(service: ServiceView, replicas: Iterable[ReplicaView]) -> ReplicaView | None:
    return max(failures(service, replicas), key=lambda replica: (ended_at(replica), replica.number), default=None)


def _was_ready(service: ServiceView, replicas: Iterable[ReplicaView]) -> bool:
    """True when the service had something ready since it was last (re)started."""
    if service.proven:
        return True
    return any(
        replica.ready_at is not None and not (replica.state.ended and forgiven(service, ended_at(replica)))
        for replica in replicas
    )


def _leftovers(replicas: Iterable[ReplicaView]) -> list[ReplicaView]:
    return sorted((r for r in replicas if r.state is S.FAILED_CLEANUP), key=lambda replica: replica.number)


def _left(left: Sequence[ReplicaView]) -> str:
    last = left[-1]
    numbers = named([replica.number for replica in left])
    return f"{numbers} could not be cleaned up{after(last.reason)}; look at what is left, then purge it"


def _with_leftovers(sentence: str, replicas: Sequence[ReplicaView]) -> str:
    left = _leftovers(replicas)
    return f"{sentence}; {_left(left)}" if left else sentence
