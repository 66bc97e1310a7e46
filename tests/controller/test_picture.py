"""What the controller keeps from one look to the next: rows that are read again are those that have changed, and the
picture is that of the rows whatever became of the events."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db.models.sql.compiler import SQLCompiler

from replicas import clock
from replicas.actions import operations, pruning, scaling
from replicas.actions.operations import Owner
from replicas.controller import loop as loops
from replicas.controller import picture as pictures
from replicas.controller.picture import Picture
from replicas.models import Event, Operation, Replica
from replicas.providers import registry
from tests import cast
from tests.controller.stage import Stage


@pytest.fixture
def read(monkeypatch: Any) -> Counter[str]:
    """Counts the rows that come from the database, by their table."""
    counted: Counter[str] = Counter()
    results = SQLCompiler.results_iter

    def counting(self: Any, *arguments: Any, **options: Any) -> Iterator[Any]:
        for row in results(self, *arguments, **options):
            counted[self.query.model.__name__] += 1
            yield row

    monkeypatch.setattr(SQLCompiler, "results_iter", counting)
    return counted


def end_one(stage: Stage) -> None:
    """One replica of the first service ends by itself."""
    victim = Replica.objects.filter(state="READY").earliest("id")
    registry.get("fake", settings.ROLLCALL.home).end(victim.uid, 1)  # type: ignore[attr-defined]
    stage.loop.watch.asked.clear()


def test_a_tick_after_an_end_reads_as_little_among_many_as_among_few(stage: Stage, read: Counter[str]) -> None:
    def rows_of_a_tick() -> int:
        end_one(stage)
        read.clear()
        stage.loop.tick(stage.applier)
        found = read["Replica"] + read["Operation"]
        stage.settle(service)
        return found

    service = cast.service("first", target=2)
    stage.settle(service)
    few = rows_of_a_tick()
    for name in ("second", "third"):
        stage.settle(cast.service(name, target=15))
    assert rows_of_a_tick() == few < 20


def test_each_of_many_launches_is_read_as_often_as_one_of_few(
    stage: Stage, read: Counter[str], monkeypatch: Any
) -> None:
    monkeypatch.setattr(loops, "MOST_ACTIONS", 5)  # as a thousand would be with the usual number
    stage.loop.config = replace(stage.loop.config, max_launches=1)  # those in flight are read at each look

    def rows_for_each(count: int) -> float:
        service = cast.service(f"with-{count}", target=count)
        read.clear()
        while service.replicas.count() < count:
            stage.loop.tick(stage.applier)
        return (read["Replica"] + read["Operation"]) / count

    stage.tick()
    rows_for_each(5)
    few = rows_for_each(20)
    assert rows_for_each(80) <= few * 1.1


def test_the_picture_is_that_of_the_rows_when_operations_change_without_an_event(stage: Stage) -> None:
    cast.service(target=3)
    stage.tick()
    picture = stage.loop.picture
    number = Operation.objects.latest("id").pk

    def looked() -> Picture:
        picture.look()
        read = Picture()
        read.look()
        assert picture == read
        return picture

    events = Event.objects.count()
    operations.mark_enqueued([number])
    assert looked().operations[number].view.deliveries
    Operation.objects.filter(pk=number).update(enqueued_at=None)  # back to where it was, past the actions
    assert not looked().operations[number].in_flight
    operations.mark_enqueued([number])
    looked()
    assert Event.objects.count() == events
    claimed = operations.claim(number, Owner("here", 1, 1))
    assert claimed is not None
    looked()
    Operation.objects.filter(pk=number).update(heartbeat_at=clock.now() + timedelta(seconds=9))
    beat = looked().operations[number].owned.heartbeat_at
    assert beat is not None
    assert beat > clock.now()


def test_events_that_were_pruned_are_missed_by_nobody(stage: Stage) -> None:
    service = cast.service(target=3)
    stage.settle(service)
    before = set(stage.loop.picture.replicas)
    scaling.scale(service.pk, 1, actor="ann")
    kept, stage.loop.picture = stage.loop.picture, Picture()
    stage.settle(service)
    stage.loop.picture = kept
    pruning.prune(clock.now() + timedelta(minutes=1), forget_replica=lambda *_: None, keep=0)
    assert not Event.objects.filter(pk__lte=stage.loop.picture.cursor).exists()
    assert set(stage.loop.picture.replicas) == before
    stage.tick()  # which compares it with the rows
    assert len(stage.loop.picture.replicas) == 1


def test_very_many_changes_are_read_in_parts(stage: Stage, monkeypatch: Any) -> None:
    monkeypatch.setattr(pictures, "BLOCK", 2)
    service = cast.service(target=9)
    stage.settle(service)
    scaling.scale(service.pk, 2, actor="ann")
    stage.settle(service)
    assert len(stage.loop.picture.replicas) == 2


def test_now_and_then_and_with_a_new_lease_everything_is_read(stage: Stage, monkeypatch: Any) -> None:
    service = cast.service(target=1)
    stage.settle(service)

    def written_past_the_actions(reason: str) -> None:
        Replica.objects.update(reason=reason)

    written_past_the_actions("one")
    stage.loop.next["whole"] = 0.0
    stage.tick()
    assert [living.view.reason for living in stage.loop.picture.replicas.values()] == ["one"]
    written_past_the_actions("two")
    monkeypatch.setattr(stage.loop, "sleep", lambda *_: None)
    monkeypatch.setattr(loops, "close_old_connections", lambda: None)
    monkeypatch.setattr(stage.loop, "worth_a_look", lambda: stage.loop.stop() or True)
    stage.loop.next["whole"] = float("inf")
    stage.loop.hold(stage.applier)
    assert [living.view.reason for living in stage.loop.picture.replicas.values()] == ["two"]
