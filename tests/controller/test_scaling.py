"""The number of replicas follows what the gateway measured."""

from datetime import timedelta

import pytest
from django_q.models import OrmQ
from django_q.signing import SignedPackage

from replicas import clock
from replicas.actions import readings, services
from replicas.actions import scaling as acts
from replicas.controller.scaling import Scaling
from replicas.jobs import signals
from replicas.models import Event, Reading, Sample, Service
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
        Sample(service=service, at=now - timedelta(seconds=back), seconds=1.0, requests=requests, codes=[0] * 5, **more)
        for back in range(seconds - 1, -1, -1)
    )


def asked() -> list[tuple[str, tuple[int, ...]]]:
    """What was put into the queue: (function, arguments)."""
    loaded = [SignedPackage.loads(row.payload) for row in OrmQ.objects.order_by("id")]
    return [(task["func"], task["args"]) for task in loaded]


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
        cast.draft(
            "web", 6, service={"readiness_probe": {"path": "/"}, "replica_policy": POLICY | {"max_replicas": 5}}
        ),
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


def test_an_operators_own_number_is_read_and_moves_the_target() -> None:
    custom = {"command": "echo 40", "target_per_replica": 10, "interval_seconds": 5}
    service = autoscaled(target_qps_per_replica=None, custom_signal=custom)
    scaling = Scaling(every=0)
    scaling.tick()
    assert [task[1] for task in asked()] == [(service.pk,)]
    signals.run(service.pk)
    Reading.objects.update(at=clock.now() - timedelta(seconds=4))
    measured(service, 3, requests=0)
    assert scaling.tick()
    assert target(service) == 4
    assert Event.objects.filter(kind="decision").get().data["inputs"]["custom"] == 40.0


def test_a_number_that_is_too_old_does_not_count() -> None:
    custom = {"command": "echo 40", "target_per_replica": 10, "interval_seconds": 1}
    service = autoscaled(target_qps_per_replica=None, custom_signal=custom)
    signals.run(service.pk)
    Reading.objects.update(at=clock.now() - timedelta(seconds=60))
    measured(service, 3, requests=0)
    assert not Scaling().tick()
    assert target(service) == 2


def test_a_signal_that_falls_silent_is_told_once_and_when_it_is_back() -> None:
    service = autoscaled(custom_signal={"command": "echo 1", "target_per_replica": 10})
    for value, error in ((1.0, ""), (None, "no answer"), (None, "no answer"), (2.0, "")):
        readings.note(service.pk, value, error, actor="autoscaler")
    told = Event.objects.filter(trigger__startswith="signal_").order_by("id").values_list("trigger", "reason")
    assert list(told) == [
        ("signal_lost", "custom_signal: no answer; the target is held"),
        ("signal_back", "custom_signal gives numbers again"),
    ]


def test_without_news_nothing_is_looked_for(django_assert_num_queries: object) -> None:
    cast.service("fixed")
    scaling = Scaling(every=0)
    scaling.tick(7)
    with django_assert_num_queries(0):  # type: ignore[operator]
        scaling.tick(7)
    service = autoscaled()
    measured(service, 200, requests=7)
    assert scaling.tick(8)
    measured(service, 20, requests=16)
    assert scaling.tick(8)
    assert target(service) == 8


def test_a_fixed_number_costs_one_query_however_many_services(django_assert_num_queries: object) -> None:
    for number in range(5):
        cast.service(f"fixed-{number}")
    Scaling().tick()
    with django_assert_num_queries(1):  # type: ignore[operator]
        Scaling().tick()
