"""Signs of life: a row that people and checks read, and a file whose time the supervisor reads."""

import logging
import os

from django.conf import settings
from django.db import DatabaseError

from replicas.actions import leases
from replicas.core.values import Lane

log = logging.getLogger(__name__)


def touch(name: str) -> None:
    """The part `name` (long, short, controller, web) is alive, says this process."""
    leases.beat(name)
    touch_file(name)


def touch_file(name: str) -> None:
    """Only the file, for parts that are alive without being able to write rows."""
    path = settings.ROLLCALL.run / f"beat-{name}"
    path.touch()
    os.utime(path)


def run(_lane: int) -> None:
    """The heartbeat job. There is nothing to do: what counts is that it gets through; see `got_through`."""


def got_through(lane: Lane) -> None:
    """In the process of a pool that acknowledges jobs: a worker has done the lane's heartbeat job.

    A pool whose workers work while nothing is acknowledged any more is as dead as one whose workers do not.
    """
    try:
        touch(lane.value)
    except DatabaseError as error:
        log.warning("the heartbeat of the pool %s is not written: %s", lane.value, error)
