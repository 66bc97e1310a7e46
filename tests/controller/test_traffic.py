"""What the controller takes for in flight while it cannot ask HAProxy."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from replicas import clock
from replicas.actions import replicas
from replicas.controller.observe import observe
from replicas.controller.traffic import Traffic
from replicas.core.planner import plan
from replicas.jobs.probing import newest_event
from replicas.models import Replica, Service
from tests import cast

pytestmark = pytest.mark.django_db


@pytest.fixture
def traffic(home: Path, settings: Any) -> Iterator[Traffic]:
    """That of a controller which has just begun, with an HAProxy that is away."""
    made = Traffic.of(dataclasses.replace(settings.ROLLCALL, gateway=True))
    assert made.plane is not None, made.why
    yield made
    made.close()


def draining(url: str = "http://127.0.0.1:9") -> Service:
    """A service whose one replica is on its way out of traffic."""
    service = cast.service(provider="local")
    replica = cast.ready(service)
    Replica.objects.filter(pk=replica.pk).update(url=url)
    assert replicas.retire(replica.pk, "drain_begun", reason="fewer are wanted", actor="controller")
    return service


def doing(traffic: Traffic, service: Service) -> list[str]:
    """What is planned for the replica."""
    world = observe(clock.now())
    (view,) = (each for each in world.services if each.id == service.pk)
    made = plan(view, traffic.measured(service.pk, world.replicas[service.pk]), clock.now())
    return [type(action).__name__ for action in made.actions]


def test_nobody_is_out_of_traffic_before_haproxy_was_asked(traffic: Traffic) -> None:
    """Neither at the first tick nor while HAProxy is away: it may come back with a file in which the replica serves."""
    service = draining()
    assert "Drained" not in doing(traffic, service)
    traffic.follow(newest_event())
    assert (traffic.served, traffic.leaving.keys()) == (False, {Replica.objects.get().pk})
    assert "Drained" not in doing(traffic, service)


def test_a_replica_that_nobody_can_ask_goes_at_once(traffic: Traffic) -> None:
    service = draining("fake://r1")
    traffic.follow(newest_event())
    assert "Drained" in doing(traffic, service)
