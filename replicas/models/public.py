"""The public JSON of each row: what browsers, commands and event rows carry. No secrets, no handles."""

from datetime import datetime
from functools import lru_cache
from typing import Any

from replicas.core.rollout import DEFAULT_SURGE, DEFAULT_UNAVAILABLE
from replicas.core.values import OperationStatus
from replicas.models.notice import Notice, NoticeChannel
from replicas.models.operation import Operation
from replicas.models.replica import Replica
from replicas.models.rollout import Rollout
from replicas.models.service import Service, ServiceVersion

Row = dict[str, Any]
OWN_DEADLINE = 600.0  # as `Service.progress_deadline` of the spec, which needs the parser


def stamp(moment: datetime | None) -> str | None:
    """ISO 8601 in UTC with milliseconds, or None."""
    return None if moment is None else moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _provider_of(version: ServiceVersion) -> str:
    """The provider that its spec names; a change of a service leaves the spec unread, as it is large."""
    if "spec" in version.get_deferred_fields():
        return _provider_by(version.uid)
    return str(version.spec.get("provider", ""))


@lru_cache(maxsize=4096)
def _provider_by(uid: str) -> str:
    """The same, asked of the database once: a version never changes."""
    return ServiceVersion.objects.values_list("spec__provider", flat=True).get(uid=uid) or ""


def service_row(service: Service) -> Row:
    """A service as lists show it; `version` is the active version's number, `owner` a user's name or None."""
    return {
        "id": service.pk,
        "revision": service.revision,
        "name": service.name,
        "status": service.status,
        "reason": service.reason,
        "desired": service.desired,
        "version": service.version.number if service.version else None,
        "provider": _provider_of(service.version) if service.version else "",
        "target": service.target,
        "pinned": service.pinned,
        "ready": service.ready,
        "live": service.live,
        "endpoint": service.endpoint or None,
        "endpoint_reason": service.endpoint_reason,
        "owner": service.owner.get_username() if service.owner else None,
        "created_at": stamp(service.created_at),
        "updated_at": stamp(service.updated_at),
    }


def version_row(version: ServiceVersion) -> Row:
    """A version without its text; `policy` is what its spec says about a rollout to it."""
    return {
        "id": version.pk,
        "revision": 1,
        "service_id": version.service_id,
        "number": version.number,
        "digest": version.digest,
        "message": version.message,
        "plan": version.plan,
        "policy": policy(version.spec),
        "created_by": version.created_by,
        "created_at": stamp(version.created_at),
    }


def policy(spec: Row) -> Row:
    """The part of a spec that tells how a rollout to it goes: amounts as they are written, times in seconds."""
    service = spec.get("service") or {}
    rollout = service.get("rollout") or {}
    probe = service.get("readiness_probe") or {}
    own = rollout.get("progress_deadline_seconds")
    return {
        "max_surge": rollout.get("max_surge", DEFAULT_SURGE),
        "max_unavailable": rollout.get("max_unavailable", DEFAULT_UNAVAILABLE),
        "canary": rollout.get("canary"),
        "bake_seconds": rollout.get("bake_seconds"),
        "min_ready_seconds": rollout.get("min_ready_seconds"),
        "keep_old_seconds": rollout.get("keep_old_seconds", 0),
        "auto_rollback": rollout.get("auto_rollback", True),
        "progress_deadline": own if own is not None else probe.get("initial_delay_seconds", 0) + OWN_DEADLINE,
    }


def rollout_row(rollout: Rollout) -> Row:
    """A rollout as its panel shows it; versions are numbers, 0 for none."""
    return {
        "id": rollout.pk,
        "revision": rollout.revision,
        "service_id": rollout.service_id,
        "kind": rollout.kind,
        "mode": rollout.mode,
        "state": rollout.state,
        "reason": rollout.reason,
        "from_version": rollout.from_version,
        "to_version": rollout.to_version,
        "good_version": rollout.good_version,
        "held": rollout.held,
        "best": rollout.best,
        "actor": rollout.actor,
        "started_at": stamp(rollout.started_at),
        "progressed_at": stamp(rollout.progressed_at),
        "paused_at": stamp(rollout.paused_at),
        "promoted_at": stamp(rollout.promoted_at),
        "switched_at": stamp(rollout.switched_at),
        "ended_at": stamp(rollout.ended_at),
    }


def replica_row(replica: Replica) -> Row:
    """A replica as tables show it."""
    return {
        "id": replica.pk,
        "revision": replica.revision,
        "service_id": replica.service_id,
        "number": replica.number,
        "uid": replica.uid,
        "version": replica.version_number,
        "state": replica.state,
        "outcome": replica.outcome or None,
        "reason": replica.reason,
        "state_since": stamp(replica.state_since),
        "retire_reason": replica.retire_reason,
        "restarts": replica.restarts,
        "replaces": replica.replaces,
        "provider": replica.provider,
        "spot": replica.spot,
        "accelerators": replica.accelerators or None,
        "place": replica.place or None,
        "url": replica.url or None,
        "pid": replica.pid,
        "last_lines": replica.last_lines,
        "probe_at": stamp(replica.probe_at),
        "probe_ok": replica.probe_ok,
        "probe_detail": replica.probe_detail,
        "probe_excerpt": replica.probe_excerpt,
        "probe_seconds": replica.probe_seconds,
        "liveness_failing_since": stamp(replica.liveness_failing_since),
        "created_at": stamp(replica.created_at),
        "provisioning_at": stamp(replica.provisioning_at),
        "launched_at": stamp(replica.launched_at),
        "ready_at": stamp(replica.ready_at),
        "ended_at": stamp(replica.ended_at),
    }


def shown_status(operation: Operation) -> str:
    """The status that people see: a poll of a wait is still the wait; a wish to cancel shows until it is done."""
    status = OperationStatus(operation.status)
    if status.live and operation.cancel_requested_at is not None:
        return "CANCELLING"
    if status is OperationStatus.RUNNING and operation.waits_for:
        return str(OperationStatus.WAITING)
    return str(status)


def why(operation: Operation) -> str:
    """What is most worth knowing of it: what it waits for, what failed, why it is to end, or why it was asked for."""
    return operation.waits_for or operation.error or operation.cancel_reason or operation.reason


def worker_of(operation: Operation) -> str | None:
    """Who works on it, as `host pid`; None for a wait, whose polls go from worker to worker unseen."""
    return (
        f"{operation.owner_host} {operation.owner_pid}" if shown_status(operation) == OperationStatus.RUNNING else None
    )


def operation_row(operation: Operation) -> Row:
    """An operation as lists show it: a poll of a wait changes nothing in it."""
    return {
        "id": operation.pk,
        "revision": operation.revision,
        "service_id": operation.service_id,
        "replica_id": operation.replica_id,
        "number": operation.replica.number,
        "kind": operation.kind,
        "lane": operation.lane,
        "status": shown_status(operation),
        "reason": operation.reason,
        "waits_for": operation.waits_for,
        "error": operation.error,
        "cancel_reason": operation.cancel_reason,
        "attempts": operation.attempts,
        "worker": worker_of(operation),
        "peak_memory": operation.peak_memory,
        "cpu_seconds": round(operation.cpu_seconds, 3),
        "created_at": stamp(operation.created_at),
        "started_at": stamp(operation.started_at),
        "ended_at": stamp(operation.ended_at),
    }


def channel_row(channel: NoticeChannel) -> Row:
    """A receiver of notices; of its address only what is no secret."""
    return {
        "id": channel.pk,
        "name": channel.name,
        "kind": channel.kind,
        "address": channel.shown,
        "service_id": channel.service_id,
        "service": channel.service.name if channel.service else None,
        "occasions": channel.occasions,
        "enabled": channel.enabled,
        "created_by": channel.created_by,
        "created_at": stamp(channel.created_at),
        "sent_at": stamp(channel.sent_at),
        "last_error": channel.last_error,
    }


def notice_row(notice: Notice) -> Row:
    """A message to a channel, and what became of it."""
    return {
        "id": notice.pk,
        "channel": notice.channel.name,
        "test": notice.test,
        "title": notice.title,
        "text": notice.text,
        "state": notice.state,
        "attempts": notice.attempts,
        "error": notice.error,
        "created_at": stamp(notice.created_at),
        "retry_at": stamp(notice.retry_at),
        "sent_at": stamp(notice.sent_at),
    }
