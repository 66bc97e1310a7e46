"""What people do to services, replicas and operations from the browser; each goes through an action."""

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from replicas.actions import operations, scaling, services
from replicas.actions import replicas as replica_actions
from replicas.core.values import ReplicaState
from replicas.core.wording import sentence, some
from replicas.models import Service
from replicas.web import intake
from replicas.web.access import OPERATE, allowed
from replicas.web.forms import PurgeForm, ReleaseForm, RestartForm, ScaleForm
from replicas.web.replies import Undo, done, invalid, refused, service_or_404


@allowed(OPERATE)
@require_POST
def scale(request: HttpRequest, name: str) -> HttpResponse:
    """Want another number of replicas."""
    service, to = service_or_404(name), reverse("service", args=[name])
    form = ScaleForm(request.POST)
    if not form.is_valid():
        return invalid(request, form, to=to)
    target, expected = form.cleaned_data["target"], form.cleaned_data["expected"]
    undo = _as_before(service, target)
    try:
        intake.scale(service, target, actor=request.user.get_username(), expected=expected)
    except intake.IntakeError as error:
        return refused(request, str(error), to=to)
    except services.Conflict as conflict:
        return refused(request, sentence(conflict), to=to)
    return done(request, f"{name} is to have {some(target)}.", to=to, undo=undo if target != service.target else None)


def _as_before(service: Service, target: int) -> Undo:
    """What takes a scaling to `target` back: the earlier number, or leaving it to the load where that had it. Nothing
    is taken back of what somebody else wants by then."""
    if scaling.wish(service) == scaling.LOAD:
        return Undo(reverse("release", args=[service.name]), {"expected": target})
    return Undo(reverse("scale", args=[service.name]), {"target": service.target, "expected": target})


@allowed(OPERATE)
@require_POST
def release(request: HttpRequest, name: str) -> HttpResponse:
    """Leave the number of replicas to the autoscaler again."""
    service, to = service_or_404(name), reverse("service", args=[name])
    form = ReleaseForm(request.POST)
    if not form.is_valid():
        return invalid(request, form, to=to)
    try:
        intake.release(service, actor=request.user.get_username(), expected=form.cleaned_data["expected"])
    except intake.IntakeError as error:
        return refused(request, str(error), to=to)
    except services.Conflict as conflict:
        return refused(request, sentence(conflict), to=to)
    undo = Undo(reverse("scale", args=[name]), {"target": service.target, "expected": scaling.LOAD})
    return done(request, f"The load decides again how many replicas {name} has.", to=to, undo=undo)


@allowed(OPERATE)
@require_POST
def restart(request: HttpRequest, name: str) -> HttpResponse:
    """Replace every replica by way of a new version with the same text."""
    service, to = service_or_404(name), reverse("service", args=[name])
    form = RestartForm(request.POST)
    if not form.is_valid():
        return invalid(request, form, to=to)
    try:
        version = services.restart(
            service.pk, actor=request.user.get_username(), expected=form.cleaned_data["expected"]
        )
    except services.Conflict as conflict:
        return refused(request, str(conflict), to=to)
    if version is None:
        return refused(request, f"{name} is taken down. Edit it and apply it to bring it up again.", to=to)
    return done(request, f"{name} restarts: version {version.number} replaces every replica.", to=to)


@allowed(OPERATE)
@require_POST
def down(request: HttpRequest, name: str) -> HttpResponse:
    """Want nothing of the service running."""
    service = service_or_404(name)
    form = PurgeForm(request.POST)
    if not form.is_valid():
        return invalid(request, form, to=reverse("service", args=[name]))
    purge = form.cleaned_data["purge"]
    services.take_down(service.pk, purge=purge, actor=request.user.get_username())
    after = " and is forgotten then" if purge else ""
    return done(request, f"{name} is going down{after}.", to=reverse("service", args=[name]))


@allowed(OPERATE)
@require_POST
def terminate(request: HttpRequest, name: str, number: int) -> HttpResponse:
    """Want one replica gone; the controller replaces it while the target asks for it."""
    service = service_or_404(name)
    form = PurgeForm(request.POST)
    to = reverse("replica", args=[name, number])
    if not form.is_valid():
        return invalid(request, form, to=to)
    purge = form.cleaned_data["purge"]
    replica = replica_actions.want_gone(service.pk, number, purge=purge, actor=request.user.get_username())
    if replica is None:
        raise Http404(f"{name} has no replica {number}. Its row may have been pruned.")
    if not ReplicaState(replica.state).ended:
        return done(request, f"Replica {number} of {name} is going to be terminated.", to=to)
    if purge:
        return done(request, f"Replica {number} of {name} is forgotten.", to=reverse("service", args=[name]))
    return refused(request, f"Replica {number} of {name} has ended already ({replica.state}).", to=to)


@allowed(OPERATE)
@require_POST
def cancel(request: HttpRequest, operation_id: int) -> HttpResponse:
    """Stop a launch in flight; its replica goes with it."""
    to = reverse("operations")
    try:
        operation = operations.request_cancel(operation_id, actor=request.user.get_username())
    except operations.Refused as refusal:
        return refused(request, sentence(refusal), to=to)
    return done(request, operations.told_cancelled(operation), to=to)


@allowed(OPERATE)
@require_POST
def retry(request: HttpRequest, operation_id: int) -> HttpResponse:
    """Let a waiting operation go on at once, or try a failed down again."""
    to = reverse("operations")
    try:
        operation = operations.request_retry(operation_id, actor=request.user.get_username())
    except operations.Refused as refusal:
        return refused(request, sentence(refusal), to=to)
    return done(request, operations.told_retried(operation), to=to)
