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
    waits = [
        waits_until(ready_since(service, replica), service.policy.min_ready_seconds, now)
        for replica in new
        if replica.state is ReplicaState.READY
    ]
    return Proof(sum(wait is None for wait in waits), min((wait for wait in waits if wait is not None), default=None))


def ready_since(service: ServiceView, replica: ReplicaView) -> datetime:
    """Since when a READY replica is ready under the active version.

    What it did before it was adopted proves nothing of a version whose probe may be another; going back to a version is
    going back to its probe.
    """
    rollout = service.rollout
    if rollout is None or rollout.kind is RolloutKind.ROLLBACK:
        return replica.state_since
    return max(replica.state_since, rollout.started_at)
