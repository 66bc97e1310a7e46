"""The controller over real rows and a scripted provider: it reaches what is wanted, whatever the queue does."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext

from replicas import clock
from replicas.actions import leases, operations, replicas, services
from replicas.controller.apply import Applier, Deposed
from replicas.controller.loop import LEASE, Loop
from replicas.controller.observe import observe
from replicas.controller.rest import rest_after
from replicas.core.values import LIVE, OperationStatus
from replicas.models import Event, Operation, Replica, Service
from replicas.providers import registry
from tests import cast
from tests.controller.stage import Stage, shuffled


def states(service: Service) -> list[str]:
    return list(Replica.objects.filter(service=service).order_by("number").values_list("state", flat=True))


def live(service: Service) -> int:
    return Replica.objects.filter(service=service, state__in=LIVE).count()


def test_it_brings_up_what_is_wanted_and_then_does_nothing(stage: Stage) -> None:
    service = cast.service(target=3)
    stage.settle(service)
    stage.tick()
    count = Event.objects.count()
    stage.tick()
    assert states(service) == ["READY"] * 3
    assert (Event.objects.count(), stage.offered) == (count, [])
    service.refresh_from_db()
    assert (service.status, service.reason, service.ready) == ("READY", "3 of 3 ready", 3)


@pytest.mark.parametrize("seed", range(6))
def test_deliveries_twice_late_and_never_are_harmless(stage: Stage, seed: int) -> None:
    chance = shuffled(seed)
    service = cast.service(target=4, fake={"launch_seconds": 0, "down_steps": 1})
    late = []
    for _ in range(40):
        stage.tick()
        kept = []
        for offer in stage.offered:
            fate = chance.choice(["once", "twice", "late", "never"])
            if fate == "late":
                late.append(offer)
            elif fate != "never":
                kept += [offer] * (2 if fate == "twice" else 1)
        stage.offered = kept
        stage.deliver()
        if chance.random() < 0.3:
            stage.offered, late = late, []
            stage.deliver()
        # What was offered and never delivered is offered again once its time has come.
        long_ago = clock.now() - timedelta(hours=1)
        Operation.objects.filter(ended_at=None, enqueued_at__isnull=False).update(enqueued_at=long_ago)
        assert live(service) <= 4
        stage.probe()
    assert states(service) == ["READY"] * 4
    numbers = Operation.objects.filter(kind="LAUNCH").count()
    assert numbers == 4


def test_a_failed_replica_is_replaced_once_it_is_gone(stage: Stage) -> None:
    service = cast.service(target=2)
    stage.settle(service)
    victim = Replica.objects.get(number=1)
    registry.get("fake", settings.ROLLCALL.home).end(victim.uid, 137)  # type: ignore[attr-defined]
    stage.loop.watch.inspect_seconds = 0
    stage.settle(service)
    victim.refresh_from_db()
    assert (victim.state, victim.outcome) == ("FAILED", "FAILED")
    newest = Replica.objects.get(number=3)
    assert (newest.state, newest.replaces, newest.restarts) == ("READY", 1, 1)


def test_a_version_that_is_never_ready_is_given_up_and_says_so(stage: Stage) -> None:
    service = cast.service(
        target=1, fake={"setup_fails": "no such package"}, service={"restart": {"backoff_seconds": 0}}
    )
    for _ in range(30):
        stage.tick()
        stage.deliver()
    service.refresh_from_db()
    assert service.status == "FAILED"
    assert "no such package" in service.reason
    assert "Launches have stopped" in service.reason
    assert Replica.objects.filter(service=service).count() == 5
    assert set(states(service)) == {"FAILED"}
    assert Replica.objects.filter(last_lines=["no such package"]).count() == 5


def test_a_launch_that_fails_for_a_while_is_tried_again_on_its_row(stage: Stage) -> None:
    service = cast.service(target=1, fake={"fail_launch": "no room", "fail_times": 2})
    for _ in range(10):
        stage.tick()
        stage.deliver()
        Operation.objects.filter(status="WAITING").update(retry_at=clock.now())
    operation = Operation.objects.get(kind="LAUNCH")
    assert (operation.status, operation.attempts) == ("SUCCEEDED", 3)
    text = Path(operation.log).read_text()
    assert text.count("no room") == 2
    assert live(service) == 1


def test_a_launch_that_always_fails_ends_as_failed_provision_with_its_reason(stage: Stage) -> None:
    cast.service(target=1, fake={"fail_launch": "no room"})
    for _ in range(12):
        stage.tick()
        stage.deliver()
        Operation.objects.filter(status="WAITING").update(retry_at=clock.now())
    first = Replica.objects.get(number=1)
    assert (first.state, first.reason) == ("FAILED_PROVISION", "no room")


@pytest.mark.parametrize("deliveries", range(5))
def test_cancelling_in_every_phase_of_a_launch_ends_with_nothing_alive(stage: Stage, deliveries: int) -> None:
    service = cast.service(target=1, fake={"launch_seconds": 0.05, "down_steps": 2})
    for _ in range(deliveries):
        stage.tick()
        stage.deliver()
    services.take_down(service.pk, purge=False, actor="ann")
    for _ in range(40):
        stage.tick()
        stage.deliver()
        Operation.objects.filter(status="WAITING").update(retry_at=clock.now())
    assert live(service) == 0
    assert set(states(service)) <= {"TERMINATED"}
    assert not Operation.objects.filter(ended_at=None).exists()
    assert not list((settings.ROLLCALL.home / "fake").glob("*.json"))
    service.refresh_from_db()
    assert (service.status, service.live) == ("DOWN", 0)


def test_a_restart_at_version_three_with_everything_ready_does_nothing(stage: Stage) -> None:
    """Reported of SkyServe: it scaled up again after a restart, and ids began at 1."""
    service = cast.service(target=3)
    for run in ("sleep 61", "sleep 62"):
        services.apply(cast.draft("web", 3, run=run), actor="ann")
    stage.settle(service)
    stage.tick()
    count = Event.objects.count()
    leases.release(LEASE, stage.loop.holder)
    second = Loop()
    fence = second.acquire()
    assert fence is not None
    second.tick(Applier(LEASE, second.holder, fence))
    second.watch.close()
    second.bell.close()
    assert Event.objects.count() == count
    assert [r.version_number for r in Replica.objects.filter(state="READY")] == [3, 3, 3]


def test_two_controllers_one_owner_and_the_other_waits(stage: Stage) -> None:
    other = Loop()
    assert other.acquire() is None
    service = cast.service(target=2)
    stage.tick()
    with pytest.raises(Deposed):
        Applier(LEASE, other.holder, stage.applier.fence).check()
    leases.release(LEASE, stage.loop.holder)
    fence = other.acquire()
    assert fence == stage.applier.fence + 1
    with pytest.raises(Deposed):
        stage.applier.apply(service.pk, ())
        stage.applier.check()
    other.watch.close()
    other.bell.close()


def test_a_dead_controller_on_this_host_is_not_waited_for(stage: Stage) -> None:
    from replicas.models import Lease

    Lease.objects.filter(name=LEASE).update(holder="gone", pid=2**22 - 3)
    other = Loop()
    assert other.acquire() is not None
    other.watch.close()
    other.bell.close()


def test_a_long_tick_does_not_cost_the_lease() -> None:
    """It rests longer the more it has done, and keeps the lease before and after, not meanwhile."""
    assert rest_after(0.1) == pytest.approx(0.2)
    assert rest_after(60) <= settings.ROLLCALL.lease_seconds / 3


def test_who_has_lost_the_lease_does_not_go_on_to_say_what_thousands_wait_for(stage: Stage) -> None:
    cast.service(target=1)
    stage.tick()
    [number] = Operation.objects.values_list("pk", flat=True)
    stage.loop.next.pop("renew")
    stage.loop.say_holds([(number, "its turn")], stage.applier)
    assert Operation.objects.get(pk=number).waits_for == "its turn"
    leases.release(LEASE, stage.loop.holder)
    assert leases.acquire(LEASE, "another", 60)
    stage.loop.next.pop("renew")
    with pytest.raises(Deposed):
        stage.loop.say_holds([(number, "a free port")], stage.applier)
    assert Operation.objects.get(pk=number).waits_for == "its turn"


def test_in_flight_launches_are_bounded_and_the_rest_says_what_it_waits_for(stage: Stage) -> None:
    service = cast.service(target=40)
    stage.tick()
    assert len(stage.offered) == settings.ROLLCALL.max_launches_per_service
    held = Operation.objects.filter(service=service, waits_for__contains="in flight")
    assert held.count() == 40 - settings.ROLLCALL.max_launches_per_service
    stage.settle(service)
    assert states(service) == ["READY"] * 40


def test_terminate_replaces_and_down_ends(stage: Stage) -> None:
    service = cast.service(target=2)
    stage.settle(service)
    replicas.want_gone(service.pk, 1, purge=False, actor="ann")
    stage.settle(service)
    assert states(service) == ["TERMINATED", "READY", "READY"]
    services.take_down(service.pk, purge=False, actor="ann")
    stage.settle(service)
    assert states(service) == ["TERMINATED"] * 3


def test_purging_forgets_replica_and_service(stage: Stage) -> None:
    service = cast.service(target=2)
    stage.settle(service)
    replicas.want_gone(service.pk, 1, purge=True, actor="ann")
    stage.settle(service)
    assert not Replica.objects.filter(service=service, number=1).exists()
    services.take_down(service.pk, purge=True, actor="ann")
    for _ in range(6):
        stage.tick()
        stage.deliver()
    assert not Service.objects.exists()


def test_a_down_that_fails_leaves_failed_cleanup_and_can_be_tried_again(stage: Stage) -> None:
    service = cast.service(target=1, fake={"fail_down": "device busy"})
    stage.settle(service)
    services.take_down(service.pk, purge=False, actor="ann")
    for _ in range(8):
        stage.tick()
        stage.deliver()
        Operation.objects.filter(status="WAITING").update(retry_at=clock.now())
    replica = Replica.objects.get()
    assert (replica.state, replica.outcome) == ("FAILED_CLEANUP", "TERMINATED")
    assert "device busy" in replica.reason
    service.refresh_from_db()
    assert service.status == "FAILED_CLEANUP"
    failed = Operation.objects.get(kind="DOWN")
    again = operations.request_retry(failed.pk, actor="ann")
    replica.refresh_from_db()
    assert replica.state == "FAILED_CLEANUP"
    assert again.status == OperationStatus.QUEUED


def test_a_worker_that_died_loses_its_operation_and_another_goes_on(stage: Stage) -> None:
    service = cast.service(target=1)
    stage.tick()
    (_, number), stage.offered = stage.offered[0], []
    here = stage.loop.holder.split(":")[0]
    assert operations.claim(number, operations.Owner(here, 2**22 - 5, 1)) is not None
    stage.settle(service)
    operation = Operation.objects.get(pk=number)
    assert (operation.status, operation.attempts) == ("SUCCEEDED", 1)
    assert Event.objects.filter(trigger="orphaned", reason__contains="died").count() == 1


def test_a_worker_of_another_host_that_is_silent_loses_its_operation(stage: Stage) -> None:
    service = cast.service(target=1)
    stage.tick()
    (_, number), stage.offered = stage.offered[0], []
    assert operations.claim(number, operations.Owner("elsewhere", 77, 1)) is not None
    stage.tick()
    assert Operation.objects.get(pk=number).status == "RUNNING"
    silent = clock.now() - timedelta(seconds=settings.ROLLCALL.stale_seconds + 1)
    Operation.objects.filter(pk=number).update(heartbeat_at=silent)
    stage.settle(service)
    assert Operation.objects.get(pk=number).status == "SUCCEEDED"


def test_a_step_that_kills_its_worker_every_time_gives_up(stage: Stage) -> None:
    cast.service(target=1)
    stage.tick()
    (_, number), stage.offered = stage.offered[0], []
    here = stage.loop.holder.split(":")[0]
    for attempt in range(5):
        assert operations.claim(number, operations.Owner(here, 2**22 - 5, attempt)) is not None
        stage.tick()
        stage.offered = []
    Operation.objects.filter(pk=number).update(enqueued_at=None)
    stage.tick()
    stage.deliver()
    operation = Operation.objects.get(pk=number)
    assert operation.status == "FAILED"
    assert "5 steps in a row were cut off" in operation.error


def test_the_number_of_queries_of_a_tick_does_not_grow(stage: Stage) -> None:
    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as seen:
            observe(clock.now())
        return len(seen)

    first = cast.service("one", 2)
    stage.settle(first)
    few = queries()
    second = cast.service("two", 12)
    stage.settle(second)
    assert queries() == few


def test_an_update_of_the_service_section_adopts_and_another_replaces(stage: Stage) -> None:
    service = cast.service(target=2)
    stage.settle(service)
    probe = {"readiness_probe": {"path": "/other"}, "replicas": 2}
    services.apply(cast.draft("web", 2, service=probe), actor="ann")
    stage.settle(service)
    assert list(Replica.objects.values_list("number", "version_number", "state").order_by("number")) == [
        (1, 2, "READY"),
        (2, 2, "READY"),
    ]
    services.apply(cast.draft("web", 2, run="sleep 99"), actor="ann")
    stage.settle(service)
    assert list(Replica.objects.filter(state="READY").values_list("version_number", flat=True)) == [3, 3]
    assert live(service) == 2


def test_nothing_is_read_again_while_nothing_can_have_changed(stage: Stage) -> None:
    service = cast.service(target=0)
    stage.settle(service)
    stage.loop.cursor = -1
    assert stage.loop.worth_a_look()
    assert not stage.loop.worth_a_look()
    services.scale(service.pk, 1, actor="ann")
    assert stage.loop.worth_a_look()
    stage.tick()
    assert stage.loop.worth_a_look()  # its own events, and a launch is under way
