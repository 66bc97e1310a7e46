"""What the clerk writes for pages of many things: crowds of services, their addresses and traffic, signs of life."""

from datetime import timedelta

from replicas import clock
from replicas.actions import leases
from replicas.models import Heartbeat, Sample, Service
from replicas.web import intake
from tests.web import people


def throng(name: str, count: int) -> None:
    """Services without a replica, applied from one text: NAME-000 and on."""
    for number in range(count):
        intake.carry_out(intake.propose(people.text(f"{name}-{number:03}")), actor="ann")


def endpoint(name: str, address: str = "http://127.0.0.1:18123") -> str:
    """The service has this address."""
    Service.objects.filter(name=name).update(endpoint=address)
    return address


def sampled(name: str, requests: int, in_flight: float) -> None:
    """The gateway's figures of the last ten seconds."""
    service = Service.objects.get(name=name)
    Sample.objects.create(service=service, at=clock.now(), seconds=10, requests=requests, in_flight=in_flight)


def beat(part: str, ago: float = 0) -> None:
    """A sign of life of a part, `ago` seconds ago."""
    leases.beat(part)
    Heartbeat.objects.filter(name=part).update(at=clock.now() - timedelta(seconds=ago))


def lease(holder: str) -> None:
    """A controller holds the lease for an hour."""
    leases.acquire("controller", holder, 3600)
