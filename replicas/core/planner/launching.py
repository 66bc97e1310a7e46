"""What is launched: the failed are replaced after their backoff, the rest at once, nothing of a version given up."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from replicas.core import backoff
from replicas.core.history import ended_at, failures, forgiven
from replicas.core.planner.actions import Create, Plan
from replicas.core.planner.fleet import Fleet
from replicas.core.planner.mixing import Share
from replicas.core.values import ReplicaState
from replicas.core.views import ReplicaView, RestartPolicy, ServiceView
from replicas.core.wording import after, at, seconds, times

S = ReplicaState
MOST_NOTES = 3
STANDS_IN = "stands in for a spot replica that is missing"


@dataclass(frozen=True, slots=True)
class Gap:
    """The place of a failed replica that nobody has taken: `restarts` of who takes it, not before `due` (None: now)."""

    replica: ReplicaView
    restarts: int
    due: datetime | None


def halt(service: ServiceView, fleet: Fleet) -> str | None:
    """Why the active version is not launched any more; None while it is.

    It is given up when `max_never_ready` of its replicas failed without ever being ready and none has ever been.
    """
    if service.proven or _ever_ready(service, fleet):
        return None
    hopeless = [r for r in failures(service, fleet.ended) if r.ready_at is None]
    if not hopeless or len(hopeless) < service.restart.max_never_ready:
        return None
    last = max(hopeless, key=ended_at)
    return (
        f"version {service.version} failed {times(len(hopeless))} and was never ready; the last one was"
        f" replica {last.number}{after(last.reason)}. Launches have stopped:"
        " apply a corrected version, or restart the service"
    )


def launch(service: ServiceView, fleet: Fleet, places: int, now: datetime, version: int | None = None) -> Plan:
    """Fill up to `places` places with replicas of a version (None: the active one).

    A failed replica keeps one of the places waiting until its backoff is over.
    """
    version = service.version if version is None else version
    reason = f"{service.target} wanted, {len(fleet.new)} there"
    if version != service.version:
        reason = f"version {version} is kept until version {service.version} has proved itself"
    elif fleet.old:
        reason = f"version {version} takes over"
    return _launch(service, fleet, places, now, version, reason, None)


def launch_share(service: ServiceView, fleet: Fleet, share: Share, places: int, now: datetime) -> Plan:
    """The same for replicas of the active version of one kind; each takes the place of one of its kind."""
    of_kind = replace(fleet, ended=tuple(replica for replica in fleet.ended if bool(replica.spot) is share.spot))
    reason = share.words if share.spot or len(share.there) < share.own else STANDS_IN
    return _launch(service, of_kind, places, now, service.version, reason, share.spot)


def _launch(
    service: ServiceView, fleet: Fleet, places: int, now: datetime, version: int, reason: str, spot: bool | None
) -> Plan:
    if places <= 0:
        return Plan()
    gaps = find_gaps(service, fleet, now, version)[:places]
    due = [gap for gap in gaps if gap.due is None]
    creates = [_replace_failed(version, gap) for gap in due]
    creates += _fill(fleet, places - len(gaps), version, reason)
    held = [gap for gap in gaps if gap.due is not None]
    return Plan(
        actions=tuple(replace(create, spot=spot) for create in creates),
        wake_at=min((gap.due for gap in held if gap.due is not None), default=None),
        notes=tuple(_backoff_notes(service.restart, held)),
    )


def find_gaps(service: ServiceView, fleet: Fleet, now: datetime, version: int) -> Sequence[Gap]:
    """The places of failed replicas of a version, those that may be filled first in front.

    A gap that stayed open for `reset_after_seconds` beyond its backoff (the target was lower for a while) is forgotten:
    who comes then begins a new line.
    """
    taken = _replaced(fleet)
    gaps = []
    for replica in failures(service, fleet.ended, version):
        if replica.number in taken:
            continue
        restarts = count_restarts(replica, service.restart)
        wait = backoff.delay(restarts, service.restart)
        if now - ended_at(replica) > timedelta(seconds=wait + service.restart.reset_after_seconds):
            continue
        gaps.append(Gap(replica, restarts, backoff.waits_until(ended_at(replica), wait, now)))
    return sorted(gaps, key=lambda gap: (gap.due is not None, gap.due or now, gap.replica.number))


def count_restarts(replica: ReplicaView, policy: RestartPolicy) -> int:
    """Failures in a row, this one included; who was ready for `reset_after_seconds` begins a new row."""
    if replica.ready_at is not None:
        served = ended_at(replica) - replica.ready_at
        if served >= timedelta(seconds=policy.reset_after_seconds):
            return 1
    return replica.restarts + 1


def _ever_ready(service: ServiceView, fleet: Fleet) -> bool:
    """True when the active version has shown that it can be ready; a replica that it adopted is proof enough."""
    ours = [replica for replica in (*fleet.staying, *fleet.leaving) if replica.version == service.version]
    ours += [r for r in fleet.ended if r.version == service.version and not forgiven(service, ended_at(r))]
    return any(replica.ready_at is not None for replica in (*fleet.new, *ours))


def _replaced(fleet: Fleet) -> set[int]:
    """Numbers of the replicas whose place somebody has taken."""
    everyone = (*fleet.staying, *fleet.leaving, *fleet.ended)
    return {replica.replaces for replica in everyone if replica.replaces is not None}


def _replace_failed(version: int, gap: Gap) -> Create:
    reason = f"replaces replica {gap.replica.number}, which failed{after(gap.replica.reason)}"
    if gap.restarts > 1:
        reason += f" ({gap.restarts} failures in a row)"
    return Create(version, gap.replica.number, gap.restarts, reason)


def _fill(fleet: Fleet, places: int, version: int, reason: str) -> list[Create]:
    """Launch at once into places that no failure holds; name whose place it is where that is known."""
    if places <= 0:
        return []
    creates = [_replace_gone(version, replica) for replica in find_gone(fleet, version)[:places]]
    return creates + [Create(version, None, 0, reason)] * (places - len(creates))


def find_gone(fleet: Fleet, version: int) -> list[ReplicaView]:
    """Replicas of a version that were taken away though one was wanted, the latest first."""
    taken = _replaced(fleet)
    gone = [
        replica
        for replica in fleet.ended
        if replica.version == version
        and replica.number not in taken
        and (replica.state is S.PREEMPTED or (replica.state is S.TERMINATED and replica.retire_reason is not None))
    ]
    return sorted(gone, key=ended_at, reverse=True)


def _replace_gone(version: int, replica: ReplicaView) -> Create:
    why = "was preempted" if replica.state is S.PREEMPTED else f"was taken away{after(replica.retire_reason or '')}"
    return Create(version, replica.number, 0, f"replaces replica {replica.number}, which {why}")


def _backoff_notes(policy: RestartPolicy, held: Sequence[Gap]) -> Iterable[str]:
    for gap in held[:MOST_NOTES]:
        wait = seconds(backoff.delay(gap.restarts, policy))
        due = f", at {at(gap.due)}" if gap.due else ""
        yield (
            f"replica {gap.replica.number} failed {times(gap.restarts)} in a row{after(gap.replica.reason)};"
            f" the next launch comes {wait} after it{due}"
        )
    if len(held) > MOST_NOTES:
        yield f"{len(held) - MOST_NOTES} more wait after failures"
