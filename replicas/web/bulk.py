"""One wish for many things: each is carried out by its own action, and the answer names those that refused."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from replicas.actions import operations, services
from replicas.actions.operations import Refused
from replicas.actions.services import Conflict
from replicas.core.values import Desired
from replicas.core.wording import some
from replicas.models import Service
from replicas.web import intake
from replicas.web.access import OPERATE, allowed, refusal, service_of
from replicas.web.forms import BulkOperationsForm, BulkServicesForm
from replicas.web.replies import done, invalid, refused

T = TypeVar("T", str, int)
NAMED = 5  # of those that refused; the pages show the rest
SERVICES = {"restart": "restart", "scale": "are scaled", "down": "are taken down"}
OPERATIONS = {"cancel": "are cancelled", "retry": "are looked at again at once"}


class No(Exception):
    """One of the things cannot be had; the text says why."""


@allowed(OPERATE)
@require_POST
def act_on_services(request: HttpRequest) -> HttpResponse:
    """`verb` (restart, scale to `target`, down) for each of `names`."""
    form, to = BulkServicesForm(request.POST), reverse("services")
    if not form.is_valid():
        return invalid(request, form, to=to)
    verb, target = form.cleaned_data["verb"], form.cleaned_data["target"]
    actor = request.user.get_username()
    names = form.cleaned_data["names"]
    mine = Service.objects.select_related("version", "owner").filter(name__in=names)
    found = {each.name: each for each in mine}

    def act(name: str) -> None:
        if name not in found:
            raise No("it is not there any more")
        _check(request, found[name])
        DOORS[verb](found[name], target, actor)

    return _each(request, names, act, "service", SERVICES[verb], to)


def _check(request: HttpRequest, service: Service) -> None:
    if reason := refusal(request.user, OPERATE, service):
        raise No(reason)


def _restart(service: Service, _target: int | None, actor: str) -> None:
    if service.desired != Desired.UP or service.version is None:
        raise No("it is taken down")
    services.restart(service.pk, actor=actor, expected=service.version.number)


def _scale(service: Service, target: int | None, actor: str) -> None:
    assert target is not None, "the form has seen to it"
    intake.scale(service, target, actor=actor)


def _down(service: Service, _target: int | None, actor: str) -> None:
    if service.desired == Desired.DOWN:
        raise No("it is taken down already")
    services.take_down(service.pk, purge=False, actor=actor)


DOORS: dict[str, Callable[[Service, int | None, str], None]] = {"restart": _restart, "scale": _scale, "down": _down}


@allowed(OPERATE)
@require_POST
def act_on_operations(request: HttpRequest) -> HttpResponse:
    """`verb` (cancel, retry) for each of `ids`."""
    form, to = BulkOperationsForm(request.POST), reverse("operations")
    if not form.is_valid():
        return invalid(request, form, to=to)
    actor = request.user.get_username()
    door = {"cancel": operations.request_cancel, "retry": operations.request_retry}[form.cleaned_data["verb"]]

    def act(operation_id: int) -> None:
        service = service_of({"operation_id": operation_id})
        if service is not None:
            _check(request, service)
        door(operation_id, actor=actor)

    return _each(request, form.cleaned_data["ids"], act, "operation", OPERATIONS[form.cleaned_data["verb"]], to)


def _each(
    request: HttpRequest, things: Iterable[T], act: Callable[[T], None], word: str, did: str, to: str
) -> HttpResponse:
    """Do it to each, and tell how many it was and who refused."""
    count, faults = 0, []
    for thing in things:
        try:
            act(thing)
        except (No, Conflict, Refused, intake.IntakeError) as error:
            faults.append(f"{thing}: {str(error).rstrip('.')}")
        else:
            count += 1
    told = f"{some(count, word)} {did}." if count != 1 else f"1 {word} {_one(did)}."
    if not faults:
        return done(request, told, to=to)
    rest = f"; and {len(faults) - NAMED} more" if len(faults) > NAMED else ""
    why = f"{some(len(faults), word)} refused: {'; '.join(faults[:NAMED])}{rest}."
    return refused(request, f"{told} {why}" if count else why, to=to)


def _one(did: str) -> str:
    """The words for a single thing."""
    return {"restart": "restarts"}.get(did, did.replace("are ", "is ", 1))
