"""A failed replica is replaced: the first time at once, then after a growing wait, and not for ever."""

from dataclasses import replace

import pytest

from replicas.core.planner import Create, plan
from replicas.core.values import ReplicaState
from replicas.core.views import ReplicaView, RestartPolicy
from tests.core.cast import NOW, ago, doing, later, ready, replica, web

S = ReplicaState
FAILURES = [S.FAILED, S.FAILED_PROVISION, S.FAILED_INITIAL_DELAY, S.FAILED_PROBING]


def crashed(number: int, seconds_ago: float = 0.0, restarts: int = 0, **fields) -> ReplicaView:
    """A replica that served a while and then failed."""
    fields.setdefault("ready_at", ago(seconds_ago + 60))
    fields.setdefault("reason", "run exited with code 7")
    return replica(number, fields.pop("state", S.FAILED), state_since=ago(seconds_ago), restarts=restarts, **fields)


def hopeless(number: int, seconds_ago: float = 0.0, **fields) -> ReplicaView:
    """A replica that was never ready and failed."""
    return crashed(number, seconds_ago, ready_at=None, **fields)


@pytest.mark.parametrize("state", FAILURES)
def test_the_first_replacement_comes_at_once(state: ReplicaState) -> None:
    decided = plan(web(target=3), [*ready(1, 2), crashed(3, state=state)], NOW)
    assert decided.actions == (Create(1, 3, 1, "replaces replica 3, which failed: run exited with code 7"),)


@pytest.mark.parametrize(("restarts", "wait"), [(1, 10), (2, 20), (3, 40), (4, 80), (5, 160), (6, 300), (60, 300)])
def test_the_next_ones_wait_twice_as_long_each_time(restarts: int, wait: float) -> None:
    row = crashed(3, wait - 0.001, restarts)
    held = plan(web(target=3), [*ready(1, 2), row], NOW)
    assert held.actions == ()
    assert held.wake_at == later(0.001)
    due = plan(web(target=3), [*ready(1, 2), row], later(0.001))
    assert [(action.replaces, action.restarts) for action in due.actions] == [(3, restarts + 1)]


def test_what_waits_says_so() -> None:
    decided = plan(web(target=3), [*ready(1, 2), crashed(3, 4, restarts=2)], NOW)
    assert decided.notes == (
        "replica 3 failed 3 times in a row: run exited with code 7; the next launch comes 20 s after it,"
        " at 12:00:16 UTC",
    )


def test_the_sentence_stays_the_same_while_it_waits() -> None:
    rows = [*ready(1, 2), crashed(3, 4, restarts=2)]
    assert plan(web(target=3), rows, NOW).notes == plan(web(target=3), rows, later(9)).notes


def test_many_that_wait_are_summed_up() -> None:
    rows = [crashed(n, 4, restarts=2) for n in range(1, 21)]
    assert plan(web(target=20), rows, NOW).notes[3:] == ("17 more wait after failures",)


def test_the_replacement_is_not_made_twice() -> None:
    rows = [*ready(1, 2), crashed(3), replica(4, S.PENDING, replaces=3, restarts=1)]
    assert plan(web(target=3), rows, NOW).actions == ()


def test_a_line_goes_on_from_its_last_replica() -> None:
    rows = [*ready(1, 2), crashed(3, 100), crashed(4, 0, restarts=1, replaces=3)]
    decided = plan(web(target=3), rows, later(10))
    assert [(action.replaces, action.restarts) for action in decided.actions] == [(4, 2)]


class TestReset:
    def test_who_was_ready_long_enough_begins_a_new_row(self) -> None:
        decided = plan(web(target=1), [crashed(1, 0, restarts=6, ready_at=ago(600))], NOW)
        assert [(action.replaces, action.restarts) for action in decided.actions] == [(1, 1)]

    def test_who_was_not_goes_on_in_the_old_row(self) -> None:
        assert plan(web(target=1), [crashed(1, 0, restarts=6, ready_at=ago(599))], NOW).wake_at == later(300)


def test_a_preempted_one_is_replaced_at_once_and_counts_no_failure() -> None:
    gone = replica(3, S.PREEMPTED, restarts=5, state_since=NOW)
    decided = plan(web(target=3), [*ready(1, 2), gone], NOW)
    assert decided.actions == (Create(1, 3, 0, "replaces replica 3, which was preempted"),)


class TestFailedCleanup:
    def test_it_frees_the_place(self) -> None:
        gone = replica(3, S.FAILED_CLEANUP, outcome=S.TERMINATED)
        assert doing(plan(web(target=3), [*ready(1, 2), gone], NOW)) == [("Create", 1)]

    def test_a_failure_whose_cleanup_failed_still_counts(self) -> None:
        gone = crashed(3, 1, restarts=3, state=S.FAILED_CLEANUP, outcome=S.FAILED)
        assert plan(web(target=3), [*ready(1, 2), gone], NOW).wake_at == later(39)


class TestScaling:
    def test_scale_up_by_3_while_1_failed_launches_the_difference_at_once(self) -> None:
        decided = plan(web(target=6), [*ready(1, 2), crashed(3, 1, restarts=2)], NOW)
        assert doing(decided) == [("Create", 1)] * 3
        assert all(action.replaces is None for action in decided.actions)
        assert decided.wake_at == later(19)

    def test_scale_down_below_the_failures_forgets_to_wait_for_them(self) -> None:
        decided = plan(web(target=2), [*ready(1, 2), crashed(3, 1, restarts=2)], NOW)
        assert decided == plan(web(target=2), ready(1, 2), NOW)

    def test_scale_down_and_up_again_holds_launches_for_their_backoff_at_most(self) -> None:
        rows = [*ready(1), crashed(2, 1, restarts=2), crashed(3, 1, restarts=2)]
        assert plan(web(target=3), rows, NOW).wake_at == later(19)
        assert [action.replaces for action in plan(web(target=3), rows, later(19)).actions] == [2, 3]

    def test_a_place_that_stayed_empty_for_long_begins_a_new_line(self) -> None:
        rows = [*ready(1), crashed(2, 20 + 601, restarts=2)]
        assert plan(web(target=2), rows, NOW).actions == (Create(1, None, 0, "2 wanted, 1 there"),)

    def test_more_failures_than_places_fill_only_the_places(self) -> None:
        rows = [crashed(1, 30, restarts=1), crashed(2, 40, restarts=1), crashed(3, 40, restarts=1)]
        assert [action.replaces for action in plan(web(target=2), rows, NOW).actions] == [1, 2]

    def test_who_may_be_replaced_first_comes_first(self) -> None:
        rows = [crashed(1, 1, restarts=6), crashed(2, 1, restarts=1), crashed(3, 30, restarts=2)]
        assert [action.replaces for action in plan(web(target=1), rows, NOW).actions] == [3]
        assert plan(web(target=2), rows, NOW).wake_at == later(9)


class TestGivingUp:
    def test_launches_stop_after_five_failures_that_were_never_ready(self) -> None:
        rows = [hopeless(n, 1000 - n, reason=f"setup exited with code {n}") for n in range(1, 6)]
        decided = plan(web(target=3, version=1), rows, NOW)
        assert decided.actions == ()
        assert decided.wake_at is None
        assert decided.halted == (
            "version 1 failed 5 times and was never ready; the last one was replica 5: setup exited with code 5."
            " Launches have stopped: apply a corrected version, or restart the service"
        )

    def test_four_are_not_enough(self) -> None:
        assert plan(web(target=1), [hopeless(n, 1000 - n) for n in range(1, 5)], NOW).halted is None

    def test_failures_of_other_versions_do_not_count(self) -> None:
        rows = [hopeless(n, 1000, version=1) for n in range(1, 6)]
        assert doing(plan(web(target=1, version=2), rows, NOW)) == [("Create", 2)]

    def test_forgiven_failures_do_not_count_and_hold_nothing(self) -> None:
        rows = [hopeless(n, 1, restarts=n) for n in range(1, 6)]
        decided = plan(web(target=3, forgiven_at=NOW), rows, NOW)
        assert decided.actions == (Create(1, None, 0, "3 wanted, 0 there"),) * 3

    def test_preemptions_and_wishes_do_not_count(self) -> None:
        rows = [replica(n, S.PREEMPTED) for n in range(1, 6)] + [replica(n, S.TERMINATED) for n in range(6, 11)]
        assert plan(web(target=1), rows, NOW).halted is None

    @pytest.mark.parametrize("state", [S.READY, S.NOT_READY, S.DRAINING])
    def test_a_version_that_has_a_replica_that_was_ready_goes_on(self, state: ReplicaState) -> None:
        rows = [hopeless(n, 1000 - n) for n in range(1, 9)] + [replica(9, state)]
        assert plan(web(target=3), rows, NOW).halted is None

    def test_a_version_that_was_ready_once_goes_on(self) -> None:
        rows = [hopeless(n, 1000 - n) for n in range(2, 9)] + [crashed(1, 4000)]
        assert plan(web(target=1), rows, NOW).halted is None

    def test_a_version_that_was_ready_long_ago_goes_on(self) -> None:
        rows = [hopeless(n, 1000 - n) for n in range(2, 9)]
        assert plan(web(target=1, proven=True), rows, NOW).halted is None

    def test_having_been_ready_before_it_was_forgiven_proves_nothing(self) -> None:
        rows = [hopeless(n, 100 - n) for n in range(2, 7)] + [crashed(1, 4000)]
        assert plan(web(target=1, forgiven_at=ago(200)), rows, NOW).halted is not None

    def test_an_adopted_replica_that_serves_proves_the_version(self) -> None:
        rows = [hopeless(n, 100 - n, version=2) for n in range(2, 7)] + ready(1, version=1)
        service = web(target=2, version=2, compatible=frozenset({1}), forgiven_at=ago(200))
        assert plan(service, rows, NOW).halted is None

    def test_an_adopted_replica_that_served_and_then_failed_still_proves_the_version(self) -> None:
        rows = [hopeless(n, 100 - n) for n in range(2, 7)] + [crashed(1, 50, ready_at=ago(4000))]
        assert plan(web(target=1, forgiven_at=ago(200)), rows, NOW).halted is None

    def test_those_that_live_go_on(self) -> None:
        rows = [hopeless(n, 10) for n in range(1, 6)] + [replica(6, S.STARTING), replica(7, S.PENDING)]
        decided = plan(web(target=5), rows, NOW)
        assert decided.halted
        assert decided.actions == ()

    def test_scaling_up_does_not_get_around_it(self) -> None:
        rows = [hopeless(n, 10) for n in range(1, 6)]
        assert plan(web(target=50), rows, NOW).actions == ()

    def test_the_policy_says_how_many(self) -> None:
        service = web(target=1, restart=RestartPolicy(max_never_ready=1))
        assert plan(service, [hopeless(1)], NOW).halted
        assert plan(replace(service, restart=RestartPolicy(max_never_ready=2)), [hopeless(1)], NOW).halted is None


class TestClock:
    def test_an_end_in_the_future_holds_nothing(self) -> None:
        row = crashed(1, -3600, restarts=6, ready_at=None)
        assert doing(plan(web(target=1), [row], NOW)) == [("Create", 1)]

    def test_clocks_of_two_hosts_may_differ_a_little(self) -> None:
        assert plan(web(target=1), [crashed(1, -2, restarts=1)], NOW).wake_at == later(12)

    def test_forgiveness_from_the_future_does_not_forgive_what_comes_before_it(self) -> None:
        service = web(target=1, forgiven_at=later(3600))
        assert plan(service, [crashed(1, 1, restarts=3)], NOW).wake_at == later(39)
