"""The page of the system: which parts are at work, versions, settings without secrets, and the room that logs take."""

import logging
import math
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import fields
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlsplit

import django
from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from replicas import VERSION, clock
from replicas.actions import audit, pruning
from replicas.config import PREFIX, Config
from replicas.core.wording import some
from replicas.gateway.binary import find
from replicas.jobs import queue
from replicas.models import Event, Heartbeat, Operation, Replica, Service
from replicas.models.fields import ALIVE
from replicas.models.public import Row, stamp
from replicas.web.access import ADMINISTER, SEE, allowed, powers
from replicas.web.feed import feed_status, first_line
from replicas.web.forms import PruneForm
from replicas.web.health import check
from replicas.web.replies import done, invalid, refused

log = logging.getLogger(__name__)

ADDRESSES = {  # what Django and the queue read themselves
    "DATABASE_URL": "Where the rows are; empty: an SQLite file in the home.",
    "REDIS_URL": "Where jobs wait and processes hear of news at once; empty: both go by way of the database.",
}
SECRET = frozenset({"metrics_token"})
AUDITED = 30  # events that the page shows
ABOUT = {
    audit.CHANNEL: "channel",
    audit.PERSON: "user",
    audit.PRUNING: "history",
    audit.ROLE: "role",
    audit.TOKEN: "token",
}
FRESH_SECONDS = 10.0  # so long the sizes of logs are not looked at again


@allowed(SEE)
@never_cache
@require_safe
def system(request: HttpRequest) -> HttpResponse:
    """Health, versions, settings, logs."""
    can = powers(request)
    page = {
        "snapshot": state(),
        "url": reverse("system.json"),
        "disk_url": reverse("disk.json"),
        "count_url": reverse("prune.json"),
        "can": can,
    }
    context = {"versions": versions(), "settings": in_effect(), "days": f"{settings.ROLLCALL.prune_days:g}"}
    context["audited"] = audited() if can["administer"] else []
    return render(request, "system.html", {"page": page, "can": can, **context})


def audited() -> list[tuple[Event, str]]:
    """The newest events about the installation itself, each with what it is about."""
    rows = Event.objects.filter(kind__in=audit.KINDS).order_by("-pk")[:AUDITED]
    return [(event, f"{ABOUT[event.kind]} {event.data.get('name', '')}".strip()) for event in rows]


@allowed(SEE)
@never_cache
@require_safe
def system_json(request: HttpRequest) -> JsonResponse:
    """What of the page changes by itself."""
    return JsonResponse(state())


def state() -> Row:
    """`{now, parts, feed, counts}`: each part as `{name, ok, detail, host, pid}`, the feed's status, rows by kind.

    `counts` is None where the database does not answer.
    """
    now = clock.now(settings.ROLLCALL.run)
    parts = [{"name": name, **part, "host": "", "pid": None} for name, part in check(now).items()]
    counts = None
    try:
        beats = {row["name"]: row for row in Heartbeat.objects.values("name", "host", "pid")}
        for part in parts:
            beat = beats.get(str(part["name"]).removeprefix("pool "), {})
            part["host"], part["pid"] = beat.get("host", ""), beat.get("pid")
        counts = _counts()
    except DatabaseError as error:
        log.warning("the page of the system is shown without the database: %s", first_line(error))
    detail = {"name": "web", "ok": True, "detail": "it answers", "host": os.uname().nodename, "pid": os.getpid()}
    return {"now": stamp(now), "parts": [detail, *parts], "feed": feed_status(), "counts": counts}


def _counts() -> Row:
    newest = Event.objects.order_by("-pk").first()
    return {
        "services": Service.objects.count(),
        "replicas": Replica.objects.filter(ALIVE).count(),
        "operations": Operation.objects.filter(ALIVE).count(),
        "newest_event": None if newest is None else newest.pk,
        "newest_event_at": stamp(newest.at) if newest else None,
    }


def versions() -> list[tuple[str, str]]:
    """What runs here, name and version."""
    gateway = find(os.environ)
    return [
        ("Rollcall", VERSION),
        ("Python", platform.python_version()),
        ("Django", django.get_version()),
        ("HAProxy", haproxy(gateway.path) if gateway.path else "not there"),
        ("Database", database()),
        ("System", f"{platform.system()} {platform.release()}"),
    ]


@lru_cache(maxsize=4)
def haproxy(path: str) -> str:
    """The version that the binary tells of itself."""
    try:
        told = subprocess.run([path, "-v"], capture_output=True, text=True, timeout=5, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        return f"does not say: {error}"
    words = told.split()
    return words[2].split("-")[0] if len(words) > 2 else "does not say"


def database() -> str:
    """SQLite 3.40.1, say."""
    try:
        number = ".".join(map(str, connection.get_database_version()))
    except DatabaseError as error:
        return f"does not answer: {first_line(error)}"
    return f"{connection.display_name} {number}"


def in_effect() -> list[Row]:
    """Each setting: `{name, value, default, help, changed}`. Of a secret, only whether it is set."""
    config: Config = settings.ROLLCALL
    rows = [
        {"name": f"{PREFIX}HOME", "value": str(config.home), "help": "What this installation writes.", "changed": False}
    ]
    for each in fields(config):
        if each.name == "home":
            continue
        value = getattr(config, each.name)
        rows.append(
            {
                "name": PREFIX + each.name.upper(),
                "value": ("set" if value else "not set") if each.name in SECRET else shown(value),
                "help": each.metadata["help"],
                "changed": value != each.default,
            }
        )
    for name, help in ADDRESSES.items():
        given = os.environ.get(name, "")
        rows.append({"name": name, "value": without_password(given), "help": help, "changed": bool(given)})
    return rows


def shown(value: object) -> str:
    """A value as one would write it into the environment."""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def without_password(address: str) -> str:
    """Scheme, host, port and path of an address: neither user nor password, nor options that may hold one."""
    if not address:
        return ""
    try:
        parts = urlsplit(address)
        where = f"{parts.hostname or ''}:{parts.port}" if parts.port else parts.hostname or ""
    except ValueError:
        return "set"
    return f"{parts.scheme}://{where}{parts.path}"


@allowed(SEE)
@never_cache
@require_safe
def disk_json(request: HttpRequest) -> JsonResponse:
    """`{free, total, folders: [{name, files, bytes}]}`: the room on the disk of the home, and what logs take of it."""
    home: Path = settings.ROLLCALL.home
    usage = shutil.disk_usage(home)
    return JsonResponse({"free": usage.free, "total": usage.total, "folders": _folders(str(home), _age_of_look())})


def _age_of_look() -> int:
    return int(time.monotonic() / FRESH_SECONDS)


@lru_cache(maxsize=1)
def _folders(home: str, _look: int) -> list[Row]:
    """The sizes of logs and of the database; `_look` changes when they are to be looked at again."""
    root = Path(home)
    places: dict[str, Iterator[Path]] = {
        "control plane": root.joinpath("logs").glob("*.log*"),
        "operations": root.joinpath("logs", "operations").glob("*.log*"),
        "replicas": root.joinpath("replicas").glob("*/*.log*"),
        "access logs": root.joinpath("logs", "access").glob("**/*"),
        "database": root.joinpath("db").glob("*"),
    }
    return [{"name": name, **_size(paths)} for name, paths in places.items()]


def _size(paths: Iterator[Path]) -> Row:
    files = total = 0
    for path in paths:
        try:
            total += path.lstat().st_size
        except FileNotFoundError:
            continue  # it has just been rotated or pruned away
        files += 1
    return {"files": files, "bytes": total}


@allowed(ADMINISTER)
@never_cache
@require_safe
def prune_json(request: HttpRequest) -> JsonResponse:
    """`{replicas, operations, events}`: how much `?days=` would remove."""
    form = PruneForm(request.GET)
    if not form.is_valid():
        return JsonResponse({"level": "error", "message": f"days: {' '.join(form.errors['days'])}"}, status=400)
    before = clock.now() - timedelta(days=form.cleaned_data["days"])
    found = pruning.count(before)
    return JsonResponse({"replicas": found.replicas, "operations": found.operations, "events": found.events})


@allowed(ADMINISTER)
@require_POST
def prune(request: HttpRequest) -> HttpResponse:
    """Have what is older than `days` removed, by a job: it may take a while."""
    form, to = PruneForm(request.POST), reverse("system")
    if not form.is_valid():
        return invalid(request, form, to=to)
    days = form.cleaned_data["days"]
    log.warning("pruning of what is older than %g days was asked for by %s", days, request.user.get_username())
    try:
        queue.offer_pruning(days)
    except queue.Away as error:
        return refused(request, f"Nothing was removed: {error}. Try again when it is back.", to=to, status=503)
    pruning.note(days, request.user.get_username())
    _folders.cache_clear()
    words = some(math.floor(days), "day") if days == math.floor(days) else f"{days:g} days"
    return done(request, f"What ended more than {words} ago is being removed, with its logs.", to=to)
