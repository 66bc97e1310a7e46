"""The pages that show, and the snapshots from which they start over after a gap."""

import shlex
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from replicas.config import DEFAULT_HOME
from replicas.core.autoscaler import follows_load
from replicas.models import Operation, Replica, Service, ServiceVersion
from replicas.models.public import Row
from replicas.web import listing, presenters
from replicas.web.access import SEE, allowed, powers
from replicas.web.forms import BULK_MOST
from replicas.web.listing import Wanted
from replicas.web.numbers import whole
from replicas.web.replies import service_or_404


@allowed(SEE)
@never_cache
@require_safe
def services(request: HttpRequest) -> HttpResponse:
    """The services that the address asks for."""
    page = {
        "snapshot": presenters.services_snapshot(Wanted.of(request.GET)),
        "url": reverse("services.json"),
        "figures": reverse("figures.json"),
        "severity": listing.SEVERITY,
    }
    home = settings.ROLLCALL.home
    elsewhere = "" if home == DEFAULT_HOME else shlex.quote(str(home))  # a new shell would take the usual one
    return _page(request, "services.html", page, root=shlex.quote(str(settings.BASE_DIR)), home=elsewhere)


@allowed(SEE)
@never_cache
@require_safe
def services_json(request: HttpRequest) -> JsonResponse:
    """The snapshot that the page of all services starts from."""
    return JsonResponse(presenters.services_snapshot(Wanted.of(request.GET)))


@allowed(SEE)
@never_cache
@require_safe
def names_json(request: HttpRequest) -> JsonResponse:
    """`{names, more}`: what matches on all pages, BULK_MOST names at most, for acting on all of them."""
    found = listing.in_order(listing.matching(Wanted.of(request.GET)), "name")
    names = list(found.values_list("name", flat=True)[: BULK_MOST + 1])
    return JsonResponse({"names": names[:BULK_MOST], "more": len(names) > BULK_MOST})


@allowed(SEE)
@never_cache
@require_safe
def service(request: HttpRequest, name: str) -> HttpResponse:
    """One service: replicas, operations in flight, timeline, spec."""
    choice = _choice(request)
    snapshot = _service_snapshot(name, choice)
    found, asked = service_or_404(name), f"?events={choice}" if choice else ""
    page = {
        "snapshot": snapshot,
        "url": reverse("service.json", args=[name]) + asked,
        "quiet": presenters.QUIET,
        "ended_shown": presenters.ENDED_SHOWN,
        "events_url": reverse("events.json", args=[name]) + asked,
        "choice": choice,
        "kinds": presenters.KINDS,
    }
    autoscaled = found.version is not None and follows_load(found.version.spec)
    more = {"version": found.version, "autoscaled": autoscaled, "choices": presenters.CHOICES}
    return _page(request, "service.html", page, found, **more)


@allowed(SEE)
@never_cache
@require_safe
def service_json(request: HttpRequest, name: str) -> JsonResponse:
    """The snapshot that a service's page starts from."""
    return JsonResponse(_service_snapshot(name, _choice(request)))


@allowed(SEE)
@never_cache
@require_safe
def service_logs(request: HttpRequest, name: str) -> HttpResponse:
    """The logs of several replicas of a service as one; `?replicas=1,4` chooses, in the browser."""
    page = {
        "snapshot": _service_snapshot(name),
        "url": reverse("service.json", args=[name]),
        "quiet": presenters.QUIET,
        "ended_shown": presenters.ENDED_SHOWN,
    }
    return _page(request, "service_logs.html", page, service_or_404(name))


@allowed(SEE)
@never_cache
@require_safe
def events_json(request: HttpRequest, name: str) -> JsonResponse:
    """`{events, more}`: a page of older events of a service, `?before=ID`."""
    found = presenters.of_service(service_or_404(name), _choice(request))
    return JsonResponse(presenters.events_page(found, _before(request)))


@allowed(SEE)
@never_cache
@require_safe
def spec(request: HttpRequest, name: str, number: int) -> HttpResponse:
    """The text of one version, as the part of the page that shows it."""
    version = ServiceVersion.objects.filter(service__name=name, number=number).first()
    if version is None:
        raise Http404(f"{name} has no version {number}.")
    return render(request, "parts/spec.html", {"version": version})


@allowed(SEE)
@never_cache
@require_safe
def replica(request: HttpRequest, name: str, number: int) -> HttpResponse:
    """One replica: facts, start-up, last probe, logs."""
    snapshot = _replica_snapshot(name, number)
    page = {
        "snapshot": snapshot,
        "url": reverse("replica.json", args=[name, number]),
        "events_url": reverse("replica-events.json", args=[name, number]),
        "service": name,
    }
    found = service_or_404(name)
    return _page(request, "replica.html", page, found, name=name, number=number, replica_id=snapshot["replica"]["id"])


@allowed(SEE)
@never_cache
@require_safe
def replica_json(request: HttpRequest, name: str, number: int) -> JsonResponse:
    """The snapshot that a replica's page starts from."""
    return JsonResponse(_replica_snapshot(name, number))


@allowed(SEE)
@never_cache
@require_safe
def replica_events_json(request: HttpRequest, name: str, number: int) -> JsonResponse:
    """`{events, more}`: a page of older events of a replica, `?before=ID`."""
    found = Replica.objects.filter(service__name=name, number=number).first()
    if found is None:
        raise Http404(f"{name} has no replica {number}.")
    events = presenters.of_replica(found, list(Operation.objects.filter(replica=found).only("id")))
    return JsonResponse(presenters.events_page(events, _before(request)))


@allowed(SEE)
@never_cache
@require_safe
def operations(request: HttpRequest) -> HttpResponse:
    """Live and recent operations."""
    page = {
        "snapshot": presenters.operations_snapshot(),
        "url": reverse("operations.json"),
        "shown": presenters.OPERATIONS_SHOWN,
        "lanes": {"long": settings.ROLLCALL.long_workers},  # probes and quick work of the other have no operations
    }
    return _page(request, "operations.html", page)


@allowed(SEE)
@never_cache
@require_safe
def operations_json(request: HttpRequest) -> JsonResponse:
    """The snapshot that the page of operations starts from."""
    return JsonResponse(presenters.operations_snapshot())


def _page(
    request: HttpRequest, template: str, page: Row, service: Service | None = None, **context: Any
) -> HttpResponse:
    page["can"] = powers(request, service)
    return render(request, template, {"page": page, "can": page["can"], "service": service, **context})


def _service_snapshot(name: str, choice: str = "") -> Row:
    snapshot = presenters.service_snapshot(name, choice)
    if snapshot is None:
        raise Http404(f"There is no service {name}. It may have been forgotten after it was taken down.")
    return snapshot


def _replica_snapshot(name: str, number: int) -> Row:
    snapshot = presenters.replica_snapshot(name, number)
    if snapshot is None:
        raise Http404(f"{name} has no replica {number}. Its row may have been pruned.")
    return snapshot


def _choice(request: HttpRequest) -> str:
    asked = request.GET.get("events", "")
    return asked if asked in presenters.CHOICES else ""


def _before(request: HttpRequest) -> int | None:
    return whole(request.GET.get("before"))
