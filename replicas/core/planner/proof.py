"""Which replicas have proved themselves: ready is not enough, they must have stayed so for a while."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from replicas.core.backoff import waits_until
from replicas.core.values import ReplicaState, RolloutKind
from replicas.core.views import ReplicaView, ServiceView


@dataclass(frozen=True, slots=True)
class Proof:
    """How many replicas of the active version have proved themselves, and when the next one will have (None: none)."""

    proven: int
    due: datetime | None


def prove(service: ServiceView, new: Sequence[ReplicaView], now: datetime) -> Proof:
    """Count those that have been ready for min_ready_seconds, as Nomad does (min_healthy_time)."""
    since = [ready_since(service, replica) for replica in new]
    waits = [waits_until(moment, service.policy.min_ready_seconds, now) for moment in since if moment is not None]
    return Proof(sum(wait is None for wait in waits), min((wait for wait in waits if wait is not None), default=None))


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
    return max(replica.state_since, replica.adopted_at or replica.state_since)
