"""The number of replicas: set by hand, by the autoscaler, or left to it again."""

from collections.abc import Mapping
from typing import Any

from replicas import clock
from replicas.actions.moves import begin_anew
from replicas.actions.transition import change, emit, locked, writing
from replicas.actions.versions import Conflict
from replicas.core.autoscaler import follows_load
from replicas.core.values import Desired
from replicas.models import Service, ServiceVersion

DECISION = "decision"  # the kind of the events that tell what the autoscaler decided from


LOAD = "load"  # the wish that leaves the number to the autoscaler


def scale(service_id: int, target: int, *, actor: str, expected: str = "") -> bool:
    """Want `target` replicas, and have the autoscaler, if there is one, leave it at that. False: no such service.

    `expected`: what `wish` was when it was asked for, here and below; raises Conflict when it is another one by now.
    """
    with writing():
        service = locked(Service, service_id)
        if service is None:
            return False
        _still(service, expected)
        pins = autoscaled(service)
        if service.target != target or service.pinned != pins:
            fixed = ", and fixed there until that is released" if pins else ""
            reason = f"scaled from {service.target} to {target} by {actor}{fixed}"
            if target > service.target:
                begin_anew(service_id, reason=reason, actor=actor)
            change(
                service,
                "scaled",
                reason=reason,
                actor=actor,
                old=service.status,
                new=service.status,
                target=target,
                pinned=pins,
                updated_at=clock.now(),
            )
        return True


def release(service_id: int, *, actor: str, expected: str = "") -> bool:
    """Leave the number to the autoscaler again. False: there is no such service, or nobody fixed its number."""
    with writing():
        service = locked(Service, service_id)
        if service is None or not service.pinned:
            return False
        _still(service, expected)
        return change(
            service,
            "released",
            reason=f"the number of replicas is left to the autoscaler again by {actor}",
            actor=actor,
            old=service.status,
            new=service.status,
            pinned=False,
            scaling={},
            updated_at=clock.now(),
        )


def wish(service: Service) -> str:
    """What people want of the number: the number itself, or LOAD."""
    return LOAD if not service.pinned and autoscaled(service) else str(service.target)


def _still(service: Service, expected: str) -> None:
    now = wish(service)
    if expected and now != expected:
        left = "its number is left to the load" if now == LOAD else f"{now} are wanted"
        raise Conflict(
            f"service {service.name} was scaled meanwhile: {left} by now. Scale it again if that is not what you want"
        )


def autoscaled(service: Service) -> bool:
    """True when the active version says between which numbers, and by what, the target moves."""
    if service.version is None:
        return False
    spec = ServiceVersion.objects.values_list("spec", flat=True).get(pk=service.version.pk)
    return follows_load(spec)


def autoscale(
    service_id: int,
    target: int,
    *,
    base: int,
    reason: str,
    memory: Mapping[str, Any],
    inputs: Mapping[str, Any],
    actor: str,
) -> bool:
    """Carry out what the autoscaler decided from `inputs` while the target was `base`.

    False: somebody else has changed the service meanwhile, so that it has to be decided anew.
    """
    with writing():
        service = locked(Service, service_id)
        if service is None or service.pinned or service.desired != Desired.UP or service.target != base:
            return False
        if target > base:
            begin_anew(service_id, reason=reason, actor=actor)
        moved = change(
            service,
            "autoscaled",
            reason=reason,
            actor=actor,
            old=service.status,
            new=service.status,
            target=target,
            scaling=dict(memory),
            updated_at=clock.now(),
        )
        data = {"from": base, "target": target, "inputs": dict(inputs)}
        emit(service, DECISION, service.pk, service.revision, "autoscaled", data, reason=reason, actor=actor)
        return moved


def remember(service_id: int, memory: Mapping[str, Any]) -> None:
    """Keep what the autoscaler has to know after a restart. No event: nothing that people see has changed."""
    Service.objects.filter(pk=service_id).update(scaling=dict(memory))
