"""Steps that fail beside their provider, that take long, and results that come too late to be true."""

import asyncio
import dataclasses
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError

from replicas import clock
from replicas.actions import operations
from replicas.jobs import launch, probe, runner
from replicas.models import Operation, Replica
from replicas.providers.probe import ProbeResult
from tests import cast

S = operations.S


def away(_step: runner.Step) -> None:
    """A step that meets a database which does not answer."""
    raise OperationalError("database is locked")


@pytest.mark.django_db
def test_a_step_that_fails_beside_its_provider_lets_go_and_is_taken_up_again_at_once(home: Path) -> None:
    replica = cast.pending(cast.service())
    operation = cast.operation_of(replica)
    with pytest.raises(OperationalError):
        runner.perform(operation.pk, away)
    operation.refresh_from_db()
    assert (operation.status, operation.owner_pid, operation.orphaned) == (S.WAITING, None, 1)
    assert "database is locked" in operation.waits_for
    launch.run(operation.pk)
    operation.refresh_from_db()
    assert operation.status == S.SUCCEEDED


@pytest.mark.django_db
def test_a_step_that_fails_again_and_again_is_given_up_with_its_cause(home: Path) -> None:
    replica = cast.pending(cast.service())
    operation = cast.operation_of(replica)
    for _ in range(runner.ORPHAN_LIMIT):
        with pytest.raises(OperationalError):
            runner.perform(operation.pk, away)
    launch.run(operation.pk)
    replica.refresh_from_db()
    assert (replica.state, replica.outcome) == ("SHUTTING_DOWN", "FAILED_PROVISION")
    assert "database is locked" in replica.reason


@pytest.mark.django_db
def test_who_lets_go_late_takes_nothing_from_a_successor(home: Path) -> None:
    replica = cast.pending(cast.service())
    operation = cast.operation_of(replica)

    def overtaken(step: runner.Step) -> None:
        assert operations.orphan(step.operation, reason="silent")
        assert operations.claim(operation.pk, cast.OTHER_WORKER)
        raise OperationalError("database is locked")

    with pytest.raises(OperationalError):
        runner.perform(operation.pk, overtaken)
    operation.refresh_from_db()
    assert (operation.status, operation.owner_pid) == (S.RUNNING, cast.OTHER_WORKER.pid)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("workers", "speaks"), [(1, True), (2, False)])
def test_the_steps_speak_for_a_pool_whose_workers_are_all_at_work(
    home: Path, monkeypatch: Any, settings: Any, eventually: Callable[..., Any], workers: int, speaks: bool
) -> None:
    monkeypatch.setattr(runner, "BEAT_SECONDS", 0.02)
    settings.ROLLCALL = dataclasses.replace(settings.ROLLCALL, long_workers=workers)
    beat = home / "run" / "beat-long"
    replica = cast.pending(cast.service())

    def long(step: runner.Step) -> None:
        before = Operation.objects.get(pk=step.operation.pk).heartbeat_at
        eventually(lambda: Operation.objects.get(pk=step.operation.pk).heartbeat_at > before)
        eventually(lambda: beat.exists() or not speaks)

    runner.perform(cast.operation_of(replica).pk, long)
    assert beat.exists() == speaks


async def result_of(job: probe.Round, replica: Replica) -> None:
    """Load the rows, and put in a failure that was seen before."""
    await job._refresh()
    (target,) = (each for each in job.targets.values() if each.id == replica.pk)
    job.results = [(ProbeResult(target.key, False, 503, None, "HTTP 503", "", 0.1), clock.now())]
    await job._record()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("silent", "state"), [(0.5, "NOT_READY"), (5.0, "READY")])
def test_a_probe_job_that_was_stopped_writes_nothing_of_what_it_saw_before(
    home: Path, silent: float, state: str
) -> None:
    """Another job may have the shard by now."""
    replica = cast.ready(cast.service())
    with ThreadPoolExecutor(1) as rows:

        async def act() -> None:
            job = probe.Round(0, "me", rows)
            job.renewed = time.monotonic() - silent
            await result_of(job, replica)

        asyncio.run(act())
        rows.submit(lambda: probe.connection.close()).result()
    replica.refresh_from_db()
    assert replica.state == state
