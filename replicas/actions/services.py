"""What is wanted of services: versions, targets, the end; and what the controller saw of them."""

from dataclasses import dataclass

from django.contrib.auth.models import User

from replicas import clock
from replicas.actions import endpoints, rollouts, versions
from replicas.actions.plans import plan_restart
from replicas.actions.scaling import scale
from replicas.actions.transition import change, emit, locked, writing
from replicas.actions.versions import Conflict, Draft
from replicas.core.autoscaler import follows_load
from replicas.core.values import Desired, RolloutKind, ServiceStatus
from replicas.models import Replica, Service, ServiceVersion
from replicas.models.fields import ALIVE
from replicas.models.public import service_row

__all__ = ["Applied", "Conflict", "Draft", "apply", "forget", "give", "report", "restart", "scale", "take_down"]


@dataclass(frozen=True, slots=True)
class Applied:
    """What an apply did: `change` is created, updated, revived (it was down), scaled or unchanged."""

    service: Service
    version: ServiceVersion
    change: str


def apply(draft: Draft, *, actor: str, owner: User | None = None, expected: int | None = None) -> Applied:
    """Make the draft the service's active version; the same draft again changes nothing.

    `expected` is the version number that the draft was made from; raises Conflict when it is not active any more.
    """
    with writing():
        found = Service.objects.filter(name=draft.name).first()
        service = locked(Service, found.pk) if found else _new_service(draft, owner)
        assert service is not None
        active = service.version
        if expected is not None and (active.number if active else 0) != expected:
            raise Conflict(
                f"service {draft.name} is at version {active.number if active else 0} by now, not {expected}; "
                "look at what changed and apply again"
            )
        port = endpoints.asked_port(draft.spec)
        other = endpoints.make_room(port, draft.name, actor=actor) if port else None
        if port and other:
            raise Conflict(endpoints.refusal(port, other))
        same = active is not None and active.digest == draft.digest and active.files_digest == draft.files_digest
        if same and active is not None and service.desired == Desired.UP:
            return _unchanged(service, active, draft, actor)
        again = same and not draft.files_digest  # of a service that is down the files may be gone by now
        version = active if again and active is not None else versions.make(service, draft, actor=actor)
        kind = "created" if found is None else "updated" if service.desired == Desired.UP else "revived"
        first = active is None or kind == "revived"
        rollouts.begin(
            service, version, RolloutKind.FIRST if first else RolloutKind.UPDATE, actor=actor, mode=draft.mode
        )
        now = clock.now()
        change(
            service,
            kind,
            reason=draft.message or f"version {version.number} applied by {actor}",
            actor=actor,
            old=service.status,
            new=service.status,
            version=version,
            desired=Desired.UP,
            target=draft.target,
            pinned=service.pinned and follows_load(draft.spec),
            purge=False,
            last_version=service.last_version,
            forgiven_at=now,
            updated_at=now,
        )
        return Applied(service, version, kind)


def _new_service(draft: Draft, owner: User | None) -> Service:
    now = clock.now()
    return Service.objects.create(
        name=draft.name,
        target=draft.target,
        created_at=now,
        updated_at=now,
        owner=owner,
        reason="waiting for the controller",
    )


def _unchanged(service: Service, active: ServiceVersion, draft: Draft, actor: str) -> Applied:
    """The text asks for what is there; only a target that was scaled by hand goes back to the text's."""
    if service.target == draft.target:
        return Applied(service, active, "unchanged")
    scale(service.pk, draft.target, actor=actor)
    service.refresh_from_db()
    return Applied(service, active, "scaled")


def restart(service_id: int, *, actor: str, expected: int | None = None) -> ServiceVersion | None:
    """Replace every replica by way of a new version with the same text; earlier failures are forgiven.

    `expected` is the version that is to be restarted; raises Conflict when it is not active any more, so that a
    repeated request restarts once. None: there is no such service, or it is down.
    """
    with writing():
        service = locked(Service, service_id)
        if service is None or service.version is None or service.desired != Desired.UP:
            return None
        old = service.version
        if expected is not None and old.number != expected:
            raise Conflict(
                f"service {service.name} is at version {old.number} by now, not {expected}: "
                "it was restarted or updated already"
            )
        plan = plan_restart(service, old)
        version = versions.make_again(
            service, old, message=f"restart of version {old.number}", actor=actor, plan=plan, apart=True
        )
        rollouts.begin(service, version, RolloutKind.RESTART, actor=actor)
        now = clock.now()
        change(
            service,
            "restarted",
            reason=f"restarted by {actor}",
            actor=actor,
            old=service.status,
            new=service.status,
            version=version,
            last_version=service.last_version,
            forgiven_at=now,
            updated_at=now,
        )
        return version


def take_down(service_id: int, *, purge: bool, actor: str) -> bool:
    """Want nothing of the service running. With `purge` it is forgotten once it is down. False: no such service."""
    with writing():
        service = locked(Service, service_id)
        if service is None:
            return False
        if service.desired != Desired.DOWN or (purge and not service.purge):
            rollouts.stop(service, reason=f"the service was taken down by {actor}", actor=actor)
            change(
                service,
                "down_requested",
                reason=f"taken down by {actor}",
                actor=actor,
                old=service.status,
                new=service.status,
                desired=Desired.DOWN,
                purge=purge or service.purge,
                updated_at=clock.now(),
            )
        return True


def give(service_id: int, owner: User | None, *, actor: str) -> bool:
    """Let the service belong to `owner`, or to nobody. False: no such service."""
    with writing():
        service = locked(Service, service_id)
        if service is None:
            return False
        if service.owner_id != (owner.pk if owner else None):
            whose = f"given to {owner.get_username()}" if owner else "made nobody's"
            change(
                service,
                "given",
                reason=f"{whose} by {actor}",
                actor=actor,
                old=service.status,
                new=service.status,
                owner=owner,
                updated_at=clock.now(),
            )
        return True


def report(service_id: int, *, status: ServiceStatus, reason: str, ready: int, live: int, actor: str) -> bool:
    """Keep what the controller saw of the service; nothing is written when it is what the row says."""
    seen = {"status": status, "reason": reason, "ready": ready, "live": live}
    with writing():
        service = locked(Service, service_id)
        if service is None or all(getattr(service, name) == value for name, value in seen.items()):
            return False
        return change(service, "status", reason=reason, actor=actor, old=service.status, new=status, columns=seen)


def forget(service_id: int, *, actor: str) -> bool:
    """Delete a service that is down, with its history; events stay. False: it still has live replicas."""
    with writing():
        service = locked(Service, service_id)
        if service is None:
            return True
        if service.desired != Desired.DOWN or Replica.objects.filter(ALIVE, service=service).exists():
            return False
        emit(
            service,
            "service",
            service.pk,
            service.revision + 1,
            "forgotten",
            service_row(service) | {"forgotten": True},
            reason=f"purged by {actor}",
            actor=actor,
            old=service.status,
        )
        Replica.objects.filter(service=service).delete()
        Service.objects.filter(pk=service_id).update(version=None)
        service.delete()
        return True
