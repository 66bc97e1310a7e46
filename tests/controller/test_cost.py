"""What a tick may cost: queries that do not grow with what there is, and nothing written that was said before."""

import time
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext

from replicas.controller import loop as loops
from replicas.controller.watch import Key
from replicas.models import Event, Operation, Replica
from replicas.providers import registry
from tests import cast
from tests.controller.stage import Stage
from tests.support.patience import within


def queries(stage: Stage) -> int:
    """Of one more tick, without what is done once in some seconds (a sign of life, the look for notices)."""
    stage.tick()
    with pytest.MonkeyPatch.context() as patch, CaptureQueriesContext(connection) as captured:
        patch.setattr(stage.loop, "every", lambda *_: False)
        stage.loop.tick(stage.applier)
    return len(captured)


def test_a_steady_tick_asks_as_little_of_many_as_of_few(stage: Stage) -> None:
    stage.settle(cast.service("first", target=1))
    few = queries(stage)
    for name in ("second", "third", "fourth"):
        stage.settle(cast.service(name, target=5))
    assert queries(stage) == few <= 5


def test_a_tick_over_held_launches_asks_nothing_for_each(stage: Stage) -> None:
    cast.service(target=18)
    stage.tick()
    few = queries(stage)
    cast.service("other", target=40)
    stage.tick()
    assert Operation.objects.filter(waits_for__contains="in flight").count() > 20
    newest = Event.objects.latest("id").pk
    assert queries(stage) == few
    assert Event.objects.latest("id").pk == newest


def test_a_service_that_wants_many_keeps_neither_the_others_nor_the_lease_waiting(
    stage: Stage, monkeypatch: Any
) -> None:
    monkeypatch.setattr(loops, "MOST_ACTIONS", 4)
    kept = []
    monkeypatch.setattr(stage.loop, "renew", kept.append)
    many, few = cast.service("many", target=30), cast.service("few", target=2)
    stage.loop.next["renew"] = 0.0
    stage.tick()
    assert Replica.objects.filter(service=many).count() == 4 * loops.ROUNDS
    assert Replica.objects.filter(service=few).count() == 2
    assert stage.applier in kept
    many.refresh_from_db()
    assert many.live > 4  # it is told on the way
    stage.loop.next["renew"] = float("inf")
    stage.settle(few)
    stage.settle(many)


def test_an_end_is_written_down_before_the_rows_are_read(stage: Stage, monkeypatch: Any) -> None:
    service = cast.service(target=1)
    stage.settle(service)
    victim = Replica.objects.get(service=service)
    registry.get("fake", settings.ROLLCALL.home).end(victim.uid, 7)  # type: ignore[attr-defined]
    seen = []
    read = loops.observe
    monkeypatch.setattr(loops, "observe", lambda *of: seen.append(Replica.objects.get(pk=victim.pk).state) or read(*of))
    stage.loop.watch.ended.add(Key("replica", victim.pk, (1, 1)))
    stage.tick()
    assert set(seen) == {"SHUTTING_DOWN"}


def test_the_controller_rests_after_work_and_not_after_a_pause(stage: Stage) -> None:
    def slept(*seconds: float) -> float:
        began = time.monotonic()
        stage.loop.sleep(0.0, *(began + each for each in seconds))
        return time.monotonic() - began

    assert slept(0.3) >= 0.3
    assert slept(-5.0) >= loops.SETTLE_SECONDS
    with within(0.3):
        slept(-5.0)
        slept()
