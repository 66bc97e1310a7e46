"""The status of a service says what is true, in one sentence."""

import pytest

from replicas.core.planner import plan
from replicas.core.status import status
from replicas.core.values import Desired, OperationKind, ReplicaState, ServiceStatus
from replicas.core.views import ReplicaView, ServiceView
from tests.core.cast import NOW, ago, operation, ready, replica, web

S = ReplicaState
Status = ServiceStatus


def told(service: ServiceView, rows: list[ReplicaView]) -> tuple[ServiceStatus, str]:
    """The status with the plan that belongs to it."""
    return status(service, rows, plan(service, rows, NOW))


def failed(number: int, seconds_ago: float = 900, **fields) -> ReplicaView:
    fields.setdefault("reason", "run exited with code 7")
    return replica(number, fields.pop("state", S.FAILED), state_since=ago(seconds_ago), **fields)


class TestReady:
    def test_all(self) -> None:
        assert told(web(target=3), ready(1, 2, 3)) == (Status.READY, "3 of 3 ready")

    def test_some(self) -> None:
        rows = [*ready(1, 2), replica(4, S.STARTING)]
        assert told(web(target=3), rows) == (Status.READY, "2 of 3 ready; replica 4 is starting")

    def test_one_that_does_not_become_ready_says_what_its_probe_got_and_until_when_it_may(self) -> None:
        starting = replica(4, S.STARTING, launched_at=ago(60), probe_failure="connection refused")
        late = "connection refused (replica 4 has until 12:04:00 UTC to become ready)"
        service = web(target=3, initial_delay=300.0)
        assert told(service, [*ready(1, 2), starting])[1] == f"2 of 3 ready; replica 4 is starting: {late}"
        both = [*ready(1), starting, replica(5, S.STARTING, launched_at=ago(1))]
        assert told(service, both)[1] == f"1 of 3 ready; replicas 4 and 5 are starting: {late}"

    def test_others_are_told_by_what_they_do(self) -> None:
        rows = [*ready(1), *(replica(n, S.PENDING) for n in (2, 3)), replica(4, S.NOT_READY, reason="HTTP 503")]
        expected = "1 of 4 ready; replicas 2 and 3 are waiting for launch, replica 4 is not ready: HTTP 503"
        assert told(web(target=4), rows) == (Status.READY, expected)

    def test_many_are_counted(self) -> None:
        rows = [*ready(1), *(replica(n, S.PROVISIONING) for n in range(2, 9))]
        assert told(web(target=8), rows)[1] == "1 of 8 ready; 7 replicas are being launched"

    def test_one_that_failed_and_is_going_says_why(self) -> None:
        going = replica(3, S.SHUTTING_DOWN, reason="exit code 137", operation=operation(3, OperationKind.DOWN))
        expected = "2 of 3 ready; replica 3 must end before more are launched; replica 3 is going down: exit code 137"
        assert told(web(target=3), [*ready(1, 2), going]) == (Status.READY, expected)

    def test_a_backoff_is_told(self) -> None:
        rows = [*ready(1, 2), failed(3, 4, restarts=2)]
        expected = (
            "2 of 3 ready; replica 3 failed 3 times in a row: run exited with code 7; the next launch comes 20 s after"
            " it, at 12:00:16 UTC"
        )
        assert told(web(target=3), rows) == (Status.READY, expected)

    def test_more_than_wanted(self) -> None:
        assert told(web(target=2), ready(1, 2, 3)) == (Status.READY, "3 ready, 2 wanted")

    def test_an_update_is_told(self) -> None:
        rows = [*ready(1, 2, 3), replica(4, S.STARTING, version=2)]
        expected = (
            "3 of 3 ready; version 2 takes over: 0 of 3 ready, 3 older replicas kept until it is; replica 4 is starting"
        )
        assert told(web(target=3, version=2), rows) == (Status.READY, expected)

    def test_a_version_that_was_given_up_is_told_while_the_old_one_serves(self) -> None:
        rows = [*ready(1, 2, 3), *(failed(n, version=2) for n in range(4, 9))]
        state, reason = told(web(target=3, version=2), rows)
        assert state is Status.READY
        assert reason.startswith("3 of 3 ready; version 2 failed 5 times and was never ready; the last one was replica")
        assert "apply a corrected version" in reason


class TestNoneReady:
    def test_before_the_first_launch(self) -> None:
        assert told(web(target=3), []) == (Status.REPLICA_INIT, "0 of 3 ready; about to be launched")

    def test_on_the_way(self) -> None:
        rows = [replica(1, S.STARTING), replica(2, S.PROVISIONING)]
        expected = "0 of 2 ready; replica 2 is being launched, replica 1 is starting"
        assert told(web(target=2), rows) == (Status.REPLICA_INIT, expected)

    def test_on_the_way_again_after_a_failure_that_is_not_forgotten(self) -> None:
        rows = [failed(1), replica(2, S.STARTING, replaces=1, restarts=1)]
        expected = "0 of 1 ready; replica 2 is starting; replica 1 failed: run exited with code 7"
        assert told(web(target=1), rows) == (Status.REPLICA_INIT, expected)

    def test_it_was_ready_before(self) -> None:
        rows = [replica(1, S.NOT_READY, reason="HTTP 500")]
        assert told(web(target=1), rows) == (Status.NOT_READY, "0 of 1 ready; replica 1 is not ready: HTTP 500")

    def test_it_was_ready_before_and_a_replacement_is_on_its_way(self) -> None:
        rows = [failed(1, ready_at=ago(1000)), replica(2, S.STARTING, replaces=1, restarts=1)]
        assert told(web(target=1), rows)[0] is Status.NOT_READY

    def test_it_was_ready_so_long_ago_that_no_row_tells(self) -> None:
        assert told(web(target=1, proven=True), [replica(2, S.STARTING)])[0] is Status.NOT_READY

    def test_what_was_ready_before_the_user_began_anew_is_history(self) -> None:
        rows = [failed(1, ready_at=ago(1000)), replica(2, S.STARTING)]
        assert told(web(target=1, forgiven_at=ago(10)), rows) == (
            Status.REPLICA_INIT,
            "0 of 1 ready; replica 2 is starting",
        )


class TestFailed:
    def test_all_replicas_failed_is_failed_with_the_reason_and_not_no_replica(self) -> None:
        rows = [failed(n, 5, restarts=1) for n in (1, 2, 3)]
        state, reason = told(web(target=3), rows)
        assert state is Status.FAILED
        assert reason == (
            "0 of 3 ready, none is alive; replica 1 failed twice in a row: run exited with code 7;"
            " the next launch comes 10 s after it, at 12:00:05 UTC"
        )

    def test_without_a_plan_the_last_failure_is_told(self) -> None:
        rows = [failed(1, 50), failed(2, 5, reason="no such file")]
        assert status(web(target=2), rows, None) == (
            Status.FAILED,
            "0 of 2 ready, none is alive; replica 2 failed: no such file",
        )

    def test_given_up(self) -> None:
        rows = [failed(n) for n in range(1, 6)]
        state, reason = told(web(target=3), rows)
        assert state is Status.FAILED
        assert "Launches have stopped: apply a corrected version, or restart the service" in reason

    def test_given_up_while_some_are_still_on_their_way(self) -> None:
        rows = [*(failed(n) for n in range(1, 6)), replica(6, S.STARTING)]
        state, reason = told(web(target=3), rows)
        assert state is Status.FAILED
        assert reason.endswith("; replica 6 is starting")

    @pytest.mark.parametrize("state", [S.FAILED, S.FAILED_PROVISION, S.FAILED_INITIAL_DELAY, S.FAILED_PROBING])
    def test_every_kind_of_failure_counts(self, state: ReplicaState) -> None:
        assert told(web(target=1), [failed(1, 5, restarts=2, state=state)])[0] is Status.FAILED

    def test_a_new_version_begins_without_the_failures_of_the_old_one(self) -> None:
        assert told(web(target=1, version=2), [failed(1)])[0] is Status.REPLICA_INIT


class TestNoReplica:
    def test_none_is_wanted(self) -> None:
        assert told(web(target=0), [failed(1)]) == (Status.NO_REPLICA, "no replica is wanted")

    def test_none_is_wanted_and_one_is_going(self) -> None:
        rows = [replica(1, S.SHUTTING_DOWN, operation=operation(1, OperationKind.DOWN))]
        assert told(web(target=0), rows) == (Status.NO_REPLICA, "no replica is wanted; replica 1 is going down")


class TestDown:
    def test_while_any_is_live(self) -> None:
        rows = [replica(1, S.DRAINING), replica(2, S.SHUTTING_DOWN), replica(3, S.READY)]
        expected = "going down: replica 3 is still ready, replica 1 is draining, replica 2 is going down"
        assert told(web(desired=Desired.DOWN), rows) == (Status.SHUTTING_DOWN, expected)

    def test_when_all_are_gone(self) -> None:
        rows = [replica(1, S.TERMINATED), failed(2)]
        assert told(web(desired=Desired.DOWN), rows) == (Status.DOWN, "down: nothing of it runs")

    def test_when_something_may_be_left(self) -> None:
        rows = [replica(1, S.TERMINATED), failed(2, state=S.FAILED_CLEANUP, reason="pid 77 refuses to die.")]
        expected = (
            "down, but replica 2 could not be cleaned up: pid 77 refuses to die; look at what is left, then purge it"
        )
        assert told(web(desired=Desired.DOWN), rows) == (Status.FAILED_CLEANUP, expected)


def test_leftovers_are_told_while_the_service_is_up() -> None:
    rows = [*ready(1), failed(2, state=S.FAILED_CLEANUP, outcome=S.TERMINATED, reason="disk full")]
    expected = "1 of 1 ready; replica 2 could not be cleaned up: disk full; look at what is left, then purge it"
    assert told(web(target=1), rows) == (Status.READY, expected)


def test_a_reason_of_many_lines_stays_one_sentence() -> None:
    rows = [failed(1, 5, restarts=1, reason="Traceback:\n  File x\n" + "y" * 1000)]
    reason = told(web(target=1), rows)[1]
    assert "\n" not in reason
    assert len(reason) < 500
