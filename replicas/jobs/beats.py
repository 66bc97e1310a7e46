"""Signs of life: a row that people and checks read, and a file whose time the supervisor reads."""

import logging
import os
import time

from django.conf import settings
from django.db import DatabaseError

from replicas import clock
from replicas.actions import leases
from replicas.core.values import Lane

log = logging.getLogger(__name__)

APART_SECONDS = 0.5  # jobs that get through faster than this are one sign of life


def touch(name: str) -> None:
    """The part `name` (long, short, controller, web) is alive, says this process."""
    leases.beat(name)
    touch_file(name)


def touch_file(name: str) -> None:
    """Only the file, for parts that are alive without being able to write rows. Its time is that of our own clock."""
    path = settings.ROLLCALL.run / f"beat-{name}"
    path.touch()
    now = clock.now().timestamp()
    os.utime(path, (now, now))


def run(_lane: int) -> None:
    """The heartbeat job. There is nothing to do: what counts is that it gets through; see `got_through`."""


_told: dict[Lane, float] = {}


def got_through(lane: Lane) -> None:
    """In the process of a pool that acknowledges jobs: a worker is done with a job of the lane, whichever it was.

    A pool whose workers work while nothing is acknowledged any more is as dead as one whose workers do not. One that
    works through a long queue is alive, though its heartbeat job has to wait until its turn comes.
    """
    now = time.monotonic()
    if now - _told.get(lane, -APART_SECONDS) < APART_SECONDS:
        return
    try:
        touch(lane.value)
        _told[lane] = now
    except DatabaseError as error:
        log.warning("the heartbeat of the pool %s is not written: %s", lane.value, error)
