"""The number of replicas follows what the gateway measured."""

from datetime import timedelta

import pytest

from replicas import clock
from replicas.actions import scaling as acts
from replicas.actions import services
from replicas.controller.scaling import Scaling
from replicas.models import Event, Sample, Service
from tests import cast

pytestmark = pytest.mark.django_db
POLICY = {"min_replicas": 1, "max_replicas": 9, "target_qps_per_replica": 2, "upscale_delay_seconds": 60}


def autoscaled(name: str = "web", target: int = 2, **policy: object) -> Service:
    return cast.service(
        name, target=target, service={"readiness_probe": {"path": "/"}, "replica_policy": POLICY | policy}
    )


def measured(service: Service, seconds: int, requests: int, ago: int = 0, **more: float) -> None:
    now = clock.now() - timedelta(seconds=ago)
    Sample.objects.bulk_create(
        Sample(
            service=service, at=now - timedelta(seconds=back), seconds=1.0, requests=requests, codes=[0] * 5, **more
        )
        for back in range(seconds - 1, -1, -1)
    )


def target(service: Service) -> int:
    service.refresh_from_db()
    return service.target


def test_a_load_that_lasts_moves_the_target_and_says_why() -> None:
    service = autoscaled()
    measured(service, 200, requests=7)
    assert Scaling().tick()
    assert target(service) == 4
    event = Event.objects.filter(kind="decision").get()
    assert event.reason == "from 2 to 4 replicas: requests per second asked for more in most of the last 60 s"
    assert event.data["inputs"]["qps"] == 7.0
    assert (event.actor, event.data["from"], event.data["target"]) == ("autoscaler", 2, 4)


def test_a_restarted_controller_goes_on_where_it_was() -> None:
    service = autoscaled()
    measured(service, 200, requests=16)
    assert Scaling().tick()
    assert target(service) == 8
    assert service.scaling["panic_until"]
    assert not Scaling().tick()
    assert target(service) == 8


def test_new_samples_are_read_as_they_come() -> None:
    service = autoscaled()
    scaling = Scaling(every=0)
    measured(service, 100, requests=2, ago=10)
    assert not scaling.tick()
    measured(service, 10, requests=16)
    assert scaling.tick()
    assert target(service) == 8


def test_an_update_keeps_what_the_load_asked_for() -> None:
    service = autoscaled(target=6)
    services.apply(
        cast.draft("web", 6, service={"readiness_probe": {"path": "/"}, "replica_policy": POLICY | {"max_replicas": 5}}),
        actor="ann",
    )
    measured(service, 30, requests=10)
    Scaling().tick()
    assert target(service) == 5


def test_a_number_fixed_by_hand_is_left_alone() -> None:
    service = autoscaled()
    acts.scale(service.pk, 3, actor="ann")
    measured(service, 200, requests=16)
    assert not Scaling().tick()
    assert target(service) == 3


def test_a_held_request_wakes_one_from_zero() -> None:
    service = autoscaled(target=0, min_replicas=0)
    measured(service, 30, requests=0)
    assert not Scaling().tick()
    measured(service, 1, requests=0, held=1)
    assert Scaling().tick()
    assert target(service) == 1


def test_a_fixed_number_costs_one_query_however_many_services(django_assert_num_queries: object) -> None:
    for number in range(5):
        cast.service(f"fixed-{number}")
    Scaling().tick()
    with django_assert_num_queries(1):  # type: ignore[operator]
        Scaling().tick()
