"""Whether every part of the control plane is at work: for `/readyz` and for the page of the system."""

import os
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection

from replicas import clock
from replicas.gateway.binary import OFF, find
from replicas.models import Heartbeat, Lease
from replicas.web.feed import feed_status

# Later than this, a part does not count as at work; the supervisor replaces it at about the same time.
LATE = timedelta(seconds=8)


def check(now: datetime) -> dict[str, dict[str, Any]]:
    """Each part of the control plane with whether it is at work, and a sentence on it."""
    try:
        beats = dict(Heartbeat.objects.filter(name__in=["long", "short", "controller"]).values_list("name", "at"))
        lease = Lease.objects.filter(name="controller").first()
    except DatabaseError as error:
        reason = str(error).strip().splitlines()[0]
        down = {"ok": False, "detail": "not known without the database"}
        return {
            "database": {"ok": False, "detail": f"does not answer: {reason}"},
            "pool long": down,
            "pool short": down,
            "controller": down,
            "feed": feed(),
        }
    return {
        "database": {"ok": True, "detail": connection.vendor},
        "pool long": beat_of(beats.get("long"), now),
        "pool short": beat_of(beats.get("short"), now),
        "controller": controller(beats.get("controller"), lease, now),
        "gateway": gateway(),
        "feed": feed(),
    }


def gateway() -> dict[str, Any]:
    """Whether HAProxy serves what it should; fine, with the reason, where there is to be no gateway."""
    config = settings.ROLLCALL
    found = find(os.environ)
    if not config.gateway or not found.path:
        return {"ok": True, "detail": f"services have no endpoint: {found.why if config.gateway else OFF}"}
    try:
        age = max(clock.now(config.run).timestamp() - os.stat(config.run / "beat-gateway").st_mtime, 0.0)
    except OSError:
        return {"ok": False, "detail": "not heard of yet"}
    return {"ok": age <= LATE.total_seconds(), "detail": f"HAProxy answered {age:.1f} s ago"}


def beat_of(at: datetime | None, now: datetime) -> dict[str, Any]:
    """Whether a part was heard of lately."""
    if at is None:
        return {"ok": False, "detail": "not heard of yet"}
    age = max((now - at).total_seconds(), 0.0)
    return {"ok": age <= LATE.total_seconds(), "detail": f"last heard of {age:.1f} s ago"}


def controller(at: datetime | None, lease: Lease | None, now: datetime) -> dict[str, Any]:
    """Whether some controller holds the lease and was heard of lately."""
    found = beat_of(at, now)
    if lease is None or not lease.holder or lease.expires_at is None or lease.expires_at < now:
        return {"ok": False, "detail": f"nobody holds the lease; {found['detail']}"}
    return {"ok": found["ok"], "detail": f"{lease.holder} holds the lease; {found['detail']}"}


def feed() -> dict[str, Any]:
    """Whether this web process sees new events and hands them to its sockets."""
    found = feed_status()
    if found["lag_seconds"] is None:
        return {"ok": False, "detail": "not started yet"}
    detail = f"read up to event {found['cursor']}, {found['lag_seconds']:.1f} s ago; {found['sockets']} sockets"
    return {"ok": bool(found["ok"]), "detail": detail}
