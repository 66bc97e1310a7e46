"""The history of a service: its versions, each as it was, and what lies between any two."""

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from replicas.actions.sealing import Unsealable, unseal
from replicas.core.spec import FieldChange, describe, diff, line_changes
from replicas.models import Service, ServiceVersion
from replicas.models.public import Row
from replicas.web import intake, presenters
from replicas.web.access import SEE, allowed, powers
from replicas.web.numbers import whole
from replicas.web.replies import service_or_404


def version_or_404(service: Service, number: int) -> ServiceVersion:
    """The version of that number. Raises Http404 with a sentence."""
    version = ServiceVersion.objects.filter(service=service, number=number).first()
    if version is None:
        raise Http404(f"{service.name} has no version {number}.")
    return version


@allowed(SEE)
@never_cache
@require_safe
def versions(request: HttpRequest, name: str) -> HttpResponse:
    """All versions of a service: who made each, when and why."""
    before, service = _number(request, "before"), service_or_404(name)
    page = {
        "snapshot": _snapshot(name, before),
        "url": reverse("versions.json", args=[name]) + (f"?before={before}" if before else ""),
        "shown": presenters.VERSIONS_SHOWN,
        "older": before is not None,
        "can": powers(request, service),
    }
    return render(request, "versions.html", {"page": page, "can": page["can"], "service": service})


@allowed(SEE)
@never_cache
@require_safe
def versions_json(request: HttpRequest, name: str) -> JsonResponse:
    """The snapshot that the page of versions starts from."""
    return JsonResponse(_snapshot(name, _number(request, "before")))


@allowed(SEE)
@never_cache
@require_safe
def version(request: HttpRequest, name: str, number: int) -> HttpResponse:
    """One version: its plan and its text."""
    service = service_or_404(name)
    found = version_or_404(service, number)
    before = ServiceVersion.objects.filter(service=service, number__lt=number).order_by("-number").first()
    context = {"version": found, "before": before.number if before else None, "given": sorted(found.overrides.items())}
    return _still(request, "version.html", service, context)


@allowed(SEE)
@never_cache
@require_safe
def compare(request: HttpRequest, name: str) -> HttpResponse:
    """What lies between two versions, `?old=1&new=3`: field by field and line by line."""
    service = service_or_404(name)
    numbers = _number(request, "old"), _number(request, "new")
    if numbers[0] is None or numbers[1] is None:
        return redirect("versions", name=name)
    old, new = (version_or_404(service, number) for number in numbers if number is not None)
    changes = diff(old.spec, new.spec)
    context = {
        "old": old,
        "new": new,
        "both": [old, new],
        "fields": [_field(change) for change in changes],
        "others": others(old, new),
        "lines": line_changes(old.text, new.text),
        "same_text": old.text == new.text,
    }
    return _still(request, "compare.html", service, context)


def others(old: ServiceVersion, new: ServiceVersion) -> list[str]:
    """Lines on what differs beside the fields of the specs: values of secrets, and files."""
    try:
        lines = intake.secret_changes(old.sealed, unseal(new.sealed))
    except Unsealable:
        lines = []
    return [*lines, intake.OTHER_FILES] if old.files_digest != new.files_digest else lines


def _field(change: FieldChange) -> Row:
    """A field for the table: long texts are told by their lines, whose own place is below."""
    long = any(isinstance(value, str) and "\n" in value for value in (change.old, change.new))
    line = describe([change])[0].removeprefix(f"{change.path}: ")
    if long and change.old is not None and change.new is not None:
        return {"path": change.path, "line": line}
    old, _, new = line.partition(" → ")
    if change.old is None or change.new is None:
        return {"path": change.path, "line": line}
    return {"path": change.path, "old": old, "new": new}


def _still(request: HttpRequest, template: str, service: Service, context: dict[str, Any]) -> HttpResponse:
    """A page of what never changes; only which version is active, and what may be done, is live."""
    page = {"snapshot": presenters.head_snapshot(service), "url": reverse("service.json", args=[service.name])}
    return render(request, template, {"page": page, "can": powers(request, service), "service": service, **context})


def _snapshot(name: str, before: int | None) -> Row:
    snapshot = presenters.versions_snapshot(name, before)
    if snapshot is None:
        raise Http404(f"There is no service {name}. It may have been forgotten after it was taken down.")
    return snapshot


def _number(request: HttpRequest, key: str) -> int | None:
    return whole(request.GET.get(key), most=10**9)
