"""What machine a replica is to have and what it got: ordered, launched, shown, and what follows from it."""

from collections import Counter
from typing import Any

import pytest

from replicas.actions import services
from replicas.controller import serving
from replicas.controller.scaling import capacities, told_by
from replicas.core.status import ServiceStatus
from replicas.core.values import LIVE
from replicas.models import Event, Replica, Service
from replicas.models.public import replica_row
from replicas.providers.base import ProviderError
from replicas.providers.fake import FakeProvider
from tests import cast
from tests.controller.stage import Stage

pytestmark = pytest.mark.django_db(transaction=True)
PROBE = {"readiness_probe": {"path": "/"}}


def mixed(target: int, fake: dict[str, Any] | None = None, **policy: Any) -> Service:
    policy = {"min_replicas": target, "base_ondemand_fallback_replicas": 1} | policy
    service = PROBE | {"replica_policy": policy}
    return cast.service(target=target, service=service, resources={"use_spot": True}, fake=fake or {})


def kinds(*states: str) -> Counter[bool]:
    return Counter(Replica.objects.filter(state__in=states or LIVE).values_list("spot", flat=True))


def preempt(stage: Stage, number: int) -> None:
    """Take its machine back; the controller sees it when it asks next."""
    FakeProvider(stage.loop.config.home).preempt(Replica.objects.get(number=number).uid)
    stage.loop.watch.asked.clear()


def test_the_mix_is_launched_shown_and_kept_through_preemptions(stage: Stage) -> None:
    service = mixed(3, dynamic_ondemand_fallback=True)
    stage.tick()
    assert kinds() == {True: 2, False: 3}, "two stand in until the spot ones are ready"
    stage.settle(service)
    assert kinds("READY") == {True: 2, False: 1}
    rows = {row.number: replica_row(row) for row in Replica.objects.all()}
    lost = next(number for number, row in rows.items() if row["spot"] and row["state"] == "READY")
    preempt(stage, lost)
    stage.tick()
    service.refresh_from_db()
    assert service.status == ServiceStatus.READY
    assert "1 on-demand replica stands in for spot replicas that are missing" in service.reason
    assert kinds("PENDING")[False] == 1
    stage.settle(service)
    assert Replica.objects.get(number=lost).state == "PREEMPTED"
    assert kinds("READY") == {True: 2, False: 1}
    heir = Replica.objects.get(replaces=lost)
    assert (heir.spot, heir.state) == (True, "READY")
    told = Event.objects.filter(kind="replica", number=heir.number, trigger="created").get()
    assert (told.data["spot"], told.reason) == (True, f"replaces replica {lost}, which was preempted")


def test_while_spot_is_sold_out_others_serve(stage: Stage) -> None:
    service = mixed(2, {"sold_out": ["spot"]}, dynamic_ondemand_fallback=True)
    for _ in range(6):
        stage.tick()
        stage.deliver()
        stage.probe()
    stage.tick()
    service.refresh_from_db()
    assert (service.status, service.ready) == (ServiceStatus.READY, 2)
    assert kinds("READY") == {False: 2}
    (waits,) = Replica.objects.get(spot=True).operations.values_list("waits_for", flat=True)
    assert "spot sold out" in waits


def test_a_restarted_controller_keeps_the_mix(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    service = mixed(3)
    stage.settle(service)
    before = list(Replica.objects.order_by("number").values_list("number", "state", "spot"))
    stage.close()
    other = Stage(monkeypatch)
    try:
        other.settle(service)
    finally:
        other.close()
    assert list(Replica.objects.order_by("number").values_list("number", "state", "spot")) == before


def test_spot_goes_elsewhere_after_a_preemption_also_with_a_new_version_and_controller(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = ["aws/a", "gcp/b", "aws/c"]
    service = PROBE | {"replica_policy": {"min_replicas": 1, "spot_placer": "dynamic_fallback"}}
    resources = {"use_spot": True, "any_of": [{"infra": place} for place in places]}
    web = cast.service(service=service, resources=resources)
    stage.settle(web)
    assert places_of("READY") == ["aws/a"]
    preempt(stage, 1)
    stage.settle(web)
    assert places_of("READY") == ["gcp/b"]
    stage.close()
    other = Stage(monkeypatch)
    try:
        services.apply(cast.draft("web", 1, service=service, resources=resources, envs={"A": "b"}), actor="ann")
        other.settle(web)
        assert places_of("READY") == ["aws/c"], "the first was taken back, the second is in use by the old version"
    finally:
        other.close()


def places_of(state: str) -> list[str]:
    return list(Replica.objects.filter(state=state).values_list("place", flat=True))


def test_one_on_demand_is_never_taken_back(stage: Stage) -> None:
    stage.settle(mixed(1, {"preempt_after_seconds": 0}))
    (replica,) = Replica.objects.all()
    assert (replica.spot, replica.state) == (False, "READY")
    with pytest.raises(ProviderError, match="on demand"):
        preempt(stage, replica.number)


def test_what_a_replica_got_is_its_weight_and_its_capacity(stage: Stage) -> None:
    """The third of these finds its first choice sold out and takes the next of any_of."""
    rates = {"A100": 10, "L4": 2.5}
    service = cast.service(
        target=3,
        service=PROBE
        | {
            "load_balancing_policy": "instance_aware_least_load",
            "replica_policy": {"min_replicas": 3, "max_replicas": 9, "target_qps_per_replica": rates},
        },
        resources={"any_of": [{"accelerators": "A100:1"}, {"accelerators": {"L4": 1}}]},
        fake={"replicas": {"3": {"sold_out": ["A100:1"]}}},
    )
    stage.settle(service)
    rows = [replica_row(row) for row in Replica.objects.order_by("number")]
    assert [row["accelerators"] for row in rows] == ["A100:1", "A100:1", "L4:1"]
    Replica.objects.update(url="http://127.0.0.1:20001")  # what HAProxy could reach
    assert {seat.name: seat.member.weight for seat in serving.seats([service.pk])} == {"r1": 256, "r2": 256, "r3": 64}
    assert service.version is not None
    told = told_by(service.version.uid)
    assert told is not None
    assert capacities(service.pk, told) == ("A100:1", "A100:1", "L4:1")


def test_nothing_to_be_had_fails_the_launch_with_its_reason(stage: Stage) -> None:
    service = cast.service(resources={"accelerators": "A100:8"}, fake={"sold_out": ["A100:8"]}, service=PROBE)
    stage.tick()
    stage.deliver()
    (replica,) = service.replicas.all()
    assert "A100:8 sold out" in replica.operations.get().waits_for
