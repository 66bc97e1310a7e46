"""`operations`: what is going on, what it waits for, and how to cancel or hasten it."""

import json
from pathlib import Path

from replicas.actions import operations
from replicas.core.values import OperationStatus
from replicas.models import Lease, Operation, Replica
from replicas.models.public import operation_row
from tests.commands import acts
from tests.commands.conftest import Run


def launch(run: Run, yaml: Path) -> Operation:
    """A queued launch."""
    run("apply", yaml)
    return acts.operation_of(acts.pending(acts.service()))


def claimed(run: Run, yaml: Path) -> Operation:
    """A launch that a worker has taken up."""
    operation = operations.claim(launch(run, yaml).pk, acts.WORKER)
    assert operation is not None
    return operation


def test_lists_what_is_not_done(run: Run, yaml: Path, controller: Lease) -> None:
    assert run("operations").out == "No launch and no down is going on.\n"
    assert run("operations", "--all").out == "There are no operations.\n"
    operation = launch(run, yaml)
    operations.hold(operation.pk, "one of 4 launches in flight to be done")
    out = run("operations").out
    assert "web/1" in out
    assert "QUEUED" in out
    assert "one of 4 launches in flight to be done" in out


def test_ended_ones_only_with_all(run: Run, yaml: Path, controller: Lease) -> None:
    run("apply", yaml)
    acts.end(acts.ready(acts.service()))
    assert run("operations").out == "No launch and no down is going on.\n"
    out = run("operations", "--all").out
    assert out.count("SUCCEEDED") == 2
    assert "3.0 MiB" in out


def test_json_is_a_list_of_public_rows(run: Run, yaml: Path, controller: Lease) -> None:
    operation = launch(run, yaml)
    assert json.loads(run("operations", "--json").out) == [{"service": "web"} | operation_row(operation)]
    keys = (
        "service id revision service_id replica_id number kind lane status reason waits_for error cancel_reason"
        " attempts worker peak_memory cpu_seconds created_at started_at ended_at"
    )
    assert list(json.loads(run("operations", "--json").out)[0]) == keys.split()


def test_cancels_a_launch_that_nobody_has_taken_up(run: Run, yaml: Path, controller: Lease) -> None:
    operation = launch(run, yaml)
    result = run("operations", "--cancel", operation.pk)
    assert (result.code, result.out) == (
        0,
        "The launch of replica 1 of web is being cancelled. While web wants as many replicas as now, another launch"
        f" takes its place. (Operation {operation.pk}.)\n",
    )
    operation.refresh_from_db()
    assert (operation.status, Replica.objects.get().state) == (OperationStatus.CANCELLED, "TERMINATED")


def test_cancels_a_launch_in_flight(run: Run, yaml: Path, controller: Lease) -> None:
    operation = claimed(run, yaml)
    assert run("operations", "--cancel", operation.pk).code == 0
    operation.refresh_from_db()
    assert operation.cancel_requested_at is not None
    assert Replica.objects.get().state == "SHUTTING_DOWN"
    assert "CANCELLING" in run("operations").out


def test_what_cannot_be_cancelled(run: Run, yaml: Path, controller: Lease) -> None:
    run("apply", yaml)
    acts.ready(acts.service())
    done = Operation.objects.get()
    result = run("operations", "--cancel", done.pk)
    assert (result.code, "has already ended (SUCCEEDED)" in result.err) == (1, True)
    result = run("operations", "--cancel", 999)
    assert (result.code, "There is no operation 999." in result.err) == (4, True)


def test_hastens_a_launch_that_waits(run: Run, yaml: Path, controller: Lease) -> None:
    operation = claimed(run, yaml)
    usage = operations.Usage()
    operations.wait(operation, checkpoint={}, reason="a retry", seconds=900, watch=None, usage=usage)
    operation.refresh_from_db()
    due = operation.retry_at
    result = run("operations", "--retry", operation.pk)
    assert (result.code, result.out) == (0, f"Operation {operation.pk} (launch of web/1) is looked at again at once.\n")
    operation.refresh_from_db()
    assert operation.retry_at < due


def test_tries_a_failed_down_again(run: Run, yaml: Path, controller: Lease) -> None:
    run("apply", yaml)
    replica = acts.cleanup_failed(acts.ready(acts.service()))
    failed = acts.operation_of(replica)
    result = run("operations", "--retry", failed.pk)
    again = acts.operation_of(replica)
    assert again.pk > failed.pk
    assert (result.code, result.out) == (
        0,
        f"Operation {failed.pk} (down of web/1) is looked at again at once as operation {again.pk}.\n",
    )


def test_what_cannot_be_retried(run: Run, yaml: Path, controller: Lease) -> None:
    operation = launch(run, yaml)
    result = run("operations", "--retry", operation.pk)
    assert (result.code, "only a waiting operation or a failed down can be retried" in result.err) == (1, True)
    assert run("operations", "--retry", 999).code == 4


def test_a_wrong_command_line(run: Run, controller: Lease) -> None:
    assert run("operations", "--cancel", "x").code == 2
    assert run("operations", "--cancel", "1", "--retry", "2").code == 2


def test_warns_when_nobody_carries_it_out(run: Run, yaml: Path) -> None:
    operation = launch(run, yaml)
    assert run("operations").err == ""
    assert "control plane is not running" in run("operations", "--cancel", operation.pk).err
