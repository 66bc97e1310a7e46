"""Rollouts as rows: how they begin, what people may do to them and when, and how the controller moves them on."""

from typing import Any

import pytest
from django.db import IntegrityError, transaction

from replicas.actions import replicas, rollouts, services
from replicas.actions.rollouts import Conflict, Refused
from replicas.core.spec import Spec
from replicas.core.values import RolloutKind, RolloutMode, RolloutState
from replicas.models import Event, Replica, Rollout, Service, ServiceVersion
from replicas.models.public import rollout_row
from tests import cast

pytestmark = pytest.mark.django_db
BLUE_GREEN: dict[str, Any] = {"mode": "blue_green"}


def section(target: int = 1, **rollout: Any) -> dict[str, Any]:
    """The service section of a spec."""
    return {"readiness_probe": {"path": "/"}, "replicas": target, "rollout": rollout}


def update(run: str, target: int = 1, **rollout: Any) -> Service:
    """Another process for the service web."""
    return services.apply(cast.draft(target=target, run=run, service=section(target, **rollout)), actor="ann").service


def live(service: Service) -> Rollout:
    found = rollouts.live_of(service.pk)
    assert found is not None
    return found


def proven(service: Service, target: int = 1) -> Rollout:
    """The rollout that goes on comes to a good end."""
    going = live(service)
    assert rollouts.progress(going.pk, going.revision, target, reason="ready", actor="controller")
    going.refresh_from_db()
    assert rollouts.succeed(going.pk, going.revision, reason="done", actor="controller")
    going.refresh_from_db()
    return going


def served(target: int = 1) -> Service:
    """The service web, whose version 1 has proved itself."""
    service = services.apply(cast.draft(target=target, service=section(target)), actor="ann").service
    for _ in range(target):
        cast.ready(service)
    proven(service, target)
    return service


class TestBegin:
    def test_the_first(self) -> None:
        rollout = live(cast.service())
        seen = (rollout.kind, rollout.mode, rollout.from_version, rollout.to_version, rollout.good_version)
        assert seen == (RolloutKind.FIRST, RolloutMode.ROLLING, 0, 1, 0)
        event = Event.objects.get(kind="rollout")
        assert (event.trigger, event.reason) == ("rollout_begun", "version 1 is brought up, rolling")
        assert event.data == rollout_row(rollout)

    def test_an_update_knows_what_it_leaves_and_what_was_good(self) -> None:
        served()
        rollout = live(update("sleep 61"))
        seen = (rollout.kind, rollout.mode, rollout.from_version, rollout.to_version, rollout.good_version)
        assert seen == (RolloutKind.UPDATE, RolloutMode.ROLLING, 1, 2, 1)

    def test_the_same_process_is_in_place_whatever_the_mode(self) -> None:
        served()
        draft = cast.draft(service={"readiness_probe": {"path": "/other"}, "rollout": BLUE_GREEN})
        assert live(services.apply(draft, actor="ann").service).mode == RolloutMode.IN_PLACE

    def test_in_place_means_all_that_runs_not_only_what_was_applied_last(self) -> None:
        served()
        update("sleep 61")
        again = cast.draft(run="sleep 61", service={"readiness_probe": {"path": "/other"}})
        assert live(services.apply(again, actor="ann").service).mode == RolloutMode.ROLLING

    def test_the_mode_of_the_draft_wins_over_the_spec(self) -> None:
        served()
        draft = cast.draft(run="sleep 61", service=section(**BLUE_GREEN))
        fields = {name: getattr(draft, name) for name in draft.__dataclass_fields__}
        applied = services.apply(services.Draft(**{**fields, "mode": RolloutMode.ROLLING}), actor="ann")
        assert live(applied.service).mode == RolloutMode.ROLLING

    def test_an_unproven_version_is_not_good(self) -> None:
        served()
        update("sleep 61")
        assert live(update("sleep 62")).good_version == 1

    def test_a_second_one_supersedes_the_first(self) -> None:
        served()
        first = live(update("sleep 61"))
        second = live(update("sleep 62"))
        first.refresh_from_db()
        assert (first.state, first.reason) == (RolloutState.SUPERSEDED, "superseded by version 3")
        assert first.ended_at is not None
        assert (second.from_version, second.to_version) == (2, 3)

    def test_a_restart(self) -> None:
        service = served()
        services.restart(service.pk, actor="ann")
        rollout = live(service)
        assert (rollout.kind, rollout.mode, rollout.good_version) == (RolloutKind.RESTART, RolloutMode.ROLLING, 1)

    def test_taken_down_it_ends_and_revived_it_is_a_first_one(self) -> None:
        service = served()
        first = live(update("sleep 61"))
        services.take_down(service.pk, purge=False, actor="ann")
        first.refresh_from_db()
        assert (first.state, first.reason) == (RolloutState.ABORTED, "the service was taken down by ann")
        again = live(update("sleep 61"))
        assert (again.kind, again.from_version, again.good_version) == (RolloutKind.FIRST, 0, 1)

    def test_what_ran_before_there_were_rollouts_is_good_when_it_is_ready(self) -> None:
        service = services.apply(cast.draft(), actor="ann").service
        cast.ready(service)
        Rollout.objects.all().delete()
        assert live(update("sleep 61")).good_version == 1

    def test_the_database_refuses_a_second_live_one(self) -> None:
        rollout = live(cast.service())
        with pytest.raises(IntegrityError), transaction.atomic():
            Rollout.objects.create(
                service=rollout.service,
                kind=RolloutKind.UPDATE,
                mode=RolloutMode.ROLLING,
                to_version=2,
                started_at=rollout.started_at,
                progressed_at=rollout.started_at,
            )


class TestListing:
    def test_what_a_superseded_blue_green_had_not_switched_to_is_held(self) -> None:
        service = served()
        cast.ready(update("sleep 61", **BLUE_GREEN))
        assert live(update("sleep 62")).held == [2]
        assert Replica.objects.filter(service=service, state="READY").count() == 2

    def test_what_a_switch_left_behind_is_held(self) -> None:
        served()
        service = update("sleep 61", **BLUE_GREEN)
        cast.ready(service)
        going = live(service)
        assert rollouts.progress(going.pk, going.revision, 1, reason="ready", actor="controller")
        assert rollouts.switch(going.pk, going.revision + 1, reason="complete", actor="controller")
        rollout = live(update("sleep 62"))
        assert (rollout.held, rollout.good_version) == ([1], 2)

    def test_back_to_what_is_listed_is_switched_from_the_start(self) -> None:
        service = served()
        blue = cast.draft(service=section(**BLUE_GREEN), run="sleep 60.0")
        services.apply(blue, actor="ann")
        cast.ready(Service.objects.get())
        going = live(service)
        assert rollouts.switch(going.pk, going.revision, reason="complete", actor="controller")
        proven(service)
        Replica.objects.filter(version_number=1).update(state="SHUTTING_DOWN")
        cast.ready(update("sleep 62", **BLUE_GREEN))
        rollout = rollouts.abort(service.pk, actor="ann")
        assert (rollout.kind, rollout.good_version, rollout.switched_at is not None) == ("rollback", 2, True)

    def test_where_both_sides_are_listed_it_rolls(self) -> None:
        service = services.apply(cast.draft(target=2, service=section(2, **BLUE_GREEN)), actor="ann").service
        cast.ready(service)
        proven(service)
        cast.ready(update("sleep 61", 2, mode="rolling"))
        assert rollouts.abort(service.pk, actor="ann").mode == RolloutMode.ROLLING


class TestSteering:
    def test_pause_and_resume(self) -> None:
        service = served()
        began = live(update("sleep 61"))
        paused = rollouts.pause(service.pk, actor="ann")
        assert (paused.reason, paused.paused_at is not None) == ("paused by ann", True)
        assert rollouts.pause(service.pk, actor="ben").revision == paused.revision
        resumed = rollouts.resume(service.pk, actor="ann")
        assert (resumed.paused_at, resumed.state) == (None, RolloutState.PROGRESSING)
        assert resumed.progressed_at > began.progressed_at
        assert rollouts.resume(service.pk, actor="ben").revision == resumed.revision

    def test_a_canary_is_promoted_once(self) -> None:
        service = served()
        update("sleep 61", canary=1)
        first = rollouts.promote(service.pk, actor="ann")
        assert first.promoted_at is not None
        assert rollouts.promote(service.pk, actor="ben").revision == first.revision

    def test_without_a_canary_there_is_nothing_to_promote(self) -> None:
        service = served()
        update("sleep 61")
        with pytest.raises(Refused, match="has no canary"):
            rollouts.promote(service.pk, actor="ann")

    def test_blue_green_is_promoted_after_its_switch_only(self) -> None:
        service = served()
        going = live(update("sleep 61", **BLUE_GREEN))
        with pytest.raises(Refused, match="switches by itself"):
            rollouts.promote(service.pk, actor="ann")
        assert rollouts.switch(going.pk, going.revision, reason="complete", actor="controller")
        assert rollouts.promote(service.pk, actor="ann").promoted_at is not None

    @pytest.mark.parametrize("verb", ["pause", "resume", "promote", "abort"])
    def test_without_a_rollout_there_is_nothing_to_do(self, verb: str) -> None:
        service = served()
        with pytest.raises(Refused, match=rf"no rollout of service web is going on.*nothing to {verb}"):
            getattr(rollouts, verb)(service.pk, actor="ann")

    @pytest.mark.parametrize("verb", ["pause", "resume", "promote", "abort", "rollback"])
    def test_of_a_service_that_is_down_or_gone(self, verb: str) -> None:
        service = served()
        services.take_down(service.pk, purge=False, actor="ann")
        with pytest.raises(Refused, match="taken down"):
            getattr(rollouts, verb)(service.pk, actor="ann")
        with pytest.raises(Refused, match="gone"):
            getattr(rollouts, verb)(10**9, actor="ann")


class TestGoingBack:
    def test_abort_goes_back_to_the_good_version_as_a_new_one(self) -> None:
        service = served()
        old = cast.ready(service)
        going = live(update("sleep 61"))
        rollout = rollouts.abort(service.pk, actor="ann")
        going.refresh_from_db()
        service.refresh_from_db()
        first, third = ServiceVersion.objects.get(number=1), ServiceVersion.objects.get(number=3)
        assert (going.state, going.reason) == (RolloutState.ABORTED, "aborted by ann")
        assert (rollout.kind, rollout.to_version, rollout.from_version) == (RolloutKind.ROLLBACK, 3, 2)
        assert service.version_id == third.pk
        same = ("text", "spec", "digest", "process_digest", "files_digest", "files_uid", "sealed", "base", "overrides")
        assert [getattr(third, name) for name in same] == [getattr(first, name) for name in same]
        assert third.message == "back to version 1: aborted by ann"
        assert replicas.adopt(old.pk, 3, reason="the same process", actor="controller")

    def test_a_first_version_cannot_be_aborted(self) -> None:
        service = cast.service()
        with pytest.raises(Refused, match="none to go back to; apply a corrected version"):
            rollouts.abort(service.pk, actor="ann")

    def test_what_goes_back_already_is_not_turned_around(self) -> None:
        service = served()
        update("sleep 61")
        rollouts.abort(service.pk, actor="ann")
        with pytest.raises(Refused, match="goes back to version 1 already"):
            rollouts.abort(service.pk, actor="ann")

    def test_rollback_after_a_success_goes_to_the_good_one_before_it(self) -> None:
        service = served()
        update("sleep 61")
        proven(service)
        rollout = rollouts.rollback(service.pk, actor="ann", message="too slow")
        assert (rollout.to_version, ServiceVersion.objects.get(number=3).message) == (3, "too slow")
        assert ServiceVersion.objects.get(number=3).digest == ServiceVersion.objects.get(number=1).digest

    def test_rollback_twice_comes_and_goes(self) -> None:
        service = served()
        update("sleep 61")
        proven(service)
        rollouts.rollback(service.pk, actor="ann")
        proven(service)
        rollouts.rollback(service.pk, actor="ann")
        assert ServiceVersion.objects.get(number=4).digest == ServiceVersion.objects.get(number=2).digest

    def test_rollback_out_of_a_restart_goes_to_what_still_runs(self) -> None:
        service = served()
        services.restart(service.pk, actor="ann")
        rollouts.rollback(service.pk, actor="ann")
        versions = {version.number: version.process_digest for version in ServiceVersion.objects.all()}
        assert versions[3] == versions[1] != versions[2]

    def test_rollback_to_a_named_version(self) -> None:
        service = served()
        update("sleep 61")
        update("sleep 62")
        rollout = rollouts.rollback(service.pk, 2, actor="ann")
        assert ServiceVersion.objects.get(number=4).digest == ServiceVersion.objects.get(number=2).digest
        assert rollout.kind == RolloutKind.UPDATE  # it never proved itself, so it may have to be turned back
        assert rollouts.rollback(service.pk, 1, actor="ann").kind == RolloutKind.ROLLBACK

    def test_where_it_cannot_go(self) -> None:
        service = served()
        with pytest.raises(Refused, match="no other version of service web has proved itself"):
            rollouts.rollback(service.pk, actor="ann")
        with pytest.raises(Refused, match="has no version 9; its versions are 1 to 1"):
            rollouts.rollback(service.pk, 9, actor="ann")
        with pytest.raises(Refused, match="is the active one"):
            rollouts.rollback(service.pk, 1, actor="ann")

    def test_two_at_once_one_wins_and_the_other_is_told(self) -> None:
        service = served()
        update("sleep 61")
        rollouts.rollback(service.pk, 1, actor="ann", expected=2)
        with pytest.raises(Conflict, match="at version 3 by now, not 2"):
            rollouts.rollback(service.pk, 1, actor="ben", expected=2)
        assert ServiceVersion.objects.count() == 3

    def test_the_target_goes_back_unless_somebody_scaled_by_hand(self) -> None:
        service = served(2)
        update("sleep 61", 4)
        rollouts.abort(service.pk, actor="ann")
        assert Service.objects.get().target == 2
        update("sleep 62", 4)
        services.scale(service.pk, 5, actor="ben")
        rollouts.abort(service.pk, actor="ann")
        assert Service.objects.get().target == 5

    def test_a_target_that_was_set_by_hand_before_the_update_comes_back_too(self) -> None:
        service = served(2)
        services.scale(service.pk, 3, actor="ann")
        service = update("sleep 61", target=3)
        rollouts.abort(service.pk, actor="ann")
        assert Service.objects.get().target == 3

    def test_the_target_that_a_spec_asks_for(self) -> None:
        for form in (
            {"service": {"replicas": 3}},
            {"service": {}},
            {"service": {"replica_policy": {"min_replicas": 0, "max_replicas": 0}}},
            {"service": {"workers": 4}},
            {"pool": {"workers": 5}},
            {"pool": {"min_workers": 6, "max_workers": 7}},
        ):
            spec = Spec.from_json({"name": "web", **form})
            assert rollouts.wanted(spec.to_json()) == spec.target


class TestTheController:
    def test_what_it_decided_of_another_revision_is_void(self) -> None:
        going = live(cast.service())
        assert rollouts.progress(going.pk, 1, 1, reason="1 ready", actor="controller")
        for late in (rollouts.switch, rollouts.promoted, rollouts.succeed, rollouts.fail):
            assert not late(going.pk, 1, reason="late", actor="controller")
        going.refresh_from_db()
        assert (going.best, going.revision, going.state) == (1, 2, RolloutState.PROGRESSING)

    def test_after_a_failure_it_goes_back_once(self) -> None:
        service = served()
        going = live(update("sleep 61"))
        assert rollouts.fail(going.pk, going.revision, reason="3 replicas failed", actor="controller")
        assert rollouts.turn_back(going.pk, reason="back to version 1: 3 replicas failed", actor="controller")
        assert not rollouts.turn_back(going.pk, reason="again", actor="controller")
        assert (live(service).kind, ServiceVersion.objects.count()) == (RolloutKind.ROLLBACK, 3)

    def test_it_does_not_go_back_over_what_somebody_applied_meanwhile(self) -> None:
        served()
        going = live(update("sleep 61"))
        assert rollouts.fail(going.pk, going.revision, reason="3 replicas failed", actor="controller")
        update("sleep 62")
        assert not rollouts.turn_back(going.pk, reason="back", actor="controller")

    def test_where_it_cannot_go_back_it_says_why_and_does_not_ask_again(self) -> None:
        served()
        going = live(update("sleep 61"))
        assert rollouts.fail(going.pk, going.revision, reason="3 replicas failed", actor="controller")
        Rollout.objects.filter(pk=going.pk).update(good_version=77)
        assert rollouts.turn_back(going.pk, reason="back", actor="controller")
        going.refresh_from_db()
        assert going.reason == "3 replicas failed; cannot go back: version 77 of service web is gone"
        assert not rollouts.turn_back(going.pk, reason="back", actor="controller")
