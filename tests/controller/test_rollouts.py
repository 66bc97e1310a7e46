"""Rollouts by the controller over rows, with the fake provider: what becomes of good and of bad versions."""

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext

from replicas import clock
from replicas.actions import rollouts, services
from replicas.controller.observe import observe
from replicas.core.rollout import serves
from replicas.core.values import LIVE, RolloutState
from replicas.models import Event, Replica, Rollout, Service, ServiceVersion
from replicas.providers import registry
from tests import cast
from tests.controller.stage import Stage

FAILING = {"setup_fails": "no such package"}


def section(target: int = 2, **rollout: Any) -> dict[str, Any]:
    """A service section whose replicas prove themselves at once, and are tried again at once."""
    return {
        "readiness_probe": {"path": "/"},
        "replicas": target,
        "restart": {"backoff_seconds": 0},
        "rollout": {"min_ready_seconds": 0, **rollout},
    }


def apply(run: str, target: int = 2, fake: dict[str, Any] | None = None, **rollout: Any) -> Service:
    draft = cast.draft("web", target, run=run, service=section(target, **rollout), fake=fake or {})
    return services.apply(draft, actor="ann").service


def step(stage: Stage, service: Service) -> None:
    """One turn of everything; nobody that served is given up on the way."""
    before = served(service)
    stage.tick()
    assert served(service) >= min(before, service.target)
    stage.deliver()
    stage.probe()


def until(stage: Stage, service: Service, state: RolloutState, rounds: int = 40) -> Rollout:
    """Turn until the latest rollout is in that state."""
    for _ in range(rounds):
        step(stage, service)
        latest = rollouts.latest(service.pk)
        if latest is not None and latest.state == state:
            return latest
    raise AssertionError(list(Rollout.objects.values()))


def served(service: Service) -> int:
    """How many get traffic."""
    world = observe(clock.now())
    (seen,) = [view for view in world.services if view.id == service.pk]
    return sum(serves(seen, view) for view in world.replicas[service.pk])


def versions(service: Service) -> list[int]:
    """The versions of the live replicas."""
    rows = Replica.objects.filter(service=service, state__in=LIVE).order_by("version_number")
    return list(rows.values_list("version_number", flat=True))


def serving(stage: Stage, **rollout: Any) -> Service:
    """The service at version 1, which has proved itself."""
    service = apply("sleep 60", **rollout)
    until(stage, service, RolloutState.SUCCEEDED)
    return service


def test_a_first_version_succeeds_when_all_have_proved_themselves(stage: Stage) -> None:
    service = serving(stage)
    rollout = Rollout.objects.get()
    assert (rollout.best, rollout.reason) == (2, "version 1 has taken over: 2 replicas proved")
    triggers = Event.objects.filter(kind="rollout").order_by("id").values_list("trigger", flat=True)
    assert list(triggers) == ["rollout_begun", "rollout_progressed", "rollout_succeeded"]
    assert versions(service) == [1, 1]


def test_a_bad_version_goes_back_by_itself(stage: Stage) -> None:
    service = serving(stage)
    kept = set(Replica.objects.filter(state="READY").values_list("pk", flat=True))
    apply("sleep 61", fake=FAILING)
    rollout = until(stage, service, RolloutState.SUCCEEDED)
    service.refresh_from_db()
    first, second = Rollout.objects.order_by("id")[:2]
    assert second.state == RolloutState.FAILED
    assert "version 2 failed 3 times; the last one was replica" in second.reason
    assert "no such package" in second.reason
    assert (rollout.kind, rollout.to_version, rollout.good_version) == ("rollback", 3, 1)
    assert ServiceVersion.objects.get(number=3).message.startswith("back to version 1: version 2 failed 3 times")
    assert set(Replica.objects.filter(state="READY").values_list("pk", flat=True)) == kept
    assert (versions(service), first.state, service.status) == ([3, 3], "SUCCEEDED", "READY")


def test_without_auto_rollback_it_stays_failed_and_the_good_version_serves(stage: Stage) -> None:
    service = serving(stage)
    apply("sleep 61", fake=FAILING, auto_rollback=False)
    until(stage, service, RolloutState.FAILED)
    for _ in range(8):
        step(stage, service)
    service.refresh_from_db()
    assert versions(service) == [1, 1]
    assert (service.status, service.ready) == ("READY", 2)
    assert "version 2 was given up: version 2 failed 3 times" in service.reason
    assert service.reason.count("version 1 is kept in its place") == 1
    count = Event.objects.count()
    stage.tick()
    assert (Event.objects.count(), stage.offered) == (count, [])


def test_without_progress_it_goes_back_at_its_deadline(stage: Stage) -> None:
    service = serving(stage)
    apply("sleep 61", fake={"ready_after_seconds": 3600}, progress_deadline_seconds=60)
    for _ in range(4):
        step(stage, service)
    service.refresh_from_db()
    until_when = rollouts.latest(service.pk).progressed_at + timedelta(seconds=60)  # type: ignore[union-attr]
    assert f"it fails unless it gets on by {until_when:%H:%M:%S} UTC" in service.reason
    Rollout.objects.filter(state="PROGRESSING").update(progressed_at=clock.now() - timedelta(seconds=61))
    until(stage, service, RolloutState.SUCCEEDED)
    assert "made no progress for 60 s: 0 of 2 replicas proved" in Rollout.objects.get(to_version=2).reason


def test_old_ones_that_die_are_brought_back_while_nothing_new_has_proved_itself(stage: Stage) -> None:
    service = serving(stage)
    apply("sleep 61", fake={"ready_after_seconds": 3600})
    step(stage, service)
    victim = Replica.objects.filter(version_number=1, state="READY").first()
    assert victim is not None
    stage.loop.watch.inspect_seconds = 0
    registry.get("fake", settings.ROLLCALL.home).end(victim.uid, 137)  # type: ignore[attr-defined]
    stage.tick()
    for _ in range(8):
        step(stage, service)
    back = Replica.objects.get(replaces=victim.number)
    assert (back.version_number, back.state) == (1, "READY")


def test_a_canary_waits_until_it_is_promoted(stage: Stage) -> None:
    service = serving(stage)
    apply("sleep 61", canary=1)
    for _ in range(12):
        step(stage, service)
    service.refresh_from_db()
    assert sorted(versions(service)) == [1, 1, 2]
    assert "version 2 is tried with 1 replica since" in service.reason
    assert "it waits to be promoted" in service.reason
    rollouts.promote(service.pk, actor="ann")
    until(stage, service, RolloutState.SUCCEEDED)
    assert versions(service) == [2, 2]


def test_a_canary_is_promoted_after_it_has_baked(stage: Stage) -> None:
    service = serving(stage)
    apply("sleep 61", canary=1, bake_seconds=0)
    rollout = until(stage, service, RolloutState.SUCCEEDED)
    assert rollout.promoted_at is not None
    assert Event.objects.filter(trigger="rollout_promoted", actor="controller").exists()


def test_blue_green_switches_once_the_new_set_is_complete(stage: Stage) -> None:
    service = serving(stage)
    apply("sleep 61", mode="blue_green", keep_old_seconds=3600)
    for _ in range(10):
        step(stage, service)
        assert served(service) == 2
    service.refresh_from_db()
    assert versions(service) == [1, 1, 2, 2]
    assert "version 2 serves since" in service.reason
    assert "2 older replicas kept until" in service.reason
    assert service.ready == 2
    rollouts.promote(service.pk, actor="ann")
    until(stage, service, RolloutState.SUCCEEDED)
    assert versions(service) == [2, 2]


def test_back_from_a_switch_is_at_once_while_the_old_set_is_kept(stage: Stage) -> None:
    service = serving(stage)
    old = set(Replica.objects.values_list("pk", flat=True))
    apply("sleep 61", mode="blue_green", keep_old_seconds=3600)
    for _ in range(10):
        step(stage, service)
    rollouts.abort(service.pk, actor="ann")
    stage.tick()
    stage.tick()
    rows = Replica.objects.filter(state="READY", version_number=3)
    assert set(rows.values_list("pk", flat=True)) == old
    assert served(service) >= 2
    until(stage, service, RolloutState.SUCCEEDED)
    assert versions(service) == [3, 3]


def test_paused_it_moves_nothing_and_scales(stage: Stage) -> None:
    service = serving(stage)
    apply("sleep 61", 2, max_failures=100, progress_deadline_seconds=0.001)
    rollouts.pause(service.pk, actor="ann")
    for _ in range(6):
        step(stage, service)
    assert versions(service) == [1, 1]
    services.scale(service.pk, 3, actor="ann")
    for _ in range(6):
        step(stage, service)
    service.refresh_from_db()
    assert versions(service) == [1, 1, 1]
    assert "the rollout of version 2 is paused since" in service.reason


def test_a_wrong_probe_applied_in_place_is_turned_back(stage: Stage) -> None:
    service = serving(stage)
    wrong = section(2, min_ready_seconds=5, progress_deadline_seconds=60)
    wrong["readiness_probe"] = {"path": "/wrong"}
    draft = cast.draft("web", 2, run="sleep 60", service=wrong, fake={})
    assert rollouts.live_of(service.pk) is None
    services.apply(draft, actor="ann")
    stage.tick()
    assert versions(service) == [2, 2]
    rollout = rollouts.live_of(service.pk)
    assert rollout is not None
    assert (rollout.mode, rollout.best) == ("in_place", 0)  # what another probe said does not count
    rollouts.abort(service.pk, actor="ann")
    until(stage, service, RolloutState.SUCCEEDED)
    assert versions(service) == [3, 3]


@pytest.mark.parametrize("verb", ["pause", "resume", "abort"])
def test_a_decision_that_somebody_overtook_is_void(stage: Stage, verb: str) -> None:
    service = serving(stage)
    apply("sleep 61")
    world = observe(clock.now())
    (seen,) = world.services
    assert seen.rollout is not None
    if verb == "resume":
        rollouts.pause(service.pk, actor="ann")
    getattr(rollouts, verb)(service.pk, actor="ann")
    assert not rollouts.fail(seen.rollout.id, seen.rollout.revision, reason="late", actor="controller")


def test_rollouts_cost_one_query_however_many_there_are(stage: Stage) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            observe(clock.now())
        return len(captured)

    service = serving(stage)
    apply("sleep 61", canary=1)
    observe(clock.now())  # policies are read once
    few = queries()
    for run in ("sleep 62", "sleep 63", "sleep 64"):
        apply(run, canary=1)
    other = cast.service("other", 2, run="sleep 71")
    stage.settle(other)
    services.apply(cast.draft("other", 2, run="sleep 72"), actor="ann")
    observe(clock.now())
    assert queries() == few
    assert service.pk != other.pk


def test_after_a_success_what_is_not_needed_any_more_is_cleaned_up(stage: Stage) -> None:
    serving(stage)
    offered = len(stage.prunings)
    stage.tick()
    assert len(stage.prunings) == offered  # not for every tick
    service = apply("sleep 61")
    until(stage, service, RolloutState.SUCCEEDED)
    assert len(stage.prunings) == offered + 1
