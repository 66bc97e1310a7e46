"""A controller that takes over has nothing to tell of services of which nothing has changed."""

from typing import Any

import pytest
from django.conf import settings

from replicas.actions import leases, services
from replicas.controller.loop import LEASE
from replicas.models import Event, Replica
from replicas.providers import registry
from tests import cast
from tests.controller.stage import Stage


def calm(stage: Stage, rounds: int = 40) -> None:
    """Tick, deliver and probe until three rounds in a row have told nothing."""
    quiet = 0
    for _ in range(rounds):
        before = Event.objects.count()
        stage.tick()
        stage.deliver()
        stage.probe()
        quiet = quiet + 1 if Event.objects.count() == before else 0
        if quiet == 3:
            return
    raise AssertionError(f"still telling: {list(Event.objects.order_by('-id').values('trigger', 'reason')[:5])}")


def take_over(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Another controller ticks a few times; what it tells."""
    newest = Event.objects.latest("id").pk
    leases.release(LEASE, stage.loop.holder)
    other = Stage(monkeypatch)
    other.loop.watch.inspect_seconds = 0
    try:
        for _ in range(3):
            other.tick()
            other.deliver()
            other.probe()
    finally:
        other.close()
    return list(Event.objects.filter(pk__gt=newest).values("kind", "trigger", "reason"))


@pytest.mark.parametrize("target", [1, 3])
def test_of_one_that_is_ready(stage: Stage, monkeypatch: pytest.MonkeyPatch, target: int) -> None:
    cast.service(target=target)
    calm(stage)
    assert Replica.objects.filter(state="READY").count() == target
    assert take_over(stage, monkeypatch) == []


def test_of_one_that_lost_a_replica_before(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    service = cast.service(target=2)
    calm(stage)
    registry.get("fake", settings.ROLLCALL.home).end(Replica.objects.get(number=1).uid, 1)  # type: ignore[attr-defined]
    stage.loop.watch.inspect_seconds = 0
    calm(stage)
    service.refresh_from_db()
    assert service.reason == "2 of 2 ready"
    assert take_over(stage, monkeypatch) == []


@pytest.mark.parametrize("fake", [{"exit_after_seconds": 0, "exit_code": 1}, {"setup_fails": "no such package"}])
def test_of_one_that_fails_and_waits(stage: Stage, monkeypatch: pytest.MonkeyPatch, fake: dict[str, Any]) -> None:
    cast.service(target=2, fake=fake)
    stage.loop.watch.inspect_seconds = 0
    calm(stage)
    assert Replica.objects.filter(state="FAILED").exists()
    assert take_over(stage, monkeypatch) == []


def test_of_one_that_is_starting(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    cast.service(target=2, fake={"ready_after_seconds": 1000})
    calm(stage)
    assert Replica.objects.filter(state="STARTING").count() == 2
    assert take_over(stage, monkeypatch) == []


def test_of_one_in_the_middle_of_an_update(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    cast.service(target=2)
    calm(stage)
    cast.service(target=2, run="sleep 61", fake={"ready_after_seconds": 1000})
    calm(stage)
    assert take_over(stage, monkeypatch) == []


def test_of_one_that_is_down(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    service = cast.service(target=2)
    calm(stage)
    services.take_down(service.pk, purge=False, actor="ann")
    calm(stage)
    service.refresh_from_db()
    assert service.status == "DOWN"
    assert take_over(stage, monkeypatch) == []
