"""An update: adoption where the process stays the same, else new replicas first and old ones away as the new serve."""

import pytest

from replicas.core.planner import Adopt, Create, Drain, plan
from replicas.core.values import ReplicaState
from replicas.core.views import RestartPolicy, Surge
from tests.core.cast import NOW, ago, doing, operation, ready, replica, web

S = ReplicaState


def updated(target: int = 3, max_surge: int = 1, max_unavailable: int = 0, **fields):
    """The service at version 2."""
    return web(target=target, version=2, surge=Surge(max_surge, max_unavailable), **fields)


class TestAdoption:
    @pytest.mark.parametrize("state", [S.PENDING, S.PROVISIONING, S.STARTING, S.READY, S.NOT_READY])
    def test_a_replica_of_a_compatible_version_goes_on(self, state: ReplicaState) -> None:
        service = updated(target=1, compatible=frozenset({1}))
        decided = plan(service, [replica(1, state)], NOW)
        assert decided.actions == (Adopt(1, 2, "version 2 asks for the same process: it goes on as it is"),)

    def test_a_corrected_probe_applies_to_replicas_that_are_starting(self) -> None:
        rows = [replica(n, S.STARTING) for n in (1, 2, 3)]
        decided = plan(updated(compatible=frozenset({1})), rows, NOW)
        assert doing(decided) == [("Adopt", 3), ("Adopt", 2), ("Adopt", 1)]

    @pytest.mark.parametrize("state", [S.DRAINING, S.SHUTTING_DOWN])
    def test_who_is_on_the_way_out_is_not_adopted(self, state: ReplicaState) -> None:
        row = replica(1, state, in_flight=1, state_since=NOW, operation=operation(1, cancelling=True))
        decided = plan(updated(target=1, compatible=frozenset({1})), [row], NOW)
        assert ("Adopt", 1) not in doing(decided)

    def test_who_must_go_is_not_adopted(self) -> None:
        row = replica(1, retire_reason="terminated by anna")
        assert doing(plan(updated(target=1, compatible=frozenset({1})), [row], NOW)) == [("Drain", 1)]

    def test_adopted_ones_count_at_once(self) -> None:
        decided = plan(updated(target=3, compatible=frozenset({1})), ready(1, 2), NOW)
        assert doing(decided) == [("Adopt", 2), ("Adopt", 1), ("Create", 2)]

    def test_too_many_are_not_adopted_first(self) -> None:
        decided = plan(updated(target=1, compatible=frozenset({1})), ready(1, 2), NOW)
        assert doing(decided) == [("Drain", 2), ("Adopt", 1)]


class TestRolling:
    def test_new_ones_are_made_up_to_the_surge_and_no_old_one_goes(self) -> None:
        decided = plan(updated(max_surge=2), ready(1, 2, 3), NOW)
        assert decided.actions == (Create(2, None, 0, "version 2 takes over"),) * 2
        assert decided.notes == ("version 2 takes over: 0 of 3 ready, 3 older replicas kept until it is",)

    def test_an_old_one_goes_when_a_new_one_is_ready(self) -> None:
        decided = plan(updated(), [*ready(1, 2, 3), *ready(4, version=2)], NOW)
        assert decided.actions == (Drain(3, "version 2 takes over"),)

    @pytest.mark.parametrize("state", [S.PENDING, S.PROVISIONING, S.STARTING, S.NOT_READY])
    def test_no_old_one_goes_while_the_new_one_is_not_ready(self, state: ReplicaState) -> None:
        rows = [*ready(1, 2, 3), replica(4, state, version=2)]
        assert plan(updated(), rows, NOW).actions == ()

    def test_second_tick_while_new_ones_are_pending_exceeds_no_surge(self) -> None:
        rows = [*ready(1, 2, 3), replica(4, S.PENDING, version=2), replica(5, S.PENDING, version=2)]
        assert plan(updated(max_surge=2), rows, NOW).actions == ()

    def test_an_old_one_that_drains_holds_its_place(self) -> None:
        rows = [*ready(1, 2), replica(3, S.DRAINING, in_flight=1, state_since=NOW), *ready(4, version=2)]
        assert doing(plan(updated(), rows, NOW)) == []

    def test_the_last_old_one_goes_and_then_nothing_is_planned(self) -> None:
        new = ready(4, 5, 6, version=2)
        assert doing(plan(updated(), [*ready(1), *new], NOW)) == [("Drain", 1)]
        assert plan(updated(), new, NOW).actions == ()

    def test_with_max_unavailable_old_ones_make_room(self) -> None:
        decided = plan(updated(max_surge=0, max_unavailable=1), ready(1, 2, 3), NOW)
        assert doing(decided) == [("Drain", 3)]
        assert decided.notes[-1] == "version 2 takes over: 0 of 3 ready, 2 older replicas kept until it is"

    def test_with_max_unavailable_of_all_they_all_make_room(self) -> None:
        assert len(plan(updated(max_surge=0, max_unavailable=3), ready(1, 2, 3), NOW).actions) == 3

    def test_of_bounds_of_0_and_0_one_may_be_missing(self) -> None:
        assert doing(plan(updated(max_surge=0), ready(1, 2, 3), NOW)) == [("Drain", 3)]

    def test_two_deploys_leave_no_old_replica_over(self) -> None:
        rows = [*ready(1, version=1), *ready(2, version=2), *ready(3, 4, 5, version=3)]
        decided = plan(web(target=3, version=3), rows, NOW)
        assert doing(decided) == [("Drain", 1), ("Drain", 2)]

    def test_a_second_deploy_takes_the_unready_of_the_first_and_keeps_what_serves(self) -> None:
        rows = [*ready(1, 2, 3), replica(4, S.STARTING, version=2), replica(5, S.PENDING, version=2)]
        decided = plan(web(target=3, version=3, surge=Surge(2, 0)), rows, NOW)
        assert doing(decided) == [("Withdraw", 5), ("Retire", 4)]

    def test_of_two_old_versions_the_oldest_goes_first(self) -> None:
        rows = [*ready(1, 2, version=1), *ready(3, version=2), *ready(4, version=3)]
        assert doing(plan(web(target=3, version=3), rows, NOW)) == [("Drain", 2)]

    def test_scaled_up_in_the_middle_it_stays_within_the_surge(self) -> None:
        rows = [*ready(1, 2, 3), replica(4, S.STARTING, version=2)]
        assert doing(plan(updated(target=5), rows, NOW)) == [("Create", 2)] * 2

    def test_scaled_down_in_the_middle_it_gives_up_new_ones_that_do_not_serve(self) -> None:
        rows = [*ready(1, 2, 3, 4, 5), replica(6, S.STARTING, version=2), replica(7, S.STARTING, version=2)]
        decided = plan(updated(target=2, max_surge=1), rows, NOW)
        assert doing(decided) == [("Drain", 5), ("Drain", 4), ("Drain", 3), ("Retire", 7)]

    def test_scaled_to_zero_in_the_middle_all_go(self) -> None:
        rows = [*ready(1, 2), *ready(3, version=2)]
        assert doing(plan(updated(target=0), rows, NOW)) == [("Drain", 2), ("Drain", 1), ("Drain", 3)]

    def test_an_old_failed_one_is_not_replaced_by_its_own_version(self) -> None:
        rows = [*ready(1, 2), replica(3, S.FAILED)]
        assert doing(plan(updated(), rows, NOW)) == [("Create", 2)] * 2


class TestOldOnesThatDoNotServe:
    def test_those_that_never_did_go_at_once(self) -> None:
        rows = [replica(1, S.PENDING), replica(2, S.PROVISIONING), replica(3, S.STARTING)]
        assert doing(plan(updated(), rows, NOW)) == [("Withdraw", 1), ("Cancel", 2), ("Retire", 3), ("Create", 2)]

    def test_one_that_did_goes_before_one_that_does(self) -> None:
        rows = [replica(1, S.NOT_READY), *ready(2, 3), *ready(4, version=2)]
        assert doing(plan(updated(), rows, NOW)) == [("Retire", 1)]

    def test_one_that_did_is_kept_as_long_as_nothing_took_its_place(self) -> None:
        rows = [replica(n, S.NOT_READY) for n in (1, 2, 3)]
        assert doing(plan(updated(), rows, NOW)) == [("Create", 2)]

    def test_those_that_did_give_way_where_the_bounds_allow_it(self) -> None:
        rows = [replica(n, S.NOT_READY) for n in (1, 2, 3)]
        assert doing(plan(updated(max_surge=0, max_unavailable=1), rows, NOW)) == [("Retire", 3)]


class TestABadVersion:
    def failures(self, count: int) -> list:
        return [
            replica(n, S.FAILED, version=2, state_since=ago(900), reason="no such file") for n in range(10, 10 + count)
        ]

    def test_the_old_ones_are_kept_when_it_was_given_up(self) -> None:
        decided = plan(updated(max_surge=1), [*ready(1, 2, 3), *self.failures(5)], NOW)
        assert decided.actions == ()
        assert decided.halted is not None
        assert decided.notes == ("3 older replicas kept, because version 2 was given up",)

    def test_none_makes_room_for_it_any_more(self) -> None:
        decided = plan(updated(max_surge=0, max_unavailable=2), [*ready(1, 2, 3), *self.failures(5)], NOW)
        assert decided.actions == ()

    def test_the_target_still_counts_for_the_old_ones(self) -> None:
        decided = plan(updated(target=2), [*ready(1, 2, 3), *self.failures(5)], NOW)
        assert doing(decided) == [("Drain", 3)]

    def test_its_failures_hold_the_surge_for_their_backoff(self) -> None:
        row = replica(4, S.FAILED, version=2, state_since=ago(1), restarts=2)
        decided = plan(updated(max_surge=1), [*ready(1, 2, 3), row], NOW)
        assert decided.actions == ()
        assert decided.wake_at is not None

    def test_an_update_to_a_version_that_works_brings_it_to_an_end(self) -> None:
        service = web(target=3, version=3, restart=RestartPolicy(max_never_ready=5))
        assert doing(plan(service, [*ready(1, 2, 3), *self.failures(5)], NOW)) == [("Create", 3)]


def test_the_surge_lasts_until_the_last_old_one_has_ended() -> None:
    last = replica(3, S.DRAINING, in_flight=1, state_since=NOW)
    rows = [last, *ready(4, 5, version=2)]
    assert doing(plan(updated(max_surge=1), rows, NOW)) == [("Create", 2)]
    assert doing(plan(web(target=3), [*ready(1, 2), last], NOW)) == []
