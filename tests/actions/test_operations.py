"""Operations: claimed once, settled only under their claim, taken from the dead, cancelled, retried."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction

from replicas import clock
from replicas.actions import operations, replicas
from replicas.actions.operations import Refused, Usage
from replicas.actions.transition import writing
from replicas.core.values import OperationKind, OperationStatus
from replicas.models import Event, Operation, Replica
from replicas.models.public import operation_row, why
from tests import cast

pytestmark = pytest.mark.django_db
S = OperationStatus
NOTHING = Usage()


def claimed(replica: Replica, worker: operations.Owner = cast.WORKER) -> Operation:
    operation = operations.claim(cast.operation_of(replica).pk, worker)
    assert operation is not None
    return operation


def waiting(replica: Replica, seconds: float = 60, reason: str = "setup to be done") -> Operation:
    operation = claimed(replica)
    assert operations.wait(operation, checkpoint={"n": 1}, reason=reason, seconds=seconds, watch=None, usage=NOTHING)
    operation.refresh_from_db()
    return operation


def test_a_claim_takes_owner_and_begins_the_launch():
    replica = cast.pending(cast.service())
    operation = claimed(replica)
    replica.refresh_from_db()
    assert (operation.status, operation.owner_pid, operation.attempts) == (S.RUNNING, cast.WORKER.pid, 1)
    assert replica.state == "PROVISIONING"


def test_a_job_that_is_delivered_twice_is_claimed_once():
    replica = cast.pending(cast.service())
    claimed(replica)
    assert operations.claim(cast.operation_of(replica).pk, cast.OTHER_WORKER) is None


def test_a_job_that_is_delivered_late_finds_nothing_to_do():
    replica = cast.starting(cast.service())
    assert operations.claim(cast.operation_of(replica).pk, cast.WORKER) is None
    assert operations.claim(10**9, cast.WORKER) is None


def test_a_wait_is_not_claimed_before_its_time():
    replica = cast.pending(cast.service())
    operation = waiting(replica, seconds=60)
    assert operations.claim(operation.pk, cast.OTHER_WORKER) is None
    operations.hasten(operation.pk)
    again = operations.claim(operation.pk, cast.OTHER_WORKER)
    assert again is not None
    assert again.checkpoint == {"n": 1}


def test_polls_of_the_same_wait_show_nothing_and_write_no_event():
    replica = cast.pending(cast.service())
    operation = waiting(replica, seconds=0)
    shown, count = operation_row(Operation.objects.get(pk=operation.pk)), Event.objects.count()
    again = operations.claim(operation.pk, cast.OTHER_WORKER)
    assert again is not None
    assert operation_row(Operation.objects.get(pk=operation.pk)) == shown
    operations.wait(again, checkpoint={"n": 2}, reason="setup to be done", seconds=0, watch=None, usage=NOTHING)
    assert operation_row(Operation.objects.get(pk=operation.pk)) == shown
    assert Event.objects.count() == count
    assert Operation.objects.get(pk=operation.pk).checkpoint == {"n": 2}


@pytest.mark.parametrize("end", ["settle", "wait", "orphan", "cancel"])
def test_each_event_of_an_operation_begins_where_the_one_before_it_ended(end: str):
    """Also when polls of a wait, which have no event, lie between them."""
    replica = cast.pending(cast.service())
    operation = waiting(replica, seconds=0)
    again = operations.claim(operation.pk, cast.OTHER_WORKER)
    assert again is not None
    if end == "wait":
        operations.wait(again, checkpoint=None, reason="another reason", seconds=0, watch=None, usage=NOTHING)
    elif end == "orphan":
        operations.orphan(again, reason="its worker died")
    elif end == "cancel":
        operations.request_cancel(again.pk, actor="ann")
    again = again if end in ("settle", "cancel") else operations.claim(operation.pk, cast.WORKER)
    assert operations.settle(again, S.CANCELLED, None, reason="", usage=NOTHING) == "settled"
    links = list(Event.objects.filter(kind="operation", object_id=operation.pk).order_by("id").values("old", "new"))
    assert [after["old"] for after in links[1:]] == [before["new"] for before in links[:-1]]


def test_who_lost_the_claim_cannot_settle():
    replica = cast.pending(cast.service())
    first = claimed(replica)
    assert operations.orphan(Operation.objects.get(pk=first.pk), reason="silent")
    second = operations.claim(first.pk, cast.OTHER_WORKER)
    assert second is not None
    late = operations.settle(first, S.FAILED, "launch_failed", reason="late", usage=NOTHING)
    assert late == "stale"
    assert not operations.wait(first, checkpoint=None, reason="late", seconds=1, watch=None, usage=NOTHING)
    assert not operations.beat(first)
    assert operations.beat(second)
    assert Operation.objects.get(pk=first.pk).status == S.RUNNING
    assert Replica.objects.get(pk=replica.pk).state == "PROVISIONING"


def test_settling_ends_operation_and_replica_together_or_neither():
    replica = cast.pending(cast.service())
    operation = claimed(replica)
    replicas.retire(replica.pk, "retired", reason="not wanted", actor="ann")
    assert operations.settle(operation, S.SUCCEEDED, "launched", reason="", usage=NOTHING) == "refused"
    assert Operation.objects.get(pk=operation.pk).status == S.RUNNING
    assert operations.settle(operation, S.CANCELLED, "gone", reason="", usage=NOTHING) == "settled"
    replica.refresh_from_db()
    assert (replica.state, replica.outcome, replica.reason) == ("TERMINATED", "TERMINATED", "not wanted")


def test_a_launch_that_waits_is_cancelled_when_its_replica_was_preempted():
    replica = cast.pending(cast.service())
    operation = waiting(replica, seconds=300)
    assert replicas.observe(replica.pk, "preempted", reason="taken away", actor="controller")
    assert replicas.retire(replica.pk, "retired", reason="preempted", actor="controller")
    assert Operation.objects.get(pk=operation.pk).cancel_requested_at is not None
    replica.refresh_from_db()
    assert (replica.state, replica.outcome, replica.reason) == ("SHUTTING_DOWN", "PREEMPTED", "taken away")


def test_an_orphan_goes_on_from_its_checkpoint():
    replica = cast.pending(cast.service())
    operation = waiting(replica, seconds=0)
    dead = operations.claim(operation.pk, cast.WORKER)
    assert dead is not None
    assert operations.orphan(Operation.objects.get(pk=dead.pk), reason="its worker died")
    next_one = operations.claim(operation.pk, cast.OTHER_WORKER)
    assert next_one is not None
    assert (next_one.checkpoint, next_one.orphaned, next_one.attempts) == ({"n": 1}, 1, 1)


def test_usage_adds_up_over_steps():
    replica = cast.pending(cast.service())
    first = claimed(replica)
    operations.wait(first, checkpoint=None, reason="a", seconds=0, watch=None, usage=Usage(0.5, 100))
    second = operations.claim(first.pk, cast.WORKER)
    assert second is not None
    operations.settle(second, S.FAILED, "launch_failed", reason="", usage=Usage(0.25, 70))
    stored = Operation.objects.get(pk=first.pk)
    assert (stored.cpu_seconds, stored.peak_memory) == (0.75, 100)


def test_a_repeated_key_happens_once():
    service = cast.service()
    replica = cast.starting(service)
    replicas.retire(replica.pk, "retired", reason="x", actor="a")
    replica.refresh_from_db()
    with writing():
        operations.create(replica, OperationKind.DOWN, reason="x", actor="a", key="once")
    other = cast.pending(service)
    replicas.withdraw(other.pk, reason="x", actor="a")
    other.refresh_from_db()
    with pytest.raises(IntegrityError), transaction.atomic():
        operations.create(other, OperationKind.DOWN, reason="x", actor="a", key="once")


def test_cancelling_a_launch_that_has_not_begun_ends_it_at_once():
    replica = cast.pending(cast.service())
    operations.request_cancel(cast.operation_of(replica).pk, actor="ann")
    stored = cast.operation_of(replica)
    assert stored.status == S.CANCELLED
    assert (operation_row(stored)["cancel_reason"], why(stored)) == ("launch cancelled by ann",) * 2
    replica.refresh_from_db()
    assert replica.state == "TERMINATED"


def test_cancelling_a_launch_in_flight_shows_cancelling_until_its_job_has_cleaned_up():
    replica = cast.pending(cast.service())
    operation = claimed(replica)
    operations.request_cancel(operation.pk, actor="ann")
    operations.request_cancel(operation.pk, actor="bob")
    stored = cast.operation_of(replica)
    assert operation_row(stored)["status"] == "CANCELLING"
    assert operation_row(stored)["cancel_reason"] == "launch cancelled by ann"
    replica.refresh_from_db()
    assert (replica.state, replica.outcome) == ("SHUTTING_DOWN", "TERMINATED")
    assert Event.objects.filter(trigger="cancel_requested").count() == 1


def test_a_cancelled_wait_is_claimed_before_its_time():
    replica = cast.pending(cast.service())
    operation = waiting(replica, seconds=600)
    operations.request_cancel(operation.pk, actor="ann")
    assert operations.claim(operation.pk, cast.WORKER) is not None


def test_what_cannot_be_cancelled_says_why():
    replica = cast.ready(cast.service())
    with pytest.raises(Refused, match="already ended"):
        operations.request_cancel(cast.operation_of(replica).pk, actor="ann")
    with pytest.raises(Refused, match="no operation"):
        operations.request_cancel(10**9, actor="ann")
    replicas.retire(replica.pk, "retired", reason="x", actor="a")
    down = replicas.begin_down(replica.pk, reason="x", actor="a")
    assert down is not None
    with pytest.raises(Refused, match="left over"):
        operations.request_cancel(down.pk, actor="ann")


def test_retry_makes_a_wait_due_and_tries_a_failed_down_again():
    service = cast.service()
    operation = waiting(cast.pending(service), seconds=600)
    operations.request_retry(operation.pk, actor="ann")
    assert operations.claim(operation.pk, cast.WORKER) is not None
    replica = cast.ready(service)
    replicas.retire(replica.pk, "retired", reason="x", actor="a")
    down = replicas.begin_down(replica.pk, reason="x", actor="a")
    assert down is not None
    owned = operations.claim(down.pk, cast.WORKER)
    assert owned is not None
    operations.settle(owned, S.FAILED, "cleanup_failed", reason="busy", usage=NOTHING)
    again = operations.request_retry(down.pk, actor="ann")
    assert again.pk != down.pk
    with pytest.raises(Refused, match=f"was retried already: operation {again.pk} is QUEUED"):
        operations.request_retry(down.pk, actor="ann")


def test_a_hold_is_written_once():
    operation = cast.operation_of(cast.pending(cast.service()))
    operations.hold(operation.pk, "8 of 8 launches in flight")
    count = Event.objects.count()
    operations.hold(operation.pk, "8 of 8 launches in flight")
    assert Event.objects.count() == count
    assert cast.operation_of(operation.replica).waits_for == "8 of 8 launches in flight"


def test_begin_down_makes_one_operation():
    replica = cast.ready(cast.service())
    assert replicas.begin_down(replica.pk, reason="x", actor="a") is None
    replicas.retire(replica.pk, "retired", reason="x", actor="a")
    assert replicas.begin_down(replica.pk, reason="x", actor="a") is not None
    assert replicas.begin_down(replica.pk, reason="x", actor="a") is None


def test_a_heartbeat_is_renewed_only_under_the_claim():
    operation = claimed(cast.pending(cast.service()))
    old = clock.now() - timedelta(hours=1)
    Operation.objects.filter(pk=operation.pk).update(heartbeat_at=old)
    assert operations.beat(operation)
    stored = Operation.objects.get(pk=operation.pk)
    assert stored.heartbeat_at is not None
    assert stored.heartbeat_at > old
