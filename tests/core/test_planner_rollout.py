"""What a rollout lets happen: proof, bringing back, canary, pause, blue-green, and its good and bad ends."""

from dataclasses import replace
from typing import Any

from replicas.core.planner import Create, Fail, Plan, Progress, Promote, Rollback, Succeed, Switch, plan
from replicas.core.status import status
from replicas.core.values import ReplicaState, RolloutKind, RolloutMode, RolloutState, ServiceStatus
from replicas.core.views import ReplicaView, RolloutPolicy, RolloutView, ServiceView, Surge
from tests.core.cast import NOW, ago, doing, later, ready, replica, web

S = ReplicaState
NEW = 2


def moving(target: int = 3, policy: dict[str, Any] | None = None, fits: bool = False, **fields: Any) -> ServiceView:
    """The service on its way from version 1, which has proved itself, to version 2."""
    fields = {"good_version": 1, "best": 0, "progressed_at": ago(100), **fields}
    surge = fields.pop("surge", Surge(1, 0))
    compatible = fields.pop("compatible", frozenset())
    rollout = RolloutView(
        id=7,
        revision=4,
        kind=fields.pop("kind", RolloutKind.UPDATE),
        mode=fields.pop("mode", RolloutMode.ROLLING),
        state=fields.pop("state", RolloutState.PROGRESSING),
        from_version=1,
        to_version=NEW,
        started_at=ago(100),
        **fields,
    )
    return web(
        target=target,
        version=NEW,
        surge=surge,
        policy=RolloutPolicy(**(policy or {})),
        rollout=rollout,
        good_fits=fits,
        compatible=compatible,
        forgiven_at=ago(100),
    )


def new(*numbers: int, since: float = 60) -> list[ReplicaView]:
    """READY replicas of the new version."""
    return [replica(n, S.READY, NEW, state_since=ago(since), ready_at=ago(since)) for n in numbers]


def failed(*numbers: int, version: int = NEW) -> list[ReplicaView]:
    return [replica(n, S.FAILED, version, state_since=ago(90), reason="exit code 7") for n in numbers]


def decided(service: ServiceView, rows: list[ReplicaView]) -> list[str]:
    """What a plan decides of the rollout."""
    kinds = (Progress, Promote, Switch, Succeed, Fail, Rollback)
    return [type(action).__name__ for action in plan(service, rows, NOW).actions if isinstance(action, kinds)]


class TestProof:
    def test_age_alone_proves_nothing_while_nobody_probes(self) -> None:
        rows = [*ready(1, 2, 3), *(replace(row, probed_at=ago(51)) for row in new(4))]
        planned = plan(moving(), rows, NOW)
        assert planned.actions == ()
        assert planned.notes == (
            "version 2 takes over since 11:58:20 UTC: 0 of 3 proved, 3 older replicas kept until it is; 1 replica waits"
            " for one more probe to pass; it fails unless it gets on by 12:28:20 UTC",
        )
        rows[-1] = replace(rows[-1], probed_at=ago(50))
        assert decided(moving(), rows) == ["Progress"]

    def test_a_canary_is_not_promoted_by_age_alone(self) -> None:
        policy = {"canary": 1, "bake_seconds": 20.0}
        rows = [*ready(1, 2, 3), replace(new(4)[0], probed_at=ago(60))]
        assert decided(moving(policy=policy, best=1), rows) == []
        rows[-1] = replace(rows[-1], probed_at=ago(1))
        assert decided(moving(policy=policy, best=1), rows) == ["Promote"]

    def test_a_moment_that_the_clock_was_set_back_from_is_not_waited_for(self) -> None:
        rows = [*ready(1, 2, 3), *new(4, since=-3600)]
        assert decided(moving(), rows) == ["Progress"]

    def test_ready_for_too_short_gives_up_no_old_one(self) -> None:
        rows = [*ready(1, 2, 3), *new(4, since=9)]
        planned = plan(moving(), rows, NOW)
        assert planned.actions == ()
        assert planned.wake_at == later(1)

    def test_ready_for_long_enough_does_and_is_kept_as_progress(self) -> None:
        planned = plan(moving(), [*ready(1, 2, 3), *new(4, since=10)], NOW)
        assert planned.actions[0] == Progress(7, 4, 1, "1 of 3 replicas of version 2 proved")
        assert doing(Plan(planned.actions[1:])) == [("Drain", 3)]

    def test_what_was_ready_under_another_probe_has_to_prove_itself_again(self) -> None:
        service = moving(mode=RolloutMode.IN_PLACE, fits=True, compatible=frozenset({1}))
        assert decided(service, ready(1, 2, 3)) == []
        adopted = [replace(row, version=NEW, adopted_at=ago(5)) for row in ready(1, 2, 3)]
        assert decided(service, adopted) == []
        assert plan(service, adopted, NOW).wake_at == later(5)

    def test_going_back_it_need_not(self) -> None:
        service = moving(kind=RolloutKind.ROLLBACK, fits=True, compatible=frozenset({1}))
        assert decided(service, ready(1, 2, 3)) == ["Progress"]


class TestBringingBack:
    def test_an_old_one_that_died_comes_back_while_nothing_new_has_proved_itself(self) -> None:
        rows = [*ready(1, 2), *failed(3, version=1), replica(4, S.STARTING, NEW)]
        reason = "replaces replica 3, which failed: exit code 7"
        assert plan(moving(), rows, NOW).actions == (Create(1, 3, 1, reason),)

    def test_then_new_ones_take_its_place(self) -> None:
        rows = [*ready(1), *failed(3, version=1), *new(4)]
        assert doing(plan(moving(best=1), rows, NOW)) == [("Create", 2), ("Create", 2)]

    def test_a_good_version_that_is_the_same_process_is_not_brought_back_beside_it(self) -> None:
        rows = [*ready(1, 2), *failed(3, version=1)]
        service = moving(kind=RolloutKind.ROLLBACK, fits=True, compatible=frozenset({1}), best=2)
        assert ("Create", 1) not in doing(plan(service, rows, NOW))

    def test_of_a_version_that_nothing_is_known_of_none_is_brought_back(self) -> None:
        assert doing(plan(moving(good_version=0), ready(1, 2), NOW)) == [("Create", 2), ("Create", 2)]


class TestCanary:
    policy = {"canary": 1}

    def test_no_more_than_the_canary_and_every_old_one_stays(self) -> None:
        planned = plan(moving(policy=self.policy, surge=Surge(3, 0), best=1), [*ready(1, 2, 3), *new(4)], NOW)
        assert planned.actions == ()
        assert planned.notes[0] == (
            "version 2 is tried with 1 replica since 11:58:20 UTC: 1 proved; it waits to be promoted"
        )

    def test_promoted_it_goes_on(self) -> None:
        service = moving(policy=self.policy, promoted_at=ago(1), best=1)
        assert doing(plan(service, [*ready(1, 2, 3), *new(4)], NOW)) == [("Drain", 3)]

    def test_it_is_promoted_when_it_has_baked(self) -> None:
        service = moving(policy={"canary": 1, "bake_seconds": 30}, best=1)
        rows = [*ready(1, 2, 3), *new(4, since=29)]
        planned = plan(service, rows, NOW)
        assert (decided(service, rows), planned.wake_at) == ([], later(1))
        assert "it is promoted at 12:00:01 UTC" in planned.notes[0]
        assert decided(service, [*ready(1, 2, 3), *new(4, since=30)]) == ["Promote"]

    def test_a_failure_makes_it_bake_anew(self) -> None:
        service = moving(policy={"canary": 1, "bake_seconds": 60}, best=1)
        lost = replica(5, S.FAILED, NEW, state_since=ago(20))
        assert decided(service, [*ready(1, 2, 3), *new(4, since=80), lost]) == []

    def test_without_places_beside_it_takes_one(self) -> None:
        service = moving(policy=self.policy, surge=Surge(0, 1))
        assert doing(plan(service, ready(1, 2, 3), NOW)) == [("Drain", 3)]

    def test_the_deadline_does_not_run_while_it_waits(self) -> None:
        service = moving(policy={"canary": 1, "progress_deadline": 50.0}, best=1)
        assert decided(service, [*ready(1, 2, 3), *new(4)]) == []


class TestPaused:
    def test_nothing_moves(self) -> None:
        service = moving(paused_at=ago(50), best=1, policy={"progress_deadline": 10.0})
        planned = plan(service, [*ready(1, 2, 3), *new(4)], NOW)
        assert planned.actions == ()
        assert planned.notes[0] == "the rollout of version 2 is paused since 11:59:10 UTC: 1 of 3 proved"

    def test_each_side_is_replaced_by_its_own_version(self) -> None:
        service = moving(paused_at=ago(50), best=1)
        rows = [*ready(1, 2), *failed(3, version=1), *failed(4)]
        assert sorted(doing(plan(service, rows, NOW))) == [("Create", 1), ("Create", 2)]

    def test_more_are_met_by_the_good_version(self) -> None:
        assert doing(plan(moving(5, paused_at=ago(50), best=1), [*ready(1, 2, 3), *new(4)], NOW)) == [("Create", 1)]

    def test_none_wanted_is_none(self) -> None:
        assert len(plan(moving(0, paused_at=ago(50)), [*ready(1, 2), *new(4)], NOW).actions) == 3


class TestBlueGreen:
    def green(self, **fields: Any) -> ServiceView:
        return moving(2, mode=RolloutMode.BLUE_GREEN, **fields)

    def test_a_whole_set_is_made_beside_the_old_one(self) -> None:
        assert doing(plan(self.green(), ready(1, 2), NOW)) == [("Create", 2), ("Create", 2)]

    def test_it_is_switched_to_when_complete_and_proved(self) -> None:
        assert decided(self.green(best=1), [*ready(1, 2), *new(3)]) == []
        planned = plan(self.green(best=2), [*ready(1, 2), *new(3, 4)], NOW)
        assert planned.actions == (Switch(7, 4, 2, "version 2 is complete and proved: 2 replicas"),)

    def test_the_old_set_is_kept_for_a_while(self) -> None:
        service = self.green(best=2, switched_at=ago(10), policy={"keep_old_seconds": 30})
        planned = plan(service, [*ready(1, 2), *new(3, 4)], NOW)
        assert (planned.actions, planned.wake_at) == ((), later(20))
        assert planned.notes[0] == (
            "version 2 serves since 11:59:50 UTC: 2 of 2 proved; 2 older replicas kept until 12:00:20 UTC"
        )

    def test_then_it_goes(self) -> None:
        service = self.green(best=2, switched_at=ago(30), policy={"keep_old_seconds": 30})
        assert doing(plan(service, [*ready(1, 2), *new(3, 4)], NOW)) == [("Drain", 2), ("Drain", 1)]

    def test_a_promotion_ends_the_keeping(self) -> None:
        service = self.green(best=2, switched_at=ago(1), promoted_at=NOW, policy={"keep_old_seconds": 30})
        assert len(plan(service, [*ready(1, 2), *new(3, 4)], NOW).actions) == 2

    def test_the_status_counts_who_gets_traffic(self) -> None:
        service = self.green(best=1)
        rows = [*ready(1, 2), *new(3)]
        state, reason = status(service, rows, plan(service, rows, NOW))
        assert state is ServiceStatus.READY
        assert reason.startswith("2 of 2 ready; version 2 is made ready beside 2 older replicas since 11:58:20 UTC")
        assert "1 more ready without traffic" in reason


class TestOnePort:
    def test_the_old_one_goes_before_the_new_one_comes(self) -> None:
        service = moving(1, policy={"one_port": True})
        planned = plan(service, ready(1), NOW)
        assert doing(planned) == [("Drain", 1)]
        assert "run listens on one port of this host" in planned.notes[0]
        assert doing(plan(service, [], NOW)) == [("Create", 2)]


class TestReading:
    def test_a_service_and_a_rollout_that_do_not_belong_together_decide_nothing(self) -> None:
        service = replace(moving(best=3), version=1)
        planned = plan(service, [*ready(1, 2, 3), *new(4, 5, 6)], NOW)
        assert planned.actions == ()

    def test_a_first_version_comes_up(self) -> None:
        service = moving(2, kind=RolloutKind.FIRST, good_version=0)
        assert plan(service, new(3, 4, since=4), NOW).notes == (
            "version 2 comes up since 11:58:20 UTC: 0 of 2 proved;"
            " the next one will have proved itself at 12:00:06 UTC",
        )


class TestEnds:
    def test_it_succeeds_when_nothing_old_is_left(self) -> None:
        assert decided(moving(best=3), [*ready(1), *new(4, 5, 6)]) == []
        assert decided(moving(best=3), new(4, 5, 6)) == ["Succeed"]

    def test_with_none_wanted_it_stays_open(self) -> None:
        assert plan(moving(0, policy={"progress_deadline": 10.0}), [], NOW) == Plan()

    def test_it_fails_after_so_many_failures_and_goes_back(self) -> None:
        planned = plan(moving(), [*ready(1, 2, 3), *failed(4, 5, 6)], NOW)
        reason = "version 2 failed 3 times; the last one was replica 4: exit code 7"
        assert planned.actions == (Fail(7, 4, reason), Rollback(7, f"back to version 1: {reason}"))

    def test_it_fails_without_progress(self) -> None:
        service = moving(policy={"progress_deadline": 100.0})
        planned = plan(service, [*ready(1, 2, 3), replica(4, S.STARTING, NEW)], NOW)
        reason = "version 2 made no progress for 100 s: 0 of 3 replicas proved"
        assert planned.actions[0] == Fail(7, 4, reason)
        later_on = replace(service, policy=RolloutPolicy(progress_deadline=130.0))
        assert plan(later_on, [*ready(1, 2, 3), replica(4, S.STARTING, NEW)], NOW).wake_at == later(30)

    def test_a_version_with_nothing_to_fall_back_on_is_tried_until_it_is_hopeless(self) -> None:
        service = moving(good_version=0, policy={"progress_deadline": 10.0})
        assert decided(service, failed(4, 5, 6)) == []
        assert decided(service, failed(4, 5, 6, 7, 8)) == ["Fail"]

    def test_so_is_a_way_back_to_the_good_version(self) -> None:
        service = moving(kind=RolloutKind.ROLLBACK, fits=True, policy={"progress_deadline": 10.0})
        assert decided(service, failed(4, 5, 6)) == []

    def test_given_up_it_is_launched_no_more_and_the_good_version_fills_its_places(self) -> None:
        service = moving(state=RolloutState.FAILED, best=1, policy={"auto_rollback": False}, reason="it is bad")
        rows = [*ready(1), *new(4), replica(5, S.STARTING, NEW)]
        planned = plan(service, rows, NOW)
        assert doing(planned) == [("Retire", 5), ("Create", 1)]
        assert planned.notes[0] == "version 2 was given up: it is bad; version 1 is kept in its place"

    def test_a_failure_is_followed_by_the_way_back_also_by_another_controller(self) -> None:
        service = moving(state=RolloutState.FAILED, reason="it is bad")
        assert plan(service, ready(1, 2, 3), NOW).actions == (Rollback(7, "back to version 1: it is bad"),)

    def test_a_way_back_that_failed_is_not_followed_by_another(self) -> None:
        service = moving(state=RolloutState.FAILED, kind=RolloutKind.ROLLBACK)
        assert decided(service, ready(1, 2, 3)) == []

    def test_what_it_waits_for_is_told(self) -> None:
        rows = [*ready(1, 2, 3), *new(4, since=4)]
        service = moving(policy={"progress_deadline": 400.0})
        assert plan(service, rows, NOW).notes[0] == (
            "version 2 takes over since 11:58:20 UTC: 0 of 3 proved, 3 older replicas kept until it is;"
            " the next one will have proved itself at 12:00:06 UTC; it fails unless it gets on by 12:05:00 UTC"
        )
