"""From a job's enqueueing to its start, of the pools at rest, held against a pool that polls as django-q2 does."""

import contextlib
import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.homes import Plane, connect_django, control_plane
from benchmarks.rows import Row, compared, limited, percentile

JOBS = 40
LAUNCHES = 20
MOST_SECONDS = 0.1
PAUSE_SECONDS = 0.3
MOMENTS = (
    "SELECT julianday(o.created_at), julianday(enqueued_at), julianday(started_at) FROM replicas_operation o"
    " JOIN replicas_replica r ON r.id = o.replica_id WHERE r.number = ? AND o.kind = 'LAUNCH'"
)
FAKE = "name: fake\nprovider: fake\nrun: serve\nservice:\n  readiness_probe: /\n  replicas: 1\n"


def run() -> list[Row]:
    with control_plane() as plane:
        connect_django(plane.home)
        with polling_pool(plane):
            ours, polled = jobs(plane.home / "notes")
        made, handed_over = launches(plane)
    return [
        limited("operation enqueued to running, p50", percentile(handed_over, 0.5), most=MOST_SECONDS, unit="s"),
        limited("operation enqueued to running, p95", percentile(handed_over, 0.95), most=None, unit="s"),
        limited("operation made to running, p50", percentile(made, 0.5), most=None, unit="s"),
        compared("job enqueued to started, p50", percentile(ours, 0.5), percentile(polled, 0.5), most=1.0, unit="s"),
        compared("job enqueued to started, p95", percentile(ours, 0.95), percentile(polled, 0.95), most=1.0, unit="s"),
    ]


@contextlib.contextmanager
def polling_pool(plane: Plane) -> Iterator[None]:
    """A pool with django-q2's own broker, beside those of the control plane."""
    environment = {
        "ROLLCALL_PROCESS": "pool",
        "Q_CLUSTER_NAME": "polling",
        "DJANGO_SETTINGS_MODULE": "benchmarks.polling",
    }
    command = [sys.executable, "manage.py", "qcluster", "--skip-checks"]
    pool = subprocess.Popen(command, cwd=Path(__file__).parents[1], env=plane.environment | environment)
    try:
        yield
    finally:
        pool.terminate()
        pool.wait(30)


def jobs(path: Path) -> tuple[list[float], list[float]]:
    """Seconds that jobs took to their start, one at a time and in turns: on our short lane, on the polling pool."""
    from django_q.tasks import async_task

    taken: dict[str, list[float]] = {"short": [], "polling": []}
    chance = random.Random(1)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notes:
        notes.bind(os.fspath(path))
        notes.settimeout(60)
        for turn in range(JOBS + 2):
            for lane, seconds in taken.items():
                time.sleep(chance.uniform(0.02, 0.22))  # at any point of a poll
                async_task("benchmarks.note.note", time.monotonic(), os.fspath(path), cluster=lane, save=False)
                answer = float(notes.recv(64))
                if turn > 1:
                    seconds.append(answer)
    return taken["short"], taken["polling"]


def launches(plane: Plane) -> tuple[list[float], list[float]]:
    """Seconds to a worker's claim of a launch: from its row, QUEUED, and from its hand-over to the pool."""
    from replicas.actions import services
    from replicas.web import intake

    service = intake.carry_out(intake.propose(FAKE), actor="benchmark").service
    made, handed_over = [], []
    for target in range(1, LAUNCHES + 1):
        services.scale(service.pk, target, actor="benchmark")
        seen = plane.wait(partial(taken_up, plane, target, {}), poll=0.002)
        made.append(seen["started"] - seen["created"])
        handed_over.append(seen["started"] - seen["enqueued"])
        plane.wait(partial(all_ready, plane, target))
        time.sleep(PAUSE_SECONDS)
    return made, handed_over


def all_ready(plane: Plane, target: int) -> bool:
    """Whether so many replicas are ready."""
    return plane.count("READY") == target


def taken_up(plane: Plane, number: int, seen: dict[str, float]) -> dict[str, float] | None:
    """When the launch of that replica was made, handed over and claimed; None before that.

    `seen` keeps the second of these, which is forgotten when the step ends.
    """
    for row in plane.query(MOMENTS, number):
        moments = zip(("created", "enqueued", "started"), row, strict=True)
        seen |= {name: days * 86400 for name, days in moments if days is not None}
    return seen if "started" in seen else None
