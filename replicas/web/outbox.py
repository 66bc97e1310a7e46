"""Event rows as the feed reads them: short queries by cursor, each row as the JSON that browsers get."""

import json
from typing import Any, NamedTuple

from django.db.models import QuerySet

from replicas.actions import audit
from replicas.models import Event
from replicas.models.public import stamp
from replicas.web.hub import Item

PAGE = 500


class Bounds(NamedTuple):
    """The ids of the oldest and the newest event that are kept; 0 and 0 where there is none.

    Nothing before `oldest` is complete.
    """

    oldest: int
    newest: int


def event_row(event: Event) -> dict[str, Any]:
    """The public JSON of an event. `service` is its name; `data` the object's public row after the change.

    `actor`, `source` (web, admin, command, api; "" for the control plane), `address`, `token`: who, by which door, from
    where, and with which token.
    """
    return {
        "id": event.pk,
        "at": stamp(event.at),
        "service": event.service_name,
        "kind": event.kind,
        "object_id": event.object_id,
        "number": event.number,
        "revision": event.revision,
        "trigger": event.trigger,
        "old": event.old,
        "new": event.new,
        "reason": event.reason,
        "actor": event.actor,
        "source": event.source,
        "address": event.address,
        "token": event.token,
        "data": event.data,
    }


def of_services(events: QuerySet[Event]) -> QuerySet[Event]:
    """Those for everybody who sees services: who gave roles, made tokens or pruned is for those who administer."""
    return events.exclude(kind__in=audit.KINDS, service_name="")


def items_after(cursor: int, service: str | None = None, limit: int = PAGE) -> list[Item]:
    """At most `limit` events with an id above `cursor`, oldest first, of one service or of all.

    Sockets are open to everybody who sees services, so none is about the installation.
    """
    events = of_services(Event.objects.filter(pk__gt=cursor).order_by("pk"))
    if service is not None:
        events = events.filter(service_name=service)
    return [
        Item(
            event.pk,
            event.service_name,
            event.kind,
            event.object_id,
            event.object_id if event.kind == "replica" else event.data.get("replica_id"),
            json.dumps(event_row(event), separators=(",", ":")),
        )
        for event in events[:limit]
    ]


def bounds() -> Bounds:
    """Which events are kept. Events about the installation outlive others: they do not tell that nothing is missing."""
    last = newest()
    rows = Event.objects.exclude(kind__in=audit.KINDS).order_by("pk").values_list("pk", flat=True)
    first = rows.first()
    return Bounds(first if first is not None else last + 1 if last else 0, last)


def newest() -> int:
    """The id of the newest event; 0 where there is none."""
    return Event.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
