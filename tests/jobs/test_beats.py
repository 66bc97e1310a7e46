"""A pool is alive as long as jobs get through it, whichever they are."""

import queue as queues
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django_q import monitor as monitoring
from django_q.brokers import get_broker
from django_q.conf import Conf
from django_q.signals import post_execute

from replicas.core.values import Lane
from replicas.jobs import beats, queue
from replicas.models import Heartbeat

pytestmark = pytest.mark.django_db


def acknowledge(function: str, times: int = 1, success: bool = True) -> None:
    """What the monitor of a pool does when workers are done with jobs."""
    results: queues.Queue[Any] = queues.Queue()
    for number in range(times):
        job = {"id": f"{number}", "name": "job", "func": function, "args": (1,), "result": "", "save": False}
        results.put(job | {"success": success, "started": None, "stopped": None})
    results.put("STOP")
    monitoring.monitor(results, get_broker())


@pytest.fixture
def long_pool(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """This process is the long pool's; the file of its beat."""
    monkeypatch.setattr(Conf, "CLUSTER_NAME", "long")
    monkeypatch.setattr(beats, "_told", {})
    monkeypatch.setattr(monitoring, "close_old_django_connections", lambda: None)  # it would close the test's own
    queue.when_acknowledged(beats.got_through)
    yield home / "run" / "beat-long"
    post_execute.disconnect(dispatch_uid="beats")


@pytest.mark.parametrize(
    ("function", "success"), [(queue.BEAT, True), ("replicas.jobs.launch.run", True), ("replicas.jobs.down.run", False)]
)
def test_any_job_that_gets_through_is_a_sign_of_life(long_pool: Path, function: str, success: bool) -> None:
    """A heartbeat job that waits behind a long queue of launches says nothing about the pool."""
    assert not long_pool.exists()
    acknowledge(function, success=success)
    assert long_pool.exists()
    assert Heartbeat.objects.filter(name="long").exists()
    assert not long_pool.with_name("beat-short").exists()


def test_jobs_that_get_through_faster_are_one_sign_of_life(long_pool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It costs a write, and a pool may do hundreds of jobs a second."""
    told: list[str] = []
    monkeypatch.setattr(beats, "touch", told.append)
    acknowledge("replicas.jobs.launch.run", 50)
    assert told == ["long"]
    beats._told[Lane.LONG] -= beats.APART_SECONDS
    acknowledge("replicas.jobs.launch.run")
    assert told == ["long"] * 2
