"""Services made and changed by their YAML text: the editor's pages, and the check while one types."""

from dataclasses import dataclass, field
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from replicas.actions.services import Conflict
from replicas.core.spec import SpecErrors
from replicas.core.spec.schema import schema
from replicas.core.values import Desired
from replicas.core.wording import sentence
from replicas.models import Service, ServiceVersion
from replicas.web import examples, intake, outbox
from replicas.web.access import DEPLOY, allowed, powers, refusal, service_of
from replicas.web.forms import SpecForm
from replicas.web.numbers import whole
from replicas.web.replies import done, refused, service_or_404
from replicas.web.versions import version_or_404

PAST = {
    "created": "{name} is created as version {number}; its replicas are launched now.",
    "updated": "{name} is updated: version {number} takes over as the update goes on.",
    "revived": "{name} is brought up again, as version {number}.",
    "scaled": "{name} is scaled: version {number} stays.",
    "unchanged": "{name} is unchanged: version {number} stays.",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to be said of a text: faults at their lines, or what would change.

    `kind` is create, update, revive or unchanged, and "" where there are faults. `active` is the active version.
    """

    kind: str = ""
    name: str = ""
    errors: list[dict[str, Any]] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)
    plan: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    active: int = 0
    proposal: intake.Proposal | None = None

    def public(self) -> dict[str, Any]:
        """The JSON that the editor's script shows."""
        names = ("kind", "name", "errors", "changes", "plan", "warnings", "active")
        return {name: getattr(self, name) for name in names}


def judge(form: SpecForm, name: str | None) -> Verdict:
    """What the posted text would do; nothing is written."""
    if not form.is_valid():
        return Verdict(errors=[_fault(f"{key}: {' '.join(map(str, e))}") for key, e in form.errors.items()])
    data = form.cleaned_data
    try:
        proposal = intake.propose(
            data["text"],
            name=name or data["name"] or None,
            base=None if name else str(examples.base()),
            message=data["message"],
        )
    except SpecErrors as errors:
        return Verdict(errors=_faults(errors))
    except intake.IntakeError as error:
        return Verdict(errors=[_fault(str(error))])
    draft = proposal.draft
    return Verdict(
        proposal.kind,
        draft.name,
        changes=list(proposal.changes),
        plan=list(proposal.plan),
        warnings=list(proposal.warnings),
        active=proposal.active_number,
        proposal=proposal,
    )


def _taken(verdict: Verdict) -> Verdict | None:
    """What is to be said in place of the verdict on a new service when there is one of its name, which is up."""
    if verdict.kind not in {"update", "scale", "unchanged"}:
        return None
    fault = f"There is a service {verdict.name} already: edit that one, or give this one another name."
    return Verdict(errors=[_fault(fault)], name=verdict.name)


@allowed(DEPLOY)
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    """A new service from a text."""
    if request.method == "POST":
        form = SpecForm(request.POST)
        verdict = judge(form, None)
        if taken := _taken(verdict):
            return _editor(request, form, taken, None, status=409)
        if reason := refusal(request.user, DEPLOY, service_of({"name": verdict.name})):  # it is down, and another's
            raise PermissionDenied(reason)
        return _carry_out(request, form, verdict, None)
    chosen = examples.example(request.GET.get("example", ""))
    return _editor(request, SpecForm(initial={"text": chosen.text if chosen else examples.EMPTY}), None, None)


@allowed(DEPLOY)
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, name: str) -> HttpResponse:
    """Another version of a service, from the text of its active one or of `?version=N`."""
    if request.method == "POST" and not Service.objects.filter(name=name).exists():
        return _gone(request, name)
    service = service_or_404(name)
    if request.method == "POST":
        form = SpecForm(request.POST)
        return _carry_out(request, form, judge(form, name), service)
    active = service.version
    asked = whole(request.GET.get("version"), most=10**9)
    version = active if asked is None else version_or_404(service, asked)
    initial = {"text": version.text if version else "", "expected": active.number if active else 0}
    return _editor(request, SpecForm(initial=initial), None, service, of=version)


@allowed(DEPLOY)
@require_POST
def bring_up(request: HttpRequest, name: str) -> HttpResponse:
    """Apply the active version of a service that is down once more, as it is."""
    service, to = service_or_404(name), reverse("service", args=[name])
    active = service.version
    if service.desired == Desired.UP or active is None:
        return refused(request, f"{name} is not down." if active else f"{name} has no version: edit it first.", to=to)
    try:
        proposal = intake.propose(active.text, name=name, message=f"version {active.number} brought up again")
        applied = intake.carry_out(proposal, actor=request.user.get_username(), expected=active.number)
    except Conflict as conflict:
        return refused(request, sentence(conflict), to=to)
    except (SpecErrors, intake.IntakeError) as error:
        return refused(request, f"{name} cannot come up as it is: {error} Edit it, and apply that.", to=to)
    return done(request, f"{name} comes up again with version {applied.version.number}.", to=to)


@allowed(DEPLOY)
@never_cache
@require_POST
def check(request: HttpRequest) -> JsonResponse:
    """What the editor's text would do, while one types: `{kind, name, errors, changes, plan, warnings, active}`."""
    edited = request.POST.get("service") or None
    verdict = judge(SpecForm(request.POST), edited)
    if reason := refusal(request.user, DEPLOY, service_of({"name": verdict.name})):  # it would tell of its secrets
        verdict = Verdict(errors=[_fault(reason)], name=verdict.name)
    elif not edited:
        verdict = _taken(verdict) or verdict
    return JsonResponse(verdict.public())


@allowed(DEPLOY)
@require_safe
def spec_schema(request: HttpRequest) -> JsonResponse:
    """The JSON Schema of specs, from which the editor completes; the one that docs/spec.schema.json publishes."""
    return JsonResponse(schema())


def _carry_out(request: HttpRequest, form: SpecForm, verdict: Verdict, service: Service | None) -> HttpResponse:
    if verdict.proposal is None:
        return _editor(request, form, verdict, service, status=422)
    data = form.cleaned_data
    if service is not None and data["of"] not in (None, service.pk):
        anew = f"service {service.name} was forgotten and made anew meanwhile; look at what it is now and apply again"
        return _editor(request, form, verdict, service, status=409, conflict=anew)
    expected = data["over"] if data["over"] is not None else data["expected"]
    if service is None:
        expected = verdict.active
    owner = request.user if verdict.kind == "create" else None
    try:
        applied = intake.carry_out(verdict.proposal, actor=request.user.get_username(), owner=owner, expected=expected)
    except Conflict as conflict:
        return _editor(request, form, verdict, service, status=409, conflict=str(conflict))
    except SpecErrors as errors:  # such as a workdir that is not there, which is found when it is copied
        return _editor(request, form, Verdict(errors=_faults(errors), name=verdict.name), service, status=422)
    except intake.IntakeError as error:
        return _editor(request, form, Verdict(errors=[_fault(str(error))], name=verdict.name), service, status=422)
    name = applied.service.name
    # The tag tells the browser that the draft which it keeps for this address was sent.
    said = PAST[applied.change].format(name=name, number=applied.version.number)
    messages.success(request, said, extra_tags=request.get_full_path())
    return redirect("service", name=name)


def _gone(request: HttpRequest, name: str) -> HttpResponse:
    """The text for a service that was forgotten while it was edited, as one for a new service."""
    form = SpecForm(request.POST)
    told = (
        f"there is no service {name} any more: it was forgotten after it was taken down. Your text is kept here, and"
        " Create makes the service anew from it"
    )
    return _editor(request, form, judge(form, name), None, status=409, conflict=told, gone=name)


def _editor(
    request: HttpRequest,
    form: SpecForm,
    verdict: Verdict | None,
    service: Service | None,
    *,
    status: int = 200,
    conflict: str = "",
    gone: str = "",
    of: ServiceVersion | None = None,
) -> HttpResponse:
    current = service_or_404(service.name) if service and conflict else service
    context = {
        "form": form,
        "values": (form.data.dict() | ({"name": gone} if gone else {})) if form.is_bound else form.initial,
        "gone": gone,
        "verdict": verdict,
        "service": current,
        "conflict": conflict,
        "of": of if of and current and of.pk != current.version_id else None,
        "secrets": has_secrets(current.version if current else None) or has_secrets(of),
        "down": current is not None and current.desired == Desired.DOWN,
        "examples": [] if service else examples.examples(),
        "base": current.version.base if current and current.version else examples.base(),
        "can": powers(request, current),
        "page": {
            "cursor": outbox.newest(),
            "user": request.user.get_username(),
            "service": service.name if service else None,
            "check": reverse("check"),
            "schema": reverse("schema"),
            "verdict": verdict.public() if verdict else None,
        },
    }
    return render(request, "editor.html", context, status=status)


def has_secrets(version: ServiceVersion | None) -> bool:
    """Whether the text of the version has secrets, whose values it does not show."""
    return bool(version and version.spec.get("secrets"))


def _faults(errors: SpecErrors) -> list[dict[str, Any]]:
    return [{"line": e.line, "column": e.column, "path": e.path, "message": e.message} for e in errors.errors]


def _fault(message: str) -> dict[str, Any]:
    return {"line": None, "column": None, "path": "", "message": message}
