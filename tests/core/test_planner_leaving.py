"""How a replica leaves: drained where it serves, its launch cancelled where one is in flight, then brought down."""

import pytest

from replicas.core.planner import BeginDown, Cancel, Drain, Drained, Retire, plan
from replicas.core.values import OperationKind, OperationStatus, ReplicaState
from replicas.core.views import ReplicaView
from tests.core.cast import NOW, ago, doing, later, operation, replica, web

S = ReplicaState


def leaving(row: ReplicaView, **fields):
    """The plan for a service that wants none, with that one replica."""
    return plan(web(target=0, **fields), [row], NOW)


class TestDraining:
    def test_work_in_flight_is_waited_for(self) -> None:
        decided = leaving(replica(1, S.DRAINING, in_flight=2, state_since=ago(10)), drain_seconds=30.0)
        assert decided.actions == ()
        assert decided.wake_at == later(20)
        assert decided.notes == ("replica 1 drains its work in flight, until 12:00:20 UTC at the latest",)

    def test_it_ends_when_nothing_is_in_flight(self) -> None:
        decided = leaving(replica(1, S.DRAINING, in_flight=0, state_since=ago(1)))
        assert decided.actions == (Drained(1, "nothing is in flight any more"),)

    def test_it_ends_at_once_when_nothing_measures_the_work(self) -> None:
        decided = leaving(replica(1, S.DRAINING, in_flight=None, state_since=NOW))
        assert decided.actions == (Drained(1, "asked to end; what it is doing may go on within its grace"),)

    @pytest.mark.parametrize("seconds", [30, 31, 3600])
    def test_it_ends_when_its_time_is_over(self, seconds: float) -> None:
        decided = leaving(replica(1, S.DRAINING, in_flight=2, state_since=ago(seconds)), drain_seconds=30.0)
        assert decided.actions == (Drained(1, "30 s of draining are over with 2 in flight"),)

    def test_it_does_not_hang_when_the_clock_was_set_back(self) -> None:
        assert doing(leaving(replica(1, S.DRAINING, in_flight=2, state_since=later(3600)))) == [("Drained", 1)]

    def test_clocks_of_two_hosts_may_differ_a_little(self) -> None:
        assert leaving(replica(1, S.DRAINING, in_flight=2, state_since=later(2))).wake_at == later(32)

    def test_drain_seconds_of_0_drains_nothing(self) -> None:
        assert doing(leaving(replica(1, S.DRAINING, in_flight=2, state_since=NOW), drain_seconds=0.0)) == [
            ("Drained", 1)
        ]


class TestNotReady:
    def test_it_is_retired_when_it_serves_nothing(self) -> None:
        assert leaving(replica(1, S.NOT_READY)).actions == (Retire(1, "0 wanted, 1 there"),)
        assert leaving(replica(1, S.NOT_READY, in_flight=0)).actions == (Retire(1, "0 wanted, 1 there"),)

    def test_it_is_drained_when_work_is_still_in_flight(self) -> None:
        assert leaving(replica(1, S.NOT_READY, in_flight=1)).actions == (Drain(1, "0 wanted, 1 there"),)


class TestShuttingDown:
    def test_a_down_is_begun_with_the_reason_of_the_end(self) -> None:
        row = replica(1, S.SHUTTING_DOWN, outcome=S.FAILED, reason="run exited with code 7.")
        assert leaving(row).actions == (BeginDown(1, "run exited with code 7"),)

    def test_a_down_is_begun_also_without_a_reason(self) -> None:
        assert leaving(replica(1, S.SHUTTING_DOWN)).actions == (BeginDown(1, "it is on its way out"),)

    @pytest.mark.parametrize("status", [OperationStatus.QUEUED, OperationStatus.RUNNING, OperationStatus.WAITING])
    def test_a_down_that_works_is_waited_for(self, status: OperationStatus) -> None:
        row = replica(1, S.SHUTTING_DOWN, operation=operation(1, OperationKind.DOWN, status=status))
        assert leaving(row).actions == ()

    def test_a_launch_that_still_works_is_cancelled(self) -> None:
        row = replica(1, S.SHUTTING_DOWN, operation=operation(1), reason="preempted")
        assert leaving(row).actions == (Cancel(1, "preempted"),)

    def test_a_cancelled_launch_cleans_up_by_itself(self) -> None:
        row = replica(1, S.SHUTTING_DOWN, operation=operation(1, cancelling=True))
        assert leaving(row).actions == ()


@pytest.mark.parametrize("state", [S.STARTING, S.READY, S.NOT_READY])
def test_a_replica_that_a_down_works_on_is_left_alone(state: ReplicaState) -> None:
    row = replica(1, state, operation=operation(1, OperationKind.DOWN))
    assert leaving(row).actions == ()
    assert plan(web(target=1), [row], NOW).actions == ()
