"""The clock of decisions is set anew, an hour ahead or an hour back, as over a restart of the machine: nothing that
runs is ended for it, and nothing waits for an hour."""

from datetime import timedelta

import pytest
from django.conf import settings

from replicas import clock
from replicas.actions import leases, operations
from replicas.controller.apply import Applier
from replicas.controller.loop import LEASE
from replicas.core.backoff import CLOCK_STEP, LONGEST_WAIT
from replicas.core.values import OperationStatus
from replicas.models import Lease, Operation, Replica, Service
from replicas.providers import registry
from tests import cast
from tests.controller.stage import Stage

HOUR = 3600.0
JUMPS = pytest.mark.parametrize("jump", [HOUR, -HOUR], ids=["ahead", "back"])


@pytest.fixture(autouse=True)
def own_clock(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that the test may set."""
    monkeypatch.setitem(clock._anchors, settings.ROLLCALL.run, clock.anchor(settings.ROLLCALL.run / "clock.json"))


def set_clock(seconds: float) -> None:
    """Set it ahead, or back, by so much."""
    clock._anchors[settings.ROLLCALL.run] += seconds


def restart(stage: Stage, seconds: float) -> None:
    """Set the clock, and have the controller come back."""
    set_clock(seconds)
    fence = stage.loop.acquire()
    assert fence is not None
    stage.applier = Applier(LEASE, stage.loop.holder, fence)


def numbers(service: Service) -> list[tuple[int, str]]:
    return list(Replica.objects.filter(service=service).order_by("number").values_list("number", "state"))


@JUMPS
def test_what_is_ready_stays_and_a_dead_one_is_replaced(stage: Stage, jump: float) -> None:
    service = cast.service(target=2)
    stage.settle(service)
    restart(stage, jump)
    for _ in range(3):
        stage.tick()
        stage.probe()
    assert numbers(service) == [(1, "READY"), (2, "READY")]
    registry.get("fake", settings.ROLLCALL.home).end(Replica.objects.get(number=1).uid, 1)  # type: ignore[attr-defined]
    stage.loop.watch.inspect_seconds = 0
    stage.settle(service)
    assert numbers(service) == [(1, "FAILED"), (2, "READY"), (3, "READY")]


@JUMPS
@pytest.mark.parametrize("seconds", [0.5, 299.0])
def test_an_operation_that_waits_goes_on(stage: Stage, jump: float, seconds: float) -> None:
    """Be it made long before the clock was set, so that only the moment of its next step lies in the future."""
    operation = cast.operation_of(cast.pending(cast.service()))
    Operation.objects.filter(pk=operation.pk).update(created_at=clock.now() - timedelta(hours=3))
    claimed = operations.claim(operation.pk, cast.WORKER)
    assert claimed is not None
    assert operations.wait(
        claimed, checkpoint={}, reason="setup to be done", seconds=seconds, watch=None, usage=operations.Usage()
    )
    restart(stage, jump)
    stage.tick()
    assert [number for _, number in stage.offered] == [operation.pk]
    stage.tick()
    assert len(stage.offered) == 1  # it is not offered again at every tick
    assert stage.deliver() == 1
    operation.refresh_from_db()
    assert operation.status == OperationStatus.SUCCEEDED


def test_a_wait_that_is_just_long_is_kept(stage: Stage) -> None:
    operation = cast.operation_of(cast.pending(cast.service()))
    claimed = operations.claim(operation.pk, cast.WORKER)
    assert claimed is not None
    operations.wait(claimed, checkpoint={}, reason="later", seconds=1e6, watch=None, usage=operations.Usage())
    operation.refresh_from_db()
    assert operation.retry_at is not None
    assert operation.retry_at <= clock.now() + LONGEST_WAIT
    set_clock(-CLOCK_STEP.total_seconds() + 1)
    stage.tick()
    assert (stage.offered, operations.claim(operation.pk, cast.WORKER)) == ([], None)


@JUMPS
def test_a_lease_of_a_holder_that_is_gone_is_free(stage: Stage, jump: float) -> None:
    """Another process may have the pid of its holder after a restart of the machine."""
    assert leases.acquire("probe-0", "someone", 3) is not None
    assert leases.acquire("probe-0", "another", 3) is None
    assert leases.free(["probe-0"]) == []
    set_clock(jump)
    assert leases.free(["probe-0"]) == ["probe-0"]
    assert leases.acquire("probe-0", "another", 3) is not None
    assert Lease.objects.get(name="probe-0").holder == "another"


def test_who_holds_a_lease_while_the_clock_is_set_back_holds_it_on(stage: Stage) -> None:
    fence = leases.acquire("probe-0", "someone", 3)
    assert fence is not None
    set_clock(-HOUR)
    assert leases.acquire("probe-0", "someone", 3) is not None
    assert Lease.objects.get(name="probe-0").expires_at < clock.now() + timedelta(seconds=4)  # type: ignore[operator]
