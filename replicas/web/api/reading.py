"""What the API tells: services, versions, events, logs."""

from pathlib import Path
from typing import Any, Literal

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from ninja import Query

from replicas.actions.powers import SEE
from replicas.models import Event, Replica, Rollout, ServiceVersion
from replicas.models import Service as ServiceModel
from replicas.models.public import Row, replica_row, rollout_row, service_row, stamp, version_row
from replicas.web import logfile
from replicas.web.api import schemas
from replicas.web.api.door import plain, route, token_of, visible
from replicas.web.api.problems import Problem
from replicas.web.logrows import Key, place
from replicas.web.outbox import bounds, event_row, newest, of_services
from replicas.web.presenters import service_snapshot

VERSIONS_MOST = 100
EVENTS_USUAL, EVENTS_MOST = 100, 1000
LOG_USUAL, LOG_MOST = 256 << 10, 1 << 20


@route("GET", "/me", SEE, gives=schemas.Me)
def me(request: HttpRequest) -> Row:
    """Say who the token belongs to, and how far it reaches."""
    token = token_of(request)
    return {
        "user": token.owner.get_username(),
        "token": token.name,
        "scope": token.scope,
        "services": token.services,
        "expires_at": stamp(token.expires_at),
    }


@route("GET", "/services", SEE, gives=schemas.Services)
def list_services(request: HttpRequest, status: str | None = None, owner: str | None = None) -> Row:
    """List the services, all or those of a status or an owner."""
    at = newest()
    rows = visible(request, ServiceModel.objects.select_related("version", "owner"), "name")
    if status is not None:
        rows = rows.filter(status=status)
    if owner is not None:
        rows = rows.filter(owner__username=owner)
    return {"services": [service_row(service) for service in rows], "cursor": at}


@route("GET", "/services/{name}", SEE, gives=schemas.Service)
def get_service(request: HttpRequest, name: str) -> Row:
    """Give the state of a service, its latest rollout and its replicas."""
    return found_service(name)


def found_service(name: str) -> Row:
    """The snapshot that the dashboard has of it. Raises Problem."""
    snapshot = service_snapshot(name)
    if snapshot is None:
        raise Problem(404, "not_found", f"There is no service {name}.")
    return snapshot


@route("GET", "/services/{name}/versions", SEE, gives=schemas.Versions)
def list_versions(request: HttpRequest, name: str) -> Row:
    """List the newest versions of a service: who made each, when and why."""
    rows = ServiceVersion.objects.filter(service__name=name).defer("text", "sealed").order_by("-number")
    return {"versions": [version_row(version) for version in rows[:VERSIONS_MOST]]}


@route("GET", "/services/{name}/versions/{int:number}", SEE, gives=schemas.VersionText)
def get_version(request: HttpRequest, name: str, number: int) -> Row:
    """Give one version with its YAML."""
    version = ServiceVersion.objects.filter(service__name=name, number=number).first()
    if version is None:
        raise Problem(404, "not_found", f"Service {name} has no version {number}.")
    return version_row(version) | {"yaml": version.text}


@route("GET", "/services/{name}/replicas/{int:number}", SEE, gives=schemas.ReplicaRow)
def get_replica(request: HttpRequest, name: str, number: int) -> Row:
    """Give one replica, live or ended."""
    return replica_row(found_replica(name, number))


def found_replica(name: str, number: int) -> Replica:
    """The replica. Raises Problem."""
    replica = Replica.objects.select_related("service").filter(service__name=name, number=number).first()
    if replica is None:
        raise Problem(404, "not_found", f"Service {name} has no replica {number}; it may have been pruned.")
    return replica


@route("GET", "/events", SEE, gives=schemas.Events)
def list_events(
    request: HttpRequest,
    after: int | None = Query(None, ge=0, le=2**62, description="those with a higher id; else the newest"),
    service: str | None = None,
    limit: int = Query(EVENTS_USUAL, ge=1, le=EVENTS_MOST),
) -> Row:
    """Give events in the order in which they were written, from a cursor on; none about the installation itself."""
    at, kept = newest(), bounds()
    rows: QuerySet[Event] = visible(request, of_services(Event.objects.all()), "service_name")
    if service is not None:
        rows = rows.filter(service_name=service)
    if after is None:
        page = list(rows.filter(pk__lte=at).order_by("-pk")[:limit])[::-1]
        return _events(page, at, more=False, gap=False)
    page = list(rows.filter(pk__gt=after, pk__lte=at).order_by("pk")[: limit + 1])
    more = len(page) > limit
    cursor = page[limit - 1].pk if more else max(at, after)
    return _events(page[:limit], cursor, more=more, gap=bool(kept.oldest) and after < kept.oldest - 1)


def _events(page: list[Event], cursor: int, *, more: bool, gap: bool) -> Row:
    return {"events": [event_row(event) for event in page], "cursor": cursor, "more": more, "gap": gap}


@route(
    "GET",
    "/services/{name}/replicas/{int:number}/log",
    SEE,
    openapi_extra={
        "responses": {
            200: {
                "description": "The bytes of the log from X-Log-Start on. X-Log-Next is where to go on, X-Log-Newest"
                " where the log ends now, X-Log-Ended whether nothing more will come.",
                "content": {"text/plain": {"schema": {"type": "string"}}},
            }
        }
    },
)
def get_log(
    request: HttpRequest,
    name: str,
    number: int,
    which: Literal["run", "launch"] = "run",
    start: int | None = Query(None, ge=0, le=2**62, description="from this byte on; X-Log-Next of the answer before"),
    tail: int | None = Query(None, ge=0, le=100_000, description="the last N lines"),
    limit: int = Query(LOG_USUAL, ge=1, le=LOG_MOST, description="at most so many bytes"),
) -> HttpResponse:
    """Give a replica's log, or a range of it; without start and tail its end."""
    where = place(Key(which, found_replica(name, number).pk))
    if where is None or not where.path:
        raise Problem(404, "not_found", f"Replica {number} of {name} has written no {which} log yet.")
    try:
        text, headers = _range(Path(where.path), start, tail, limit)
    except logfile.NoLog as error:
        raise Problem(404, "not_found", str(error)) from None
    return plain(text, headers | {"X-Log-Ended": "true" if where.ended else "false"})


def _range(log: Path, start: int | None, tail: int | None, limit: int) -> tuple[bytes, dict[str, str]]:
    """The bytes, and where they are; cut at whole characters."""
    with logfile.opened(log, settings.ROLLCALL.home) as segments:
        oldest, end = segments[0].begin, segments[-1].end
        if start is not None:
            first = min(max(start, oldest), end)
        elif tail is not None:
            first = logfile.back(segments, end, tail, limit) if tail else end
        else:
            first = max(oldest, end - limit)
        text = logfile.read(segments, first, min(end, first + limit))
        if first + len(text) < end:
            text = text[: logfile.whole(text)] or text
        after = first + len(text)
    places: dict[str, Any] = {"Start": first, "Next": after, "Oldest": oldest, "Newest": end}
    return text, {f"X-Log-{name}": str(value) for name, value in places.items()}


def latest_rollout(service_id: int) -> Row | None:
    """The service's newest rollout."""
    found = Rollout.objects.filter(service=service_id).order_by("-id").first()
    return rollout_row(found) if found else None
