"""What the ended replicas of a service tell: which of them count as failures, and since when."""

from collections.abc import Iterable
from datetime import datetime

from replicas.core.values import ReplicaState
from replicas.core.views import ReplicaView, ServiceView


def ended_at(replica: ReplicaView) -> datetime:
    """When an ended replica ended."""
    return replica.ended_at or replica.state_since


def failed(replica: ReplicaView) -> bool:
    """True for a replica that ended as a failure of its version, also when its cleaning up failed on top."""
    if replica.state is ReplicaState.FAILED_CLEANUP:
        return replica.outcome is not None and replica.outcome.failed
    return replica.state.failed


def forgiven(service: ServiceView, moment: datetime) -> bool:
    """True for what happened before the user began anew."""
    return service.forgiven_at is not None and moment <= service.forgiven_at


def failures(service: ServiceView, replicas: Iterable[ReplicaView], version: int | None = None) -> list[ReplicaView]:
    """The failures of a version (None: of the active one) that have not been forgiven."""
    version = service.version if version is None else version
    return [
        replica
        for replica in replicas
        if replica.version == version and failed(replica) and not forgiven(service, ended_at(replica))
    ]
