"""Keeps what operators' own signals said, and says when one falls silent and when it is back."""

from datetime import timedelta

from replicas import clock
from replicas.actions.transition import change, locked, writing
from replicas.models import Reading, Service

KEPT = timedelta(hours=2)


def note(service_id: int, value: float | None, error: str, *, actor: str) -> None:
    """Keep one reading. The first without a number after one with it is an event, and the other way round."""
    now = clock.now()
    with writing():
        service = locked(Service, service_id)
        if service is None:
            return
        before = Reading.objects.filter(service=service_id).order_by("id").last()
        Reading.objects.create(service=service, at=now, value=value, error=error)
        Reading.objects.filter(service=service_id, at__lt=now - KEPT).delete()
        failed = before is not None and bool(before.error)
        if failed != bool(error):
            change(
                service,
                "signal_lost" if error else "signal_back",
                reason=f"custom_signal: {error}; the target is held" if error else "custom_signal gives numbers again",
                actor=actor,
                old=service.status,
                new=service.status,
            )
