"""State changes: compare-and-set with the event in the same transaction, and a lost race is an answer."""

import itertools
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from replicas.actions import replicas
from replicas.actions.transition import change, transition, writing
from replicas.core.values import ReplicaState
from replicas.models import Event, Operation, Replica, Service, ServiceVersion
from replicas.models.service import Immutable
from tests import cast

pytestmark = pytest.mark.django_db
RACES = int(os.environ.get("ROLLCALL_RACES", "100"))  # `make explore` has a thousand


def events_of(replica: Replica) -> list[Event]:
    return list(Event.objects.filter(kind="replica", object_id=replica.pk).order_by("id"))


def test_a_transition_writes_state_reason_time_and_event_together():
    replica = cast.starting(cast.service())
    before = replica.revision
    assert transition(replica, "probe_passed", reason="HTTP 200", actor="probe")
    stored = Replica.objects.get(pk=replica.pk)
    assert (stored.state, stored.reason, stored.revision) == (ReplicaState.READY, "HTTP 200", before + 1)
    assert stored.ready_at == stored.state_since
    event = events_of(replica)[-1]
    assert (event.trigger, event.old, event.new, event.revision) == ("probe_passed", "STARTING", "READY", before + 1)
    assert event.data["state"] == "READY"


def test_a_trigger_that_does_not_apply_changes_nothing():
    replica = cast.starting(cast.service())
    count = Event.objects.count()
    assert not transition(replica, "drained", reason="", actor="x")
    assert Event.objects.count() == count
    assert Replica.objects.get(pk=replica.pk).state == ReplicaState.STARTING


def test_who_read_an_older_revision_loses():
    replica = cast.starting(cast.service())
    late = Replica.objects.select_related("service").get(pk=replica.pk)
    assert transition(replica, "probe_passed", reason="", actor="probe")
    assert not transition(late, "exited", reason="code 1", actor="controller")
    assert Replica.objects.get(pk=replica.pk).state == ReplicaState.READY


def test_the_outcome_is_fixed_when_teardown_begins_and_the_first_reason_stays():
    replica = cast.ready(cast.service())
    assert replicas.observe(replica.pk, "exited", reason="exited with code 7", actor="controller")
    assert not replicas.observe(replica.pk, "lost", reason="lost", actor="controller")
    assert not replicas.retire(replica.pk, "retired", reason="not wanted", actor="controller")
    assert replicas.observe(replica.pk, "gone", reason="cleaned up", actor="job")
    stored = Replica.objects.get(pk=replica.pk)
    assert (stored.state, stored.outcome, stored.reason) == ("FAILED", "FAILED", "exited with code 7")
    assert stored.ended_at is not None


def test_nothing_happens_to_a_replica_that_has_ended():
    replica = cast.pending(cast.service())
    assert replicas.withdraw(replica.pk, reason="not wanted", actor="controller")
    for trigger in ("launch_begun", "launched", "gone", "exited", "retired", "cleanup_failed"):
        assert not replicas.observe(replica.pk, trigger, reason="late", actor="x")
    assert Replica.objects.get(pk=replica.pk).state == "TERMINATED"


def test_a_failed_transaction_leaves_neither_change_nor_event():
    replica = cast.starting(cast.service())
    count = Event.objects.count()

    class Broken(Exception):
        pass

    with pytest.raises(Broken), writing():
        assert transition(replica, "probe_passed", reason="", actor="probe")
        raise Broken
    assert Event.objects.count() == count
    assert Replica.objects.get(pk=replica.pk).state == "STARTING"


def test_listeners_are_told_once_for_all_that_is_written_together(django_capture_on_commit_callbacks: Any):
    first, second = cast.starting(cast.service()), cast.starting(cast.service("other"))
    with django_capture_on_commit_callbacks() as rings, writing():
        replicas.observe(first.pk, "probe_passed", reason="HTTP 200", actor="probe")
        replicas.observe(second.pk, "probe_passed", reason="HTTP 200", actor="probe")
    assert len(rings) == 1
    with django_capture_on_commit_callbacks() as rings, transaction.atomic():
        replicas.observe(first.pk, "probe_failed", reason="HTTP 500", actor="probe")
        replicas.observe(second.pk, "probe_failed", reason="HTTP 500", actor="probe")
    assert len(rings) == 2, "who wrote within a transaction of somebody else's tells by itself"


def test_the_database_refuses_the_impossible():
    service = cast.service()
    replica = cast.pending(service)
    operation = cast.operation_of(replica)

    def refused(write):  # type: ignore[no-untyped-def]
        with pytest.raises(IntegrityError), transaction.atomic():
            write()

    refused(lambda: Replica.objects.filter(pk=replica.pk).update(state="SLEEPING"))
    refused(lambda: Replica.objects.filter(pk=replica.pk).update(outcome="READY"))
    refused(lambda: Replica.objects.filter(pk=replica.pk).update(state="FAILED"))
    refused(lambda: Replica.objects.filter(pk=replica.pk).update(ended_at=replica.created_at))
    refused(lambda: Service.objects.filter(pk=service.pk).update(status="FINE"))
    refused(lambda: Operation.objects.filter(pk=operation.pk).update(status="RUNNING"))
    refused(lambda: Operation.objects.filter(pk=operation.pk).update(status="SUCCEEDED"))
    refused(
        lambda: Operation.objects.create(
            service=service, replica=replica, kind="DOWN", created_at=replica.created_at, revision=1
        )
    )
    copy = Event.objects.filter(kind="replica", object_id=replica.pk).first()
    assert copy is not None
    copy.pk = None
    copy._state.adding = True
    refused(copy.save)


def test_a_version_cannot_be_changed():
    version = ServiceVersion.objects.get(pk=cast.service().version_id)
    version.text = "other"
    with pytest.raises(Immutable, match="apply a new version"):
        version.save()


def test_a_change_without_a_row_is_a_lost_race():
    service = cast.service()
    stale = Service.objects.select_related("version").get(pk=service.pk)
    assert change(service, "x", reason="", actor="a", endpoint="one")
    assert not change(stale, "x", reason="", actor="a", endpoint="two")
    assert Service.objects.get(pk=service.pk).endpoint == "one"


@pytest.mark.django_db(transaction=True)
def test_the_refresher_and_the_terminator_race_and_one_end_state_stands():
    """Reported of another system: a finished status was overwritten by a later finisher, in one race of very many."""
    made = cast.in_bulk(cast.service(), RACES, ReplicaState.READY)
    start = threading.Barrier(2, timeout=60)
    lost: list[BaseException] = []

    def race(reason: str, *triggers: str) -> None:
        try:
            for replica in made:
                start.wait()
                for trigger in triggers:
                    replicas.observe(replica.pk, trigger, reason=reason, actor="x")
        except BaseException as error:  # noqa: BLE001 - whatever goes wrong in the thread is the test's result
            lost.append(error)
            start.abort()
        finally:
            connection.close()

    refresher = threading.Thread(target=race, args=("a", "exited", "gone"))
    terminator = threading.Thread(target=race, args=("b", "retired", "gone"))
    for thread in (refresher, terminator):
        thread.start()
    for thread in (refresher, terminator):
        thread.join()
    assert not lost
    assert one_end_each() == {"FAILED", "TERMINATED"}  # each of them was first now and then


def one_end_each() -> set[str]:
    """The ends of all replicas, of which each was READY, and has one that goes with what began it."""
    history: dict[int, list[Event]] = {}
    for event in Event.objects.filter(kind="replica").order_by("id"):
        history.setdefault(event.object_id, []).append(event)
    ends = {each.pk: each for each in Replica.objects.all()}
    assert history.keys() == ends.keys()
    for number, told in history.items():
        end = ends[number].state
        assert [event.revision for event in told] == [2, 3]
        assert [(event.old, event.new) for event in told] == [("READY", "SHUTTING_DOWN"), ("SHUTTING_DOWN", end)]
        assert told[0].data["outcome"] == ends[number].outcome == end
        assert ends[number].reason == told[0].reason == {"FAILED": "a", "TERMINATED": "b"}[end]
    return {each.state for each in ends.values()}


def test_in_each_order_of_reads_and_writes_the_refresher_and_the_terminator_leave_one_end_state():
    """What threads on SQLite never come to, as whoever writes reads first: both have read before either writes.

    Each reads, lets the end begin, reads again, and ends it; then it tries again, as it would in life.
    """
    orders = sorted(set(itertools.permutations("rrrrtttt")))
    assert len(orders) == 70
    for replica, order in zip(cast.in_bulk(cast.service(), len(orders), ReplicaState.READY), orders, strict=True):
        finishers = {"r": finisher(replica.pk, "a", "exited"), "t": finisher(replica.pk, "b", "retired")}
        for turn in (*order, *"rrrr"):
            next(finishers[turn])
    assert one_end_each() == {"FAILED", "TERMINATED"}


def finisher(replica_id: int, reason: str, begin: str) -> Iterator[None]:
    """Does one thing each time that it is asked: read, let `begin` happen, read, let the end happen, and so on."""
    while True:
        for trigger in (begin, "gone"):
            replica = Replica.objects.select_related("service").get(pk=replica_id)
            yield
            transition(replica, trigger, reason=reason, actor="x")
            yield


def test_a_replica_that_became_ready_meanwhile_is_not_taken_down_without_a_drain():
    replica = cast.ready(cast.service())
    assert not replicas.retire(replica.pk, "retired", reason="x", actor="controller", among={"STARTING", "NOT_READY"})
    replica.refresh_from_db()
    assert replica.state == "READY"
