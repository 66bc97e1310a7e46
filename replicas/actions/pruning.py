"""Old history goes: ended replicas, settled operations with their logs, events, unused versions."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings

from replicas import clock
from replicas.actions import audit
from replicas.actions.keeping import kept_versions
from replicas.core.values import Desired
from replicas.models import Event, Operation, Replica, Service, ServiceVersion
from replicas.models.fields import ENDED

BATCH = 500
KEPT_PER_SERVICE = 20


@dataclass(frozen=True, slots=True)
class Pruned:
    """How many rows of each kind went."""

    replicas: int = 0
    operations: int = 0
    events: int = 0


def prune(before: datetime, *, forget_replica: Callable[[str, str], None], keep: int = KEPT_PER_SERVICE) -> Pruned:
    """Delete what ended before `before`; the last `keep` ended replicas of a service that is up stay.

    `forget_replica(provider, uid)` removes directory and logs of a replica.
    """
    doomed = _old_replicas(before, keep)
    for replica in doomed:
        forget_replica(replica.provider, replica.uid)
        for log in replica.operations.values_list("log", flat=True):
            _unlink(log)
    Replica.objects.filter(pk__in=[r.pk for r in doomed]).delete()
    operations = Operation.objects.filter(ended_at__lt=before)
    settled = 0
    for operation in operations.iterator(chunk_size=BATCH):
        _unlink(operation.log)
        operation.delete()
        settled += 1
    events, _ = _old_events(before).delete()
    return Pruned(len(doomed), settled, events)


def count(before: datetime, *, keep: int = KEPT_PER_SERVICE) -> Pruned:
    """What `prune` would delete."""
    doomed = {replica.pk for replica in _old_replicas(before, keep)}
    operations = Operation.objects.filter(ended_at__lt=before)
    settled = sum(number not in doomed for number in operations.values_list("replica_id", flat=True))
    return Pruned(len(doomed), settled, _old_events(before).count())


def _old_events(before: datetime) -> Any:
    """Who did what to the installation stays for the usual time, whoever wants everything pruned."""
    usual = clock.now() - timedelta(days=settings.ROLLCALL.prune_days)
    return Event.objects.filter(at__lt=before).exclude(kind__in=audit.KINDS, at__gte=usual)


def note(days: float, actor: str) -> None:
    """Write that somebody wants pruned what ended more than so many days ago."""
    reason = f"what ended more than {days:g} days ago is pruned by {actor}"
    audit.note(audit.PRUNING, 0, "pruned", {"days": days}, reason=reason, actor=actor)


def _old_replicas(before: datetime, keep: int) -> list[Replica]:
    doomed: list[Replica] = []
    for service in Service.objects.all():
        ended = Replica.objects.filter(ENDED, service=service).order_by("-number")
        kept = keep if service.desired == Desired.UP else 0
        doomed += [r for r in ended[kept:] if r.ended_at is not None and r.ended_at < before]
    return doomed


def unused_versions() -> list[ServiceVersion]:
    """Versions whose files nothing needs any more (see `keeping`): providers need not keep them; the rows stay."""
    return list(ServiceVersion.objects.exclude(files_uid__in=kept_versions().values("files_uid")))


def unnamed_replicas(uids: Iterable[str]) -> set[str]:
    """Those that no row names."""
    return set(uids) - set(Replica.objects.values_list("uid", flat=True))


def unnamed_services(names: Iterable[str]) -> set[str]:
    """Those that no service has."""
    return set(names) - set(Service.objects.values_list("name", flat=True))


def unnamed_versions(uids: Iterable[str]) -> set[str]:
    """Those that no row names."""
    rows = ServiceVersion.objects.values_list("uid", "files_uid")
    return set(uids) - {uid for row in rows.iterator(chunk_size=BATCH) for uid in row}


def unnamed_operations(ids: Iterable[int]) -> set[int]:
    """Those that have no row."""
    left, unnamed = sorted(ids), set(ids)
    for start in range(0, len(left), BATCH):
        rows = Operation.objects.filter(pk__in=left[start : start + BATCH])
        unnamed -= set(rows.values_list("pk", flat=True))
    return unnamed


def _unlink(path: str) -> None:
    if path:
        for each in (path, f"{path}.times"):
            Path(each).unlink(missing_ok=True)
