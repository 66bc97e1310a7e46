"""What the clerk writes for pages of many things: crowds of services, their addresses and traffic, signs of life."""

import os
import time
from datetime import timedelta

from django.contrib.auth.models import User

from replicas import clock
from replicas.actions import leases, notices, replicas, services
from replicas.core.values import NoticeKind, ServiceStatus
from replicas.models import Heartbeat, Notice, Replica, Sample, Service
from replicas.providers import procs
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


def give(name: str, owner: str) -> None:
    """Let the service belong to a user, who is made for it."""
    user, _ = User.objects.get_or_create(username=owner)
    services.give(Service.objects.get(name=name).pk, user, actor="ann")


def tried(channel: str, error: str) -> None:
    """What the job of notices does with the oldest one that waits for the channel: it was sent, or not."""
    waiting = Notice.objects.filter(channel__name=channel, state="QUEUED").order_by("id")
    claimed = notices.claim(waiting.first().pk)
    assert claimed is not None
    notices.settle(claimed, error)


def troubled(name: str, channel: str, text: str) -> None:
    """A channel for the service, and a notice about it that waits."""
    service = Service.objects.get(name=name)
    notices.add(
        channel, NoticeKind.WEBHOOK, "https://x/", text[:300], service=service, occasions=notices.ALL, actor=text[:150]
    )
    services.report(service.pk, status=ServiceStatus.FAILED, reason=text, ready=0, live=0, actor="controller")
    notices.digest(clock.now() + timedelta(hours=1))


def flicker(name: str, changes: int, pace: float) -> float:
    """`changes` of state, one replica after the other, `pace` seconds apart; how many that were in a second."""
    crowd = list(Replica.objects.filter(service__name=name).order_by("number").values_list("pk", flat=True))
    began = time.monotonic()
    for turn in range(changes):
        ok = turn // len(crowd) % 2 == 1
        facts = {"probe_at": clock.now(), "probe_ok": ok, "probe_detail": "GET /: 200" if ok else "GET /: 503"}
        trigger = "probe_passed" if ok else "probe_failed"
        assert replicas.observe(crowd[turn % len(crowd)], trigger, reason=facts["probe_detail"], actor="job", **facts)
        time.sleep(max(0.0, began + (turn + 1) * pace - time.monotonic()))  # the pace is what is asked for
    return changes / (time.monotonic() - began)


def inhabit(name: str, number: int) -> None:
    """Let the processes that the caller has started be those of the replica."""
    shim = procs.identify(os.getppid())
    assert shim is not None
    handle = {"shim_pid": shim.pid, "shim_start": shim.start}
    Replica.objects.filter(service__name=name, number=number).update(provider="local", handle=handle)


DOORS = (beat, endpoint, flicker, give, inhabit, lease, sampled, throng, tried, troubled)
