"""Whether every part of the control plane is at work: for `/readyz` and for the page of the system."""

import os
import time
from datetime import datetime, timedelta
from typing import Any

import psutil
from django.conf import settings
from django.db import DatabaseError, connection

from replicas import clock
from replicas.core.wording import some
from replicas.gateway.binary import OFF, find
from replicas.models import Heartbeat, Lease
from replicas.web.feed import feed_status

# Later than this, a part does not count as at work; the supervisor replaces it at about the same time.
LATE = timedelta(seconds=8)
# A controller takes up to so long from the start of its process until the pools have answered it.
NEW_SECONDS = 20.0


def check(now: datetime) -> dict[str, dict[str, Any]]:
    """Each part of the control plane with `ok`, whether it is at work (None: nobody can tell), and a sentence on it."""
    try:
        beats = {row.name: row for row in Heartbeat.objects.filter(name__in=["long", "short", "controller"])}
        lease = Lease.objects.filter(name="controller").first()
    except DatabaseError as error:
        reason = str(error).strip().splitlines()[0]
        down = {"ok": None, "detail": "not known without the database"}
        return {
            "database": {"ok": False, "detail": f"does not answer: {reason}"},
            "pool long": down,
            "pool short": down,
            "controller": down,
            "feed": feed(),
        }
    return {
        "database": {"ok": True, "detail": connection.vendor},
        "pool long": pool(beats.get("long"), beats.get("controller"), now),
        "pool short": pool(beats.get("short"), beats.get("controller"), now),
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


def beat_of(beat: Heartbeat | None, now: datetime) -> dict[str, Any]:
    """Whether a part was heard of lately."""
    if beat is None:
        return {"ok": False, "detail": "not heard of yet"}
    age = max((now - beat.at).total_seconds(), 0.0)
    return {"ok": age <= LATE.total_seconds(), "detail": f"last heard of {age:.1f} s ago"}


def pool(beat: Heartbeat | None, asks: Heartbeat | None, now: datetime) -> dict[str, Any]:
    """Whether a pool was heard of lately. Its signs of life are answers to the controller, whose beat is `asks`.

    So the silence of a pool says nothing of it while there is no controller, nor while that has only just begun.
    """
    found = beat_of(beat, now)
    if found["ok"] or asks is None:
        return found
    if not beat_of(asks, now)["ok"]:
        return {"ok": None, "detail": f"{found['detail']}; not known while no controller asks it"}
    if is_new(asks):
        return {"ok": None, "detail": f"{found['detail']}; not known yet, as the controller has only just begun"}
    return found


def is_new(beat: Heartbeat) -> bool:
    """Whether the process of this host that gave the sign of life began a moment ago."""
    if beat.host != os.uname().nodename:
        return False
    try:
        return time.time() - psutil.Process(beat.pid).create_time() < NEW_SECONDS
    except psutil.Error:
        return False


def controller(beat: Heartbeat | None, lease: Lease | None, now: datetime) -> dict[str, Any]:
    """Whether some controller holds the lease and was heard of lately."""
    found = beat_of(beat, now)
    if lease is None or not lease.holder or lease.expires_at is None or lease.expires_at < now:
        return {"ok": False, "detail": f"nobody holds the lease; {found['detail']}"}
    return {"ok": found["ok"], "detail": f"{lease.holder} holds the lease; {found['detail']}"}


def feed() -> dict[str, Any]:
    """Whether this web process sees new events and hands them to its sockets."""
    found = feed_status()
    if found["lag_seconds"] is None:
        return {"ok": False, "detail": "not started yet"}
    detail = f"read up to event {found['cursor']}, {found['lag_seconds']:.1f} s ago; {some(found['sockets'], 'socket')}"
    return {"ok": bool(found["ok"]), "detail": detail}
