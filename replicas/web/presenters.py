"""The snapshots that pages are drawn from: first the feed's cursor, then the rows, so that replaying closes the gap."""

from dataclasses import replace

from django.db.models import F, Q, QuerySet

from replicas import clock
from replicas.core.values import RolloutState
from replicas.models import Event, Operation, Replica, Rollout, Service, ServiceVersion
from replicas.models.fields import ALIVE, ENDED
from replicas.models.public import Row, operation_row, replica_row, rollout_row, service_row, stamp, version_row
from replicas.web import listing
from replicas.web.listing import Wanted
from replicas.web.outbox import event_row, newest

ENDED_SHOWN = 50
EVENTS_SHOWN = 50
OPERATIONS_SHOWN = 100
VERSIONS_SHOWN = 100
# What the timeline leaves out unless asked for: steps of operations, probes that changed no state, versions (the event
# of their service follows at once), and a status that only got another reason (`unchanged`: where old equals new).
# Of a rollout its begin is what the service's event tells, and each step of its progress is seen in its panel.
QUIET = {
    "kinds": ["operation", "version", "decision"],
    "triggers": ["probed", "rollout_begun", "rollout_progressed", "rollout_extended"],
    "unchanged": ["status"],
}
# What a timeline may show, by the word in its page's address.
CHOICES = {
    "": "What matters",
    "people": "What people did",
    "service": "Of the service",
    "replica": "Of replicas",
    "operation": "Of operations",
    "rollout": "Of rollouts",
    "autoscaler": "Of the autoscaler",
    "all": "Everything",
}
KINDS = {
    "service": ["service", "version", "channel"],
    "replica": ["replica"],
    "operation": ["operation"],
    "rollout": ["rollout"],
    "autoscaler": ["decision"],
}
EVERYTHING = Wanted()
CELL = ("id", "revision", "service_id", "number", "version", "state")
_CELL_COLUMNS = ("id", "revision", "service_id", "number", "version_number", "state")


def services_snapshot(wanted: Wanted = EVERYTHING) -> Row:
    """`{cursor, now, wanted, pages, matched, index, providers, owners, services, replicas, rollouts}`: a page of the
    services that match, of their live replicas what a cell shows (CELL), and the rollouts that go on.

    `index` has `[id, revision, status]` of every service, shown or not; `matched` counts those that match, and
    `providers` and `owners` are the words that filters offer.
    """
    at = newest()
    index = Service.objects.order_by("pk").values_list("pk", "revision", "status")
    page = listing.page_of(wanted)
    shown = [service.pk for service in page]
    return {
        "cursor": at,
        "now": stamp(clock.now()),
        "wanted": replace(wanted, page=page.number).row(),
        "pages": page.paginator.num_pages,
        "matched": page.paginator.count,
        "index": [list(each) for each in index],
        "providers": listing.providers(),
        "owners": listing.owners(),
        "services": [service_row(s) for s in page],
        "replicas": [_cell(r) for r in Replica.objects.filter(ALIVE, service__in=shown).only(*_CELL_COLUMNS)],
        "rollouts": [rollout_row(r) for r in Rollout.objects.filter(service__in=shown, state=RolloutState.PROGRESSING)],
    }


def _cell(replica: Replica) -> Row:
    return {
        "id": replica.pk,
        "revision": replica.revision,
        "service_id": replica.service_id,
        "number": replica.number,
        "version": replica.version_number,
        "state": replica.state,
    }


def service_snapshot(name: str, choice: str = "") -> Row | None:
    """`{cursor, now, service, rollout, versions, replicas, ended, operations, events, more}` of one service, or None.

    `rollout` is the latest, going on or ended, None for none; `versions` are the active one and the one that it would
    turn back to. `replicas` holds the live ones and the ENDED_SHOWN newest of the `ended` ones. `operations` are the
    live ones. `events`, of which `choice` (of CHOICES) tells which, are the newest first; `more` says that there are
    older ones.
    """
    at = newest()
    service = Service.objects.select_related("version", "owner").filter(name=name).first()
    if service is None:
        return None
    replicas = Replica.objects.filter(service=service)
    live = list(replicas.filter(ALIVE).order_by("-number"))
    ended = list(replicas.filter(ENDED).order_by("-number")[:ENDED_SHOWN])
    operations = Operation.objects.select_related("replica").filter(ALIVE, service=service)
    return {
        "cursor": at,
        "now": stamp(clock.now()),
        "service": service_row(service),
        **_rollout(service),
        "replicas": [replica_row(r) for r in live + ended],
        "ended": replicas.filter(ENDED).count(),
        "operations": [operation_row(o) for o in operations],
        **events_page(of_service(service, choice)),
    }


def _rollout(service: Service) -> Row:
    """`{rollout, versions}` of a service's snapshot."""
    latest = Rollout.objects.filter(service=service).order_by("-id").first()
    numbers = {service.version.number if service.version else 0, latest.good_version if latest else 0}
    versions = ServiceVersion.objects.filter(service=service, number__in=numbers).defer("text", "sealed")
    return {
        "rollout": rollout_row(latest) if latest else None,
        "versions": [version_row(v) for v in versions.order_by("number")],
    }


def head_snapshot(service: Service) -> Row:
    """`{cursor, now, service}`: for pages of what never changes, which are live in their head alone."""
    at = newest()
    service.refresh_from_db()
    return {"cursor": at, "now": stamp(clock.now()), "service": service_row(service)}


def replica_snapshot(name: str, number: int) -> Row | None:
    """`{cursor, now, replica, replaced_by, operations, events, more}` of one replica; None if there is none.

    `replaced_by` is the number of the one that took its place, None while nobody has.
    """
    at = newest()
    replica = Replica.objects.select_related("service").filter(service__name=name, number=number).first()
    if replica is None:
        return None
    operations = list(Operation.objects.select_related("replica").filter(replica=replica).order_by("-id"))
    return {
        "cursor": at,
        "now": stamp(clock.now()),
        "replica": replica_row(replica),
        "replaced_by": replaced_by(replica),
        "operations": [operation_row(o) for o in operations],
        **events_page(of_replica(replica, operations)),
    }


def replaced_by(replica: Replica) -> int | None:
    """The number of the replica that took the place of this one, the newest where several did."""
    heirs = Replica.objects.filter(service=replica.service_id, replaces=replica.number)
    return heirs.order_by("-number").values_list("number", flat=True).first()


def versions_snapshot(name: str, before: int | None = None) -> Row | None:
    """`{cursor, now, service, versions, rollouts, more}`: the newest versions (with numbers below `before`), newest
    first, and the rollouts to them."""
    at = newest()
    service = Service.objects.select_related("version", "owner").filter(name=name).first()
    if service is None:
        return None
    versions = ServiceVersion.objects.filter(service=service).defer("text", "sealed")
    if before is not None:
        versions = versions.filter(number__lt=before)
    page = list(versions.order_by("-number")[: VERSIONS_SHOWN + 1])
    numbers = [v.number for v in page[:VERSIONS_SHOWN]]
    return {
        "cursor": at,
        "now": stamp(clock.now()),
        "service": service_row(service),
        "versions": [version_row(v) for v in page[:VERSIONS_SHOWN]],
        "rollouts": [rollout_row(r) for r in Rollout.objects.filter(service=service, to_version__in=numbers)],
        "more": len(page) > VERSIONS_SHOWN,
    }


def operations_snapshot() -> Row:
    """`{cursor, now, operations, services}`: the live ones and the newest ended ones; `services` maps ids to names."""
    at = newest()
    operations = Operation.objects.select_related("replica", "service")
    live = list(operations.filter(ALIVE))
    ended = list(operations.filter(ENDED).order_by("-id")[:OPERATIONS_SHOWN])
    return {
        "cursor": at,
        "now": stamp(clock.now()),
        "operations": [operation_row(o) for o in live + ended],
        "services": {str(o.service_id): o.service.name for o in live + ended},
    }


def of_service(service: Service, choice: str = "") -> QuerySet[Event]:
    """The service's events that belong to one of CHOICES; in the page, Timeline of static/js/state.js has the rule."""
    found = Event.objects.filter(service=service)
    if choice == "all":
        return found
    if choice == "people":
        return found.exclude(Q(source="") | Q(kind="version") | Q(trigger__in=QUIET["triggers"]))
    if choice in KINDS:
        return found.filter(kind__in=KINDS[choice])
    same = Q(trigger__in=QUIET["unchanged"], old=F("new"))
    return found.exclude(Q(kind__in=QUIET["kinds"]) | Q(trigger__in=QUIET["triggers"]) | same)


def of_replica(replica: Replica, operations: list[Operation]) -> QuerySet[Event]:
    """The events of a replica and of its operations."""
    ids = [operation.pk for operation in operations]
    return Event.objects.filter(Q(kind="replica", object_id=replica.pk) | Q(kind="operation", object_id__in=ids))


def events_page(found: QuerySet[Event], before: int | None = None) -> Row:
    """`{events, more}`: the EVENTS_SHOWN newest of the events (with ids below `before`), newest first."""
    if before is not None:
        found = found.filter(id__lt=before)
    page = list(found.order_by("-id")[: EVENTS_SHOWN + 1])
    return {"events": [timeline_row(e) for e in page[:EVENTS_SHOWN]], "more": len(page) > EVENTS_SHOWN}


def timeline_row(event: Event) -> Row:
    """An event as the timeline shows it: the feed's message, of whose `data` only the version's number stays."""
    row = event_row(event)
    data = row.pop("data")
    key = {"version": "number", "rollout": "to_version"}.get(event.kind, "version")
    return row | {"version": data.get(key)}
