"""What a posted form gets back: a message and a redirect for a page, JSON for a script of ours."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from django.contrib import messages
from django.forms import Form
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect

from replicas.models import Service
from replicas.web.access import wants_json

LEVELS = {"success": messages.SUCCESS, "error": messages.ERROR}


@dataclass(frozen=True, slots=True)
class Undo:
    """The post that takes a wish back: its address and its fields."""

    action: str
    fields: Mapping[str, object]


def done(request: HttpRequest, message: str, *, to: str, undo: Undo | None = None) -> HttpResponse:
    """It is carried out, or will be at once; `message` says what, `undo` how to take it back."""
    return _reply(request, "success", message, 200, to, undo)


def refused(request: HttpRequest, message: str, *, to: str, status: int = 409) -> HttpResponse:
    """It cannot be carried out; `message` says why and what to do."""
    return _reply(request, "error", message, status, to)


def invalid(request: HttpRequest, form: Form, *, to: str) -> HttpResponse:
    """A field is wrong."""
    faults = "; ".join(f"{name}: {' '.join(map(str, errors))}" for name, errors in form.errors.items())
    return refused(request, faults, to=to, status=400)


def service_or_404(name: str) -> Service:
    """The service. Raises Http404 with a sentence."""
    service = Service.objects.select_related("version", "owner").filter(name=name).first()
    if service is None:
        raise Http404(f"There is no service {name}. It may have been forgotten after it was taken down.")
    return service


def _reply(
    request: HttpRequest, level: str, message: str, status: int, to: str, undo: Undo | None = None
) -> HttpResponse:
    if wants_json(request):
        more = {"undo": asdict(undo)} if undo else {}
        return JsonResponse({"level": level, "message": message, **more}, status=status)
    messages.add_message(request, LEVELS[level], message)
    return redirect(to)
