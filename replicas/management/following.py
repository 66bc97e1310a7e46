"""Waiting for news: the doorbell wakes at once, a look each second makes up for lost rings."""

import time
from collections.abc import Iterator
from datetime import timedelta

from django.conf import settings
from django.db.models import QuerySet

from replicas import bell, clock
from replicas.models import Event, Heartbeat, Lease

LOOK_SECONDS = 1.0
PATIENCE_SECONDS = 30.0  # a controller that died is replaced well within it
CONTROLLER = "controller"
BATCH = 1000


class Deadline:
    """So many seconds from now."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._at = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds that are left, not below 0."""
        return max(0.0, self._at - time.monotonic())

    @property
    def passed(self) -> bool:
        """True once the time is over."""
        return self.left == 0.0


class News:
    """Listens for what is written, by whichever process. Use it as a context."""

    def __enter__(self) -> "News":
        self._bell = bell.Bell(settings.ROLLCALL.run, bell.EVENTS)
        return self

    def __exit__(self, *_: object) -> None:
        self._bell.close()

    def wait(self, seconds: float = LOOK_SECONDS, deadline: Deadline | None = None) -> bool:
        """Come back when there may be news (True), after `seconds` at the latest, or at the deadline."""
        return self._bell.wait(min(seconds, deadline.left) if deadline else seconds)


class NotRunning(Exception):
    """Nobody is there to carry out what is waited for."""


class Patience:
    """Gives up a wait that nobody can end: at once if no control plane runs, later if it went away."""

    def __init__(self) -> None:
        self._heard: float | None = None

    def check(self) -> None:
        """Look whether the control plane runs. Raises NotRunning."""
        now = time.monotonic()
        if control_plane_runs():
            self._heard = now
        elif self._heard is None or now - self._heard > PATIENCE_SECONDS:
            raise NotRunning


class Trail:
    """The events after a cursor, each once, in order."""

    def __init__(self, events: QuerySet[Event], after: int) -> None:
        self._events = events
        self.after = after

    def fresh(self) -> Iterator[Event]:
        """What has come since the last call."""
        while page := list(self._events.filter(id__gt=self.after).order_by("id")[:BATCH]):
            self.after = page[-1].pk
            yield from page


def control_plane_runs() -> bool:
    """True while a controller holds its lease or was heard of lately: only then is anything carried out."""
    now = clock.now()
    heard = now - timedelta(seconds=settings.ROLLCALL.stale_seconds)
    return (
        Lease.objects.filter(name=CONTROLLER, expires_at__gt=now).exists()
        or Heartbeat.objects.filter(name=CONTROLLER, at__gt=heard).exists()
    )
