"""Rollouts steered from the browser: each post is one wish, written by an action."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from replicas.actions import rollouts
from replicas.actions.rollouts import Conflict, Refused
from replicas.core.wording import sentence, some
from replicas.models import Rollout
from replicas.web.access import DEPLOY, OPERATE, SEE, View, allowed
from replicas.web.forms import RollbackForm, SteerForm
from replicas.web.replies import Undo, done, invalid, refused, service_or_404
from replicas.web.versions import version_or_404


def _steering(act: Callable[..., Rollout], said: str, back: str = "") -> View:
    """A view that does `act` to the rollout that goes on; `back` names the view that takes it back."""

    @allowed(OPERATE)
    @require_POST
    def view(request: HttpRequest, name: str) -> HttpResponse:
        service, to = service_or_404(name), reverse("service", args=[name])
        form = SteerForm(request.POST)
        if not form.is_valid():
            return invalid(request, form, to=to)
        before = rollouts.latest(service.pk)
        try:
            rollout = act(service.pk, actor=request.user.get_username(), expected=form.cleaned_data["rollout"])
        except (Refused, Conflict) as error:
            return refused(request, sentence(error), to=to)
        undo = Undo(reverse(back, args=[name]), {"rollout": rollout.pk}) if back else None
        return done(
            request,
            said.format(name=name, version=rollout.to_version, good=before.good_version if before else 0),
            to=to,
            undo=undo,
        )

    return view


pause = _steering(rollouts.pause, "The rollout of {name} to version {version} is paused.", "resume")
resume = _steering(rollouts.resume, "The rollout of {name} to version {version} goes on.", "pause")
promote = _steering(rollouts.promote, "Version {version} of {name} is promoted.")
abort = _steering(
    rollouts.abort, "The rollout of {name} is given up: it goes back to version {good}, as version {version}."
)


def of_target(rollout: Rollout) -> str:
    """What a message says on how many replicas are wanted; nothing where as many are as before."""
    found = rollouts.retargeted(rollout)
    return f", with {some(found[1])} instead of {found[0]}" if found else ""


@allowed(DEPLOY)
@require_POST
def rollback(request: HttpRequest, name: str) -> HttpResponse:
    """Make an earlier version the active one again, as a new version."""
    service, to = service_or_404(name), reverse("service", args=[name])
    form = RollbackForm(request.POST)
    if not form.is_valid():
        return invalid(request, form, to=to)
    data = form.cleaned_data
    try:
        rollout = rollouts.rollback(
            service.pk,
            data["version"],
            actor=request.user.get_username(),
            message=data["message"],
            expected=data["expected"],
        )
    except (Refused, Conflict) as error:
        return refused(request, sentence(error), to=to)
    back = f" to version {data['version']}" if data["version"] else ""
    return done(request, f"{name} goes back{back}, as version {rollout.to_version}{of_target(rollout)}.", to=to)


@allowed(SEE)
@never_cache
@require_safe
def plan(request: HttpRequest, name: str, number: int) -> JsonResponse:
    """`{plan, refused}`: what going back to a version would do now; empty, and why, where its files are gone."""
    service = service_or_404(name)
    old = version_or_404(service, number)
    why = rollouts.without_files(service, old)
    return JsonResponse({"plan": rollouts.plan_to_go_back(service, old), "refused": sentence(why) if why else ""})
