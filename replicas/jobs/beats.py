"""Signs of life: a row that people and checks read, and a file whose time the supervisor reads."""

import os

from django.conf import settings

from replicas.actions import leases
from replicas.core.values import Lane


def touch(name: str) -> None:
    """The part `name` (long, short, controller, web) is alive, says this process."""
    leases.beat(name)
    touch_file(name)


def touch_file(name: str) -> None:
    """Only the file, for parts that are alive without being able to write rows."""
    path = settings.ROLLCALL.run / f"beat-{name}"
    path.touch()
    os.utime(path)


def run(lane: int) -> None:
    """The heartbeat job: done by a worker of the lane, so that it proves that jobs get through."""
    touch(list(Lane)[lane].value)
