"""The status of a service and the sentence that explains it, derived from its replicas and from nothing else."""

from collections.abc import Iterable, Sequence

from replicas.core.planner import Plan
from replicas.core.values import Desired, ReplicaState, ServiceStatus
from replicas.core.views import ReplicaView, ServiceView
from replicas.core.wording import after, named, some

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


def status(service: ServiceView, replicas: Sequence[ReplicaView], plan_: Plan | None) -> tuple[ServiceStatus, str]:
    """What is true of the service now, and why in one sentence. `plan_` adds what it waits for, where it is known.

    FAILED_CLEANUP replicas must be among `replicas` for as long as they are not purged.
    """
    live = [replica for replica in replicas if not replica.state.ended]
    if service.desired is Desired.DOWN:
        return _down(replicas, live)
    ready = sum(replica.state is S.READY for replica in live)
    if ready:
        return ServiceStatus.READY, _with_leftovers(_ready(service, live, ready, plan_), replicas)
    state, reason = _none_ready(service, replicas, live, plan_)
    return state, _with_leftovers(reason, replicas)


def _down(replicas: Sequence[ReplicaView], live: Sequence[ReplicaView]) -> tuple[ServiceStatus, str]:
    if live:
        return ServiceStatus.SHUTTING_DOWN, f"going down: {_what_they_do(live)}"
    left = _leftovers(replicas)
    if left:
        return ServiceStatus.FAILED_CLEANUP, f"down, but {_left(left)}"
    return ServiceStatus.DOWN, "down: nothing of it runs"


def _ready(service: ServiceView, live: Sequence[ReplicaView], ready: int, plan_: Plan | None) -> str:
    head = (
        f"{ready} of {service.target} ready" if ready <= service.target else f"{ready} ready, {service.target} wanted"
    )
    if plan_ is not None and plan_.halted:
        return f"{head}; {plan_.halted}"
    others = [replica for replica in live if replica.state is not S.READY]
    parts = [head, *(plan_.notes[:1] if plan_ is not None else ()), *([_what_they_do(others)] if others else ())]
    return "; ".join(parts)


def _none_ready(
    service: ServiceView, replicas: Sequence[ReplicaView], live: Sequence[ReplicaView], plan_: Plan | None
) -> tuple[ServiceStatus, str]:
    if service.target == 0:
        return (
            ServiceStatus.NO_REPLICA,
            f"no replica is wanted; {_what_they_do(live)}" if live else "no replica is wanted",
        )
    if plan_ is not None and plan_.halted:
        return ServiceStatus.FAILED, plan_.halted
    failure = _last_failure(service, replicas)
    if live:
        state = ServiceStatus.NOT_READY if _was_ready(service, replicas) else ServiceStatus.REPLICA_INIT
        return state, f"0 of {service.target} ready; {_what_they_do(live)}{_say_failed(failure)}"
    if failure is not None:
        waits = f"; {plan_.notes[0]}" if plan_ is not None and plan_.notes else ""
        return (
            ServiceStatus.FAILED,
            f"no replica is alive, replica {failure.number} failed{after(failure.reason)}{waits}",
        )
    if _was_ready(service, replicas):
        return ServiceStatus.NOT_READY, f"0 of {service.target} ready; new ones are about to be launched"
    return ServiceStatus.REPLICA_INIT, f"{some(service.target)} about to be launched"


def _say_failed(failure: ReplicaView | None) -> str:
    return f"; replica {failure.number} failed{after(failure.reason)}" if failure is not None else ""


def _what_they_do(live: Iterable[ReplicaView]) -> str:
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
            parts.append(f"{named([replica.number for replica in group])} {verb} {DOING[state]}{why}")
    return ", ".join(parts)


def _last_failure(service: ServiceView, replicas: Iterable[ReplicaView]) -> ReplicaView | None:
    """The newest unforgiven failure of the active version."""
    failed = [
        replica
        for replica in replicas
        if replica.state.ended
        and (replica.state.failed or (replica.outcome is not None and replica.outcome.failed))
        and replica.version == service.version
        and _counts(service, replica)
    ]
    return max(failed, key=lambda replica: (replica.ended_at or replica.state_since, replica.number), default=None)


def _was_ready(service: ServiceView, replicas: Iterable[ReplicaView]) -> bool:
    """True when the service had something ready since it was last (re)started."""
    if service.proven:
        return True
    return any(
        replica.ready_at is not None and (not replica.state.ended or _counts(service, replica)) for replica in replicas
    )


def _counts(service: ServiceView, replica: ReplicaView) -> bool:
    """False for what ended before the user asked to begin anew."""
    return service.forgiven_at is None or (replica.ended_at or replica.state_since) > service.forgiven_at


def _leftovers(replicas: Iterable[ReplicaView]) -> list[ReplicaView]:
    return sorted((r for r in replicas if r.state is S.FAILED_CLEANUP), key=lambda replica: replica.number)


def _left(left: Sequence[ReplicaView]) -> str:
    last = left[-1]
    numbers = named([replica.number for replica in left])
    return f"{numbers} could not be cleaned up{after(last.reason)}; look at what is left and purge it"


def _with_leftovers(sentence: str, replicas: Sequence[ReplicaView]) -> str:
    left = _leftovers(replicas)
    return f"{sentence}; {_left(left)}" if left else sentence
