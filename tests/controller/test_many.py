"""Very many launches are cancelled at once, by several people and the controller: nobody finds the database locked."""

import threading

import pytest
from django.db import connection

from replicas.actions import leases, operations
from replicas.controller.loop import LEASE
from replicas.core.values import ReplicaState
from replicas.models import Event, Operation, Replica
from tests import cast
from tests.controller.stage import Stage

LAUNCHES = 1000
PEOPLE = 4


@pytest.mark.django_db(transaction=True)
def test_a_thousand_launches_are_cancelled_at_once(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reported of another system: with a thousand jobs the database was locked, and some of them stayed."""
    monkeypatch.setattr(stage.loop, "hand_over", lambda *_: None)  # no worker takes one up
    cast.in_bulk(cast.service(target=0), LAUNCHES, ReplicaState.PENDING)
    numbers = list(Operation.objects.order_by("id").values_list("id", flat=True))
    faults: list[BaseException] = []
    cancelled = []

    def cancel(part: list[int]) -> None:
        try:
            for number in part:
                try:
                    operations.request_cancel(number, actor="ann")
                    cancelled.append(number)
                except operations.Refused as error:  # the controller, which wants none of them either, was first
                    assert "already ended" in str(error), error  # noqa: PT017 - what it says is what is tested
        except BaseException as error:  # noqa: BLE001 - whatever goes wrong in the thread is the test's result
            faults.append(error)
        finally:
            connection.close()

    people = [threading.Thread(target=cancel, args=(numbers[place::PEOPLE],)) for place in range(PEOPLE)]
    for person in people:
        person.start()
    while any(person.is_alive() for person in people):
        leases.acquire(LEASE, stage.loop.holder, 60)
        stage.loop.tick(stage.applier)
    stage.tick()
    assert not faults
    assert Operation.objects.filter(status="CANCELLED").count() == LAUNCHES
    assert Replica.objects.filter(state="TERMINATED").count() == LAUNCHES
    ends = Event.objects.filter(kind="replica", new="TERMINATED")
    assert ends.count() == ends.values("object_id").distinct().count() == LAUNCHES
    assert 0 < len(cancelled) < LAUNCHES  # people and the controller were at it together
