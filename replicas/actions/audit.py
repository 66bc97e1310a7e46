"""Events about what is no row of a service: who pruned, made tokens, gave roles, changed where notices go."""

from typing import Any

from django.db.models import Max

from replicas.actions.transition import emit, writing
from replicas.models import Event, Service

CHANNEL, PERSON, PRUNING, ROLE, TOKEN = "channel", "person", "pruning", "role", "token"
KINDS = (CHANNEL, PERSON, PRUNING, ROLE, TOKEN)


def note(
    kind: str,
    object_id: int,
    trigger: str,
    data: dict[str, Any],
    *,
    reason: str,
    actor: str,
    old: str = "",
    new: str = "",
    service: Service | None = None,
) -> Event:
    """Write an event of one of KINDS, in the transaction of what it tells. `data` holds no secret.

    The revision counts the events about the object, since these rows have none.
    """
    with writing():
        before = Event.objects.filter(kind=kind, object_id=object_id).aggregate(most=Max("revision"))["most"] or 0
        return emit(service, kind, object_id, before + 1, trigger, data, reason=reason, actor=actor, old=old, new=new)
