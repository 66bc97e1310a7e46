"""What the API does: apply and plan, scale, steer, roll back, restart, terminate, take down."""

import json
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest
from ninja import Query, Status
from pydantic import ValidationError

from replicas.actions import replicas, rollouts, services
from replicas.actions.powers import DEPLOY, OPERATE
from replicas.core.values import ReplicaState, RolloutMode
from replicas.core.wording import some
from replicas.models import Service
from replicas.models.public import Row, service_row
from replicas.web import examples, intake
from replicas.web.access import service_of
from replicas.web.api import schemas
from replicas.web.api.door import YAML, enforce, route, token_of
from replicas.web.api.problems import Problem
from replicas.web.api.reading import found_replica, latest_rollout
from replicas.web.steering import of_target

BODY = {
    "requestBody": {
        "required": True,
        "description": "The YAML, with options in the query; or JSON with the YAML in it, and options beside it.",
        "content": {
            "application/yaml": {"schema": {"type": "string"}},
            "application/json": {"schema": schemas.ApplyIn.model_json_schema()},
        },
    }
}


@route("POST", "/apply", DEPLOY, gives={200: schemas.Applied | schemas.Plan, 201: schemas.Applied}, openapi_extra=BODY)
def apply(request: HttpRequest, options: Query[schemas.Options]) -> Status[Row]:
    """Make a service what a YAML says, new or changed; with dry_run only say what that would do."""
    given = sent(request, options)
    proposal = proposed(request, given)
    if given.dry_run:
        return Status(200, plan_row(proposal))
    expected = proposal.active_number if given.expected_version is None else given.expected_version
    owner = token_of(request).owner
    applied = intake.carry_out(
        proposal, actor=owner.get_username(), owner=owner if proposal.kind == "create" else None, expected=expected
    )
    service = Service.objects.select_related("version", "owner").get(pk=applied.service.pk)
    answer = {
        "change": applied.change,
        "version": applied.version.number,
        "changes": list(proposal.changes),
        "plan": list(proposal.plan),
        "service": service_row(service),
        "rollout": latest_rollout(service.pk),
    }
    return Status(201 if applied.change == "created" else 200, answer)


@route("POST", "/plan", DEPLOY, gives=schemas.Plan, openapi_extra=BODY)
def plan(request: HttpRequest, options: Query[schemas.Options]) -> Row:
    """Say what applying a YAML would do."""
    return plan_row(proposed(request, sent(request, options)))


def sent(request: HttpRequest, options: schemas.Options) -> schemas.ApplyIn:
    """What the body and the query say together. Raises Problem."""
    kind = (request.content_type or "").lower()
    try:
        if kind == "application/json":
            body = json.loads(request.body)
            beside = options.model_dump(exclude_unset=True)
            return schemas.ApplyIn.model_validate({**beside, **body} if isinstance(body, dict) else body)
        if kind in YAML:
            return schemas.ApplyIn(yaml=request.body.decode(), **options.model_dump())
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, each['loc'])) or 'body'}: {each['msg']}" for each in error.errors()]
        raise Problem(400, "invalid_request", "; ".join(faults)) from None
    except UnicodeDecodeError:
        raise Problem(400, "invalid_request", "The body is not UTF-8.") from None
    except (ValueError, RecursionError) as error:
        raise Problem(400, "invalid_request", f"The body is no JSON: {error}.") from None
    raise Problem(415, "unsupported_media_type", f"The body is {kind or 'of no type'}, which is no YAML and no JSON.")


def proposed(request: HttpRequest, given: schemas.ApplyIn) -> intake.Proposal:
    """What the text would change, checked against who asks, as the editor of the dashboard does it. Raises Problem."""
    proposal = intake.propose(
        given.yaml.replace("\r\n", "\n"),
        name=given.name,
        env=given.env,
        secrets=given.secrets,
        base=str(examples.base()),
        keep_base=True,
        message=given.message,
        mode=RolloutMode(given.mode) if given.mode else None,
    )
    name = proposal.draft.name
    enforce(request, DEPLOY, service_of({"name": name}) or Service(name=name))
    if given.expected_version not in (None, proposal.active_number):
        raise services.Conflict(
            f"service {name} is at version {proposal.active_number} by now, not {given.expected_version}; "
            "look at what changed and apply again"
        )
    return proposal


def plan_row(proposal: intake.Proposal) -> Row:
    """A proposal as schemas.Plan has it."""
    return {
        "kind": proposal.kind,
        "name": proposal.draft.name,
        "version": proposal.active_number,
        "changes": list(proposal.changes),
        "plan": list(proposal.plan),
        "warnings": list(proposal.warnings),
    }


def service_named(name: str) -> Service:
    """The service, which the door has found already."""
    return Service.objects.select_related("version", "owner").get(name=name)


def user_of(request: HttpRequest) -> str:
    """Who acts."""
    name: str = token_of(request).owner.get_username()
    return name


def done(service: Service, message: str) -> Row:
    """What is true after an act, as schemas.Done has it."""
    found = Service.objects.select_related("version", "owner").get(pk=service.pk)
    return {"message": message, "service": service_row(found), "rollout": latest_rollout(service.pk)}


@route("POST", "/services/{name}/scale", OPERATE, gives=schemas.Done)
def scale(request: HttpRequest, name: str, wish: schemas.ScaleIn) -> Row:
    """Want another number of replicas."""
    service = service_named(name)
    intake.scale(service, wish.target, actor=user_of(request))
    return done(service, f"{name} is to have {some(wish.target)}.")


@route("POST", "/services/{name}/release", OPERATE, gives=schemas.Done)
def release(request: HttpRequest, name: str) -> Row:
    """Leave the number of replicas to the load again."""
    service = service_named(name)
    intake.release(service, actor=user_of(request))
    return done(service, f"The load decides again how many replicas {name} has.")


@route("POST", "/services/{name}/restart", OPERATE, gives=schemas.Done)
def restart(request: HttpRequest, name: str, wish: schemas.RestartIn | None = None) -> Row:
    """Replace every replica by way of a new version with the same text."""
    service = service_named(name)
    expected = wish.expected_version if wish else None
    version = services.restart(service.pk, actor=user_of(request), expected=expected)
    if version is None:
        raise Problem(409, "refused", f"{name} is taken down.", next="Apply it to bring it up again.")
    return done(service, f"Version {version.number} replaces every replica of {name}.")


@route("POST", "/services/{name}/down", OPERATE, gives=schemas.Done)
def down(request: HttpRequest, name: str, wish: schemas.PurgeIn | None = None) -> Row:
    """Want nothing of the service running."""
    service, purge = service_named(name), bool(wish and wish.purge)
    services.take_down(service.pk, purge=purge, actor=user_of(request))
    return done(service, f"{name} is going down{', and is forgotten then' if purge else ''}.")


@route("POST", "/services/{name}/replicas/{int:number}/terminate", OPERATE, gives=schemas.Done)
def terminate(request: HttpRequest, name: str, number: int, wish: schemas.PurgeIn | None = None) -> Row:
    """Want one replica gone; another takes its place while the service wants it."""
    service, purge = service_named(name), bool(wish and wish.purge)
    before = found_replica(name, number)
    if ReplicaState(before.state).ended and not purge:
        raise Problem(409, "refused", f"Replica {number} of {name} has ended already ({before.state}).")
    replicas.want_gone(service.pk, number, purge=purge, actor=user_of(request))
    return done(service, f"Replica {number} of {name} is going to be terminated{' and forgotten' if purge else ''}.")


@route("POST", "/services/{name}/rollback", DEPLOY, gives=schemas.Done)
def rollback(request: HttpRequest, name: str, wish: schemas.RollbackIn | None = None) -> Row:
    """Make an earlier version the active one again, as a new version."""
    service, wish = service_named(name), wish or schemas.RollbackIn()
    rollout = rollouts.rollback(
        service.pk, wish.version, actor=user_of(request), message=wish.message, expected=wish.expected_version
    )
    return done(service, f"{name} goes back, as version {rollout.to_version}{of_target(rollout)}.")


def steering(verb: str, act: Callable[..., Any], summary: str, said: str) -> None:
    """A route that does `act` to the rollout that goes on."""

    def view(request: HttpRequest, name: str, wish: schemas.SteerIn | None = None) -> Row:
        service = service_named(name)
        rollout = act(service.pk, actor=user_of(request), expected=wish.rollout if wish else None)
        return done(service, said.format(name=name, version=rollout.to_version))

    view.__name__, view.__doc__ = verb, summary
    route("POST", f"/services/{{name}}/{verb}", OPERATE, gives=schemas.Done)(view)


steering("pause", rollouts.pause, "Let a rollout move nothing for now.", "The rollout of {name} is paused.")
steering("resume", rollouts.resume, "Let a paused rollout go on.", "The rollout of {name} goes on.")
steering("promote", rollouts.promote, "Let a canary become everybody.", "Version {version} of {name} is promoted.")
steering("abort", rollouts.abort, "Give a rollout up and go back.", "{name} goes back, as version {version}.")
