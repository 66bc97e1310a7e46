"""The planner keeps as many replicas as are wanted: too few, enough, too many, none, and one that must go."""

import pytest

from replicas.core.planner import Cancel, Create, Drain, Plan, Retire, Withdraw, plan
from replicas.core.values import Desired, OperationKind, OperationStatus, ReplicaState
from tests.core.cast import NOW, ago, doing, operation, ready, replica, web
from tests.support.patience import spent

S = ReplicaState


def test_a_new_service_gets_its_replicas_at_once() -> None:
    decided = plan(web(target=3), [], NOW)
    assert decided.actions == (Create(1, None, 0, "3 wanted, 0 there"),) * 3
    assert decided.wake_at is None
    assert decided.notes == ()


def test_nothing_is_planned_when_the_target_is_there() -> None:
    assert plan(web(target=3), ready(1, 2, 3), NOW) == Plan()


def test_restart_of_the_controller_at_version_3_with_3_of_3_ready_changes_nothing() -> None:
    history = [replica(n, S.TERMINATED, version=n - 3) for n in (4, 5)]
    assert plan(web(target=3, version=3), history + ready(7, 8, 9, version=3), NOW) == Plan()


@pytest.mark.parametrize("state", [S.PENDING, S.PROVISIONING, S.STARTING, S.NOT_READY])
def test_second_tick_while_replicas_are_on_their_way_adds_none(state: ReplicaState) -> None:
    assert plan(web(target=3), [replica(1), replica(2, state), replica(3, state)], NOW) == Plan()


def test_a_place_is_held_until_the_down_has_ended() -> None:
    going = replica(3, S.SHUTTING_DOWN, outcome=S.FAILED, operation=operation(3, OperationKind.DOWN))
    decided = plan(web(target=3), [*ready(1, 2), going], NOW)
    assert decided.actions == ()
    assert decided.notes == ("replica 3 must end before more are launched",)


def test_scale_up_fills_the_difference() -> None:
    assert doing(plan(web(target=5), ready(1, 2, 3), NOW)) == [("Create", 1)] * 2


def test_scale_up_while_one_is_going_fills_only_free_places() -> None:
    draining = replica(3, S.DRAINING, in_flight=4, state_since=NOW)
    decided = plan(web(target=4), [*ready(1, 2), draining], NOW)
    assert doing(decided) == [("Create", 1)]


def test_scale_down_with_2_ready_and_2_starting_gives_up_those_that_start() -> None:
    rows = [*ready(1, 2), replica(3, S.STARTING), replica(4, S.STARTING)]
    assert doing(plan(web(target=2), rows, NOW)) == [("Retire", 4), ("Retire", 3)]


def test_scale_down_goes_by_state_first() -> None:
    rows = [
        replica(1, S.PENDING),
        replica(2, S.PROVISIONING),
        replica(3, S.STARTING),
        replica(4, S.NOT_READY),
        replica(5, S.READY),
    ]
    gone = [plan(web(target=5 - count), rows, NOW).actions[-1].replica_id for count in range(1, 6)]
    assert gone == [1, 2, 3, 4, 5]


def test_scale_down_goes_by_version_then_by_the_newest_number() -> None:
    rows = [*ready(1, 2, version=2), *ready(3, 4, version=1)]
    service = web(target=1, version=2, compatible=frozenset({1}))
    assert [goal for what, goal in doing(plan(service, rows, NOW)) if what == "Drain"] == [4, 3, 2]


def test_scale_to_zero_takes_all() -> None:
    rows = [replica(1, S.PENDING), replica(2, S.PROVISIONING), replica(3, S.STARTING), replica(4, S.READY)]
    decided = plan(web(target=0), rows, NOW)
    reason = "0 wanted, 4 there"
    assert decided.actions == (Withdraw(1, reason), Cancel(2, reason), Retire(3, reason), Drain(4, reason))


def test_a_replica_that_is_leaving_does_not_count_as_one_to_scale_down() -> None:
    rows = [*ready(1, 2), replica(3, S.DRAINING, in_flight=1, state_since=NOW)]
    assert doing(plan(web(target=2), rows, NOW)) == []


def test_a_launch_that_a_user_cancelled_is_the_one_that_goes() -> None:
    cancelled = replica(2, S.PROVISIONING, operation=operation(2, cancelling=True))
    rows = [replica(1), cancelled, replica(3, S.PROVISIONING)]
    assert plan(web(target=2), rows, NOW).actions == (Cancel(2, "its launch was cancelled"),)


def test_a_cancelled_launch_that_nobody_had_begun_is_withdrawn() -> None:
    cancelled = replica(2, S.PENDING, operation=operation(2, cancelling=True))
    assert plan(web(target=2), [replica(1), cancelled], NOW).actions == (Withdraw(2, "its launch was cancelled"),)


@pytest.mark.parametrize(("state", "what"), [(S.PENDING, "Withdraw"), (S.PROVISIONING, "Cancel")])
def test_a_launch_whose_operation_is_gone_does_not_hang(state: ReplicaState, what: str) -> None:
    assert doing(plan(web(target=1), [replica(1, state, operation=None)], NOW)) == [(what, 1)]


class TestTerminateOne:
    def test_it_is_drained_and_not_replaced_before_it_ended(self) -> None:
        asked = replica(2, retire_reason="terminated by anna")
        assert plan(web(target=3), [*ready(1, 3), asked], NOW).actions == (Drain(2, "terminated by anna"),)

    def test_it_is_replaced_at_once_when_it_has_ended(self) -> None:
        gone = replica(2, S.TERMINATED, retire_reason="terminated by anna", restarts=4)
        decided = plan(web(target=3), [*ready(1, 3), gone], NOW)
        assert decided.actions == (Create(1, 2, 0, "replaces replica 2, which was taken away: terminated by anna"),)

    def test_a_reason_that_nobody_gave_does_not_keep_it(self) -> None:
        assert plan(web(target=1), [replica(1, retire_reason="")], NOW).actions == (Drain(1, "it was asked to go"),)

    def test_only_that_one_goes_when_the_target_falls_at_the_same_time(self) -> None:
        asked = replica(1, retire_reason="terminated by anna")
        assert doing(plan(web(target=2), [asked, *ready(2, 3)], NOW)) == [("Drain", 1)]


class TestDown:
    def test_all_are_taken_away_and_none_is_made(self) -> None:
        rows = [
            replica(1, S.PENDING),
            replica(2, S.PROVISIONING),
            replica(3, S.STARTING),
            replica(4, S.NOT_READY),
            replica(5, S.READY),
            replica(6, S.FAILED),
        ]
        decided = plan(web(target=9, desired=Desired.DOWN), rows, NOW)
        why = "the service is being taken down"
        assert decided.actions == (Withdraw(1, why), Cancel(2, why), Retire(3, why), Retire(4, why), Drain(5, why))

    def test_other_versions_go_too_and_nothing_is_adopted(self) -> None:
        service = web(version=3, desired=Desired.DOWN, compatible=frozenset({2}))
        rows = [*ready(1, version=1), *ready(2, version=2), *ready(3, version=3)]
        assert doing(plan(service, rows, NOW)) == [("Drain", 1), ("Drain", 2), ("Drain", 3)]

    def test_nothing_is_left_to_do_when_all_are_gone(self) -> None:
        rows = [replica(1, S.TERMINATED), replica(2, S.FAILED), replica(3, S.FAILED_CLEANUP, outcome=S.FAILED)]
        assert plan(web(desired=Desired.DOWN), rows, NOW) == Plan()

    def test_who_is_on_the_way_out_goes_on(self) -> None:
        rows = [replica(1, S.SHUTTING_DOWN, reason="exit code 7"), replica(2, S.DRAINING)]
        assert doing(plan(web(desired=Desired.DOWN), rows, NOW)) == [("BeginDown", 1), ("Drained", 2)]


def test_planning_again_after_applying_gives_nothing_twice() -> None:
    rows = [
        replica(n, S.PENDING, operation=operation(n, status=OperationStatus.QUEUED), created_at=NOW) for n in (1, 2, 3)
    ]
    assert plan(web(target=3), rows, NOW) == Plan()


@pytest.mark.parametrize("target", [0, 300, 1000, 1700])
def test_a_thousand_replicas_are_planned_in_no_time(target: int) -> None:
    rows = [replica(n, S.READY, version=1 + n % 2) for n in range(1, 1001)]
    rows += [replica(n, S.FAILED, version=2, state_since=ago(5), restarts=n % 7) for n in range(1001, 2001)]
    service = web(target=target, version=2)
    assert plan(service, rows, NOW).actions
    assert spent(lambda: plan(service, rows, NOW), 0.1) < 0.1
