"""Who may do what: the one rule that pages, posts, admin, API and sockets ask."""

from typing import Any

from replicas.models import Service

SEE = "replicas.view_service"
OPERATE = "replicas.operate_service"
DEPLOY = "replicas.deploy_service"
ANY = "replicas.act_on_any_service"
ADMINISTER = "replicas.administer"
SENTENCES = {
    SEE: "Your account may not look at services.",
    OPERATE: "Your account may not scale, restart, steer rollouts, terminate or take down.",
    DEPLOY: "Your account may not create or edit services, nor bring versions back.",
    ANY: "Your account may not act on services of others, nor give them away.",
    ADMINISTER: "Your account may not do what concerns the whole installation.",
}


def refusal(user: Any, need: str, service: Service | None = None) -> str:
    """Why the user may not do what needs the permission `need` (with `service`); "" where they may.

    Whoever acts must also see. Where a service has an owner, only they and who may act on any service act on it.
    """
    for permission in (SEE, need):
        if not user.has_perm(permission):
            return SENTENCES[permission]
    return "" if need == SEE or service is None else not_theirs(user, service)


def channel_refusal(user: Any, service: Service | None) -> str:
    """Why the user may not say where notices about `service` (None: about all) go; "" where they may.

    It makes Rollcall ask an address of their choice, as what they deploy could.
    """
    return refusal(user, ADMINISTER) if service is None else refusal(user, DEPLOY, service)


def not_theirs(user: Any, service: Service) -> str:
    """Why the service is somebody else's business; "" where it is the user's, or nobody's."""
    if service.owner_id is None or service.owner_id == user.pk or user.has_perm(ANY):
        return ""
    assert service.owner is not None
    owner = service.owner.get_username()
    return f"Service {service.name} belongs to {owner}: only {owner} and administrators may act on it."
