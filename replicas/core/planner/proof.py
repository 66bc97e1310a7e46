"""Which replicas have proved themselves: ready is not enough, they must still answer after a while."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from replicas.core.backoff import waits_until
from replicas.core.health import proof_due, ready_anew
from replicas.core.values import ReplicaState, RolloutKind
from replicas.core.views import ReplicaView, ServiceView


@dataclass(frozen=True, slots=True)
class Proof:
    """How many replicas of the active version have proved themselves, and when the next one's time is over.

    `due` is None when nobody's time runs. `unasked`: replicas whose time is over, but no probe has passed since.
    """

    proven: int
    due: datetime | None
    unasked: int = 0


def prove(service: ServiceView, new: Sequence[ReplicaView], now: datetime) -> Proof:
    """Count those that have been ready for min_ready_seconds, as Nomad does (min_healthy_time), and answered after it.

    Age alone proves nothing: while nobody probes and nobody watches, a replica that died stays READY in its row.
    """
    wait = service.policy.min_ready_seconds
    proven, dues, unasked = 0, [], 0
    for replica in new:
        since = ready_since(service, replica)
        if since is None:
            continue
        due = waits_until(since, wait, now)
        if due is not None:
            dues.append(due)
        elif answered(replica, since, wait, now):
            proven += 1
        else:
            unasked += 1
    return Proof(proven, min(dues, default=None), unasked)


def answered(replica: ReplicaView, since: datetime, wait: float, now: datetime) -> bool:
    """Whether a probe passed when the wait was over.

    A moment that has not come although the wait is over was reckoned before the clock was set back: nobody can tell.
    """
    due = proof_due(since, wait, replica.probed_at)
    return due is None or due > now


def ready_since(service: ServiceView, replica: ReplicaView) -> datetime | None:
    """Since when a replica is ready under the active version; None while it is not.

    What it did before it was adopted proves nothing of a version whose probe may be another; going back to a version is
    going back to its probe.
    """
    if replica.state is not ReplicaState.READY:
        return None
    if service.rollout is not None and service.rollout.kind is RolloutKind.ROLLBACK:
        return replica.state_since
    if replica.version != service.version:
        return None
    return ready_anew(replica.state_since, replica.adopted_at)
