"""The number of replicas: by hand, by the autoscaler, left to it again."""

import pytest

from replicas.actions import scaling, services
from replicas.models import Event, Service
from tests import cast

pytestmark = pytest.mark.django_db
POLICY = {"min_replicas": 1, "max_replicas": 9, "target_qps_per_replica": 2}


def autoscaled(target: int = 2) -> Service:
    return cast.service("web", target=target, service={"readiness_probe": {"path": "/"}, "replica_policy": POLICY})


def decide(service: Service, target: int, base: int) -> bool:
    return scaling.autoscale(
        service.pk, target, base=base, reason="why", memory={"target": target}, inputs={"qps": 9.0}, actor="controller"
    )


def last(kind: str) -> Event:
    return Event.objects.filter(kind=kind).latest("id")


def test_a_decision_moves_the_target_and_keeps_what_it_was_made_from() -> None:
    service = autoscaled()
    assert decide(service, 5, 2)
    service.refresh_from_db()
    assert (service.target, service.scaling) == (5, {"target": 5})
    event = last("decision")
    assert (event.reason, event.data) == ("why", {"from": 2, "target": 5, "inputs": {"qps": 9.0}})
    assert last("service").trigger == "autoscaled"


def test_a_decision_from_another_target_is_void() -> None:
    service = autoscaled(4)
    assert not decide(service, 5, 2)
    service.refresh_from_db()
    assert service.target == 4


def test_a_number_set_by_hand_stays_until_it_is_released() -> None:
    service = autoscaled()
    assert scaling.scale(service.pk, 7, actor="ann")
    assert last("service").reason == "scaled from 2 to 7 by ann, and fixed there until that is released"
    assert not decide(service, 5, 7)
    assert scaling.release(service.pk, actor="ben")
    assert not scaling.release(service.pk, actor="ben")
    assert decide(service, 5, 7)
    service.refresh_from_db()
    assert (service.target, service.pinned) == (5, False)


def test_the_same_number_by_hand_fixes_it_too() -> None:
    service = autoscaled()
    scaling.scale(service.pk, 2, actor="ann")
    service.refresh_from_db()
    assert service.pinned


def test_where_the_number_is_fixed_by_the_spec_nothing_is_pinned() -> None:
    service = cast.service("fixed", target=2)
    scaling.scale(service.pk, 5, actor="ann")
    service.refresh_from_db()
    assert not service.pinned
    assert last("service").reason == "scaled from 2 to 5 by ann"


def test_a_service_that_is_taken_down_is_left_alone() -> None:
    service = autoscaled()
    services.take_down(service.pk, purge=False, actor="ann")
    assert not decide(service, 5, 2)
