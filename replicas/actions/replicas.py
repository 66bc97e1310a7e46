"""What is done to replicas: made, retired, judged, forgotten."""

import uuid
from collections.abc import Collection
from datetime import datetime
from typing import Any

from replicas import clock
from replicas.actions import operations
from replicas.actions.transition import change, emit, locked, record, transition, writing
from replicas.core.machines import spot_places
from replicas.core.placing import Stay, next_place
from replicas.core.values import OperationKind, ReplicaState
from replicas.models import Operation, Replica, Service, ServiceVersion
from replicas.models.public import replica_row


def create(
    service_id: int,
    version: int,
    *,
    replaces: int | None,
    restarts: int,
    reason: str,
    actor: str,
    spot: bool | None = None,
) -> Replica | None:
    """A PENDING replica of the version with its queued launch. None if service or version is gone."""
    with writing():
        service = locked(Service, service_id)
        row = ServiceVersion.objects.filter(service_id=service_id, number=version).first()
        if service is None or row is None:
            return None
        number = service.last_number + 1
        Service.objects.filter(pk=service_id).update(last_number=number)
        now = clock.now()
        uid = uuid.uuid4().hex
        replica = Replica.objects.create(
            service=service,
            version=row,
            version_number=row.number,
            number=number,
            uid=uid,
            provider=row.spec.get("provider", "local"),
            state_since=now,
            reason=reason,
            revision=1,
            restarts=restarts,
            replaces=replaces,
            spot=spot,
            place=_next_place(service, row.spec) if spot else "",
            created_at=now,
        )
        record(replica, "created", reason=reason, actor=actor, new=replica.state)
        operations.create(replica, OperationKind.LAUNCH, reason=reason, actor=actor, key=f"launch:{uid}")
        return replica


def _next_place(service: Service, spec: dict[str, Any]) -> str:
    """Where a spot replica is to be, from what became of the service's others, whatever their version; "" for
    anywhere. The rows are the placer's memory."""
    places = spot_places(spec)
    if not any(places):
        return ""
    rows = Replica.objects.filter(service=service, spot=True).exclude(place="").order_by("state_since")
    stays = [
        Stay(place, ReplicaState(outcome or state))
        for place, state, outcome in rows.values_list("place", "state", "outcome")
    ]
    return next_place(places, stays)


def withdraw(replica_id: int, *, reason: str, actor: str) -> bool:
    """End a replica whose launch has not begun, with its operation. False: it had begun, or was gone."""
    with writing():
        replica = locked(Replica, replica_id)
        if replica is None or not transition(replica, "withdrawn", reason=reason, actor=actor):
            return False
        operation = operations.live_of(replica_id)
        if operation is not None:
            operations.end_unclaimed(operation, reason=reason, actor=actor)
        return True


def retire(replica_id: int, trigger: str, *, reason: str, actor: str, among: Collection[str] | None = None) -> bool:
    """Begin the end of a replica by `trigger` (retired, drain_begun, drained); a live launch of it is cancelled.

    So is the launch of a replica that is shutting down for another reason, such as a preemption. `among`: only from one
    of these states (one that has become READY meanwhile is not to be taken down without a drain). False: nothing to do.
    """
    with writing():
        replica = locked(Replica, replica_id)
        if replica is None or (among is not None and replica.state not in among):
            return False
        moved = transition(replica, trigger, reason=reason, actor=actor)
        if not moved and replica.state != ReplicaState.SHUTTING_DOWN:
            return False
        operation = operations.live_of(replica_id)
        if operation is not None and operation.kind == OperationKind.LAUNCH:
            return operations.mark_cancel(operation, reason=reason, actor=actor) or moved
        return moved


def begin_down(replica_id: int, *, reason: str, actor: str) -> Operation | None:
    """A queued down for a replica that is shutting down. None if it is past that, or has a live operation."""
    with writing():
        replica = locked(Replica, replica_id)
        if replica is None or replica.state != ReplicaState.SHUTTING_DOWN or operations.live_of(replica_id):
            return None
        return operations.create(replica, OperationKind.DOWN, reason=reason, actor=actor)


def adopt(replica_id: int, version: int, *, reason: str, actor: str) -> bool:
    """Give a running replica the number of a version whose processes are the same as its own."""
    with writing():
        replica = locked(Replica, replica_id)
        if replica is None or ReplicaState(replica.state).ended:
            return False
        row = ServiceVersion.objects.filter(service_id=replica.service_id, number=version).first()
        if row is None or row.process_digest != replica.version.process_digest:
            return False
        return change(
            replica,
            "adopted",
            reason=reason,
            actor=actor,
            old=replica.state,
            new=replica.state,
            version=row,
            version_number=row.number,
            adopted_at=clock.now(),
        )


def observe(replica_id: int, trigger: str, *, reason: str, actor: str, **facts: Any) -> bool:
    """Something was seen of the replica (exited, lost, preempted, a verdict). False: it does not apply."""
    with writing():
        replica = locked(Replica, replica_id)
        return replica is not None and transition(replica, trigger, reason=reason, actor=actor, **facts)


def note_probe(replica_id: int, *, actor: str, probe_detail: str, **facts: Any) -> bool:
    """Keep the facts of a probe that told something new but changed no state."""
    with writing():
        replica = locked(Replica, replica_id)
        if replica is None or ReplicaState(replica.state).ended:
            return False
        return change(
            replica,
            "probed",
            reason=probe_detail,
            actor=actor,
            old=replica.state,
            new=replica.state,
            probe_detail=probe_detail,
            **facts,
        )


def note_liveness(replica_id: int, *, failing_since: datetime | None, reason: str, actor: str) -> bool:
    """Keep since when liveness probes fail in a row, or that they pass again."""
    with writing():
        replica = locked(Replica, replica_id)
        if replica is None or ReplicaState(replica.state).ended:
            return False
        return change(
            replica,
            "liveness_failing" if failing_since else "liveness_passed",
            reason=reason,
            actor=actor,
            old=replica.state,
            new=replica.state,
            liveness_failing_since=failing_since,
        )


def want_gone(service_id: int, number: int, *, purge: bool, actor: str) -> Replica | None:
    """The wish to terminate one replica; the controller does the rest. None if there is no such replica."""
    with writing():
        found = Replica.objects.filter(service_id=service_id, number=number).first()
        replica = locked(Replica, found.pk) if found else None
        if replica is None:
            return None
        if ReplicaState(replica.state).ended:
            if purge:
                forget(replica, actor=actor)
            return replica
        if not replica.retire_reason or (purge and not replica.purge):
            change(
                replica,
                "terminate_requested",
                reason=f"terminated by {actor}",
                actor=actor,
                old=replica.state,
                new=replica.state,
                retire_reason=f"terminated by {actor}",
                purge=purge or replica.purge,
            )
        return replica


def forget(replica: Replica, *, actor: str) -> None:
    """Delete an ended replica's row; its files go with the next pruning."""
    emit(
        replica.service,
        "replica",
        replica.pk,
        replica.revision + 1,
        "forgotten",
        replica_row(replica) | {"forgotten": True},
        reason=f"purged by {actor}",
        actor=actor,
        old=replica.state,
        number=replica.number,
    )
    replica.delete()


def forget_ended(replica_id: int, *, actor: str) -> bool:
    """Delete a replica that has ended. False: it is alive, or gone already."""
    with writing():
        replica = locked(Replica, replica_id)
        if replica is None or not ReplicaState(replica.state).ended or operations.live_of(replica_id):
            return False
        forget(replica, actor=actor)
        return True
