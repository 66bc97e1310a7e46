"""What is true of services and their replicas now, read in a fixed number of queries."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from django.db.models import F, Max, Q

from replicas.core.values import FAILURES, Desired, ReplicaState, ServiceStatus
from replicas.models import Operation, Replica, Rollout, Service
from replicas.models.fields import ALIVE
from replicas.models.public import rollout_row, stamp

MISSED_SHOWN = 10  # failed replicas of a service
INNER = ("id", "revision", "service_id")


@dataclass(frozen=True, slots=True)
class Standing:
    """A service, how many of its replicas are READY, and the replicas to show, each with what its launch waits for.

    `rollout` is its latest one, going on or ended; None for a service that never had any.
    """

    service: Service
    ready: int
    shown: list[tuple[Replica, str]]
    rollout: Rollout | None = None


def standing(name: str | None = None, *, everything: bool = False) -> list[Standing]:
    """The services (the one of that name, or all that are not down) with the replicas that matter now.

    Those are the live ones; what could not be cleaned up; and, while fewer are READY than wanted, the newest failures
    of the active version since it was applied. `everything`: services that are down and all ended replicas as well.
    """
    services = Service.objects.select_related("version")
    if name is not None:
        services = services.filter(name=name)
    elif not everything:
        services = services.exclude(desired=Desired.DOWN, status=ServiceStatus.DOWN)
    found = list(services)
    replicas = Replica.objects.filter(service__in=[service.pk for service in found])
    if not everything:
        replicas = replicas.filter(ALIVE | Q(state=ReplicaState.FAILED_CLEANUP) | _failure_of_active())
    by_service: dict[int, list[Replica]] = defaultdict(list)
    for replica in replicas.order_by("service_id", "number"):
        by_service[replica.service_id].append(replica)
    waits = _waits([service.pk for service in found])
    rollouts = latest_rollouts([service.pk for service in found])
    return [_one(service, by_service[service.pk], waits, everything, rollouts.get(service.pk)) for service in found]


def latest_rollouts(services: list[int]) -> dict[int, Rollout]:
    """The latest rollout of each service that has one."""
    last = Rollout.objects.filter(service__in=services).order_by().values("service").annotate(last=Max("pk"))
    return {rollout.service_id: rollout for rollout in Rollout.objects.filter(pk__in=last.values("last"))}


def _failure_of_active() -> Q:
    """Failures of the active version, since it was applied or restarted."""
    since = Q(service__forgiven_at=None) | Q(ended_at__gt=F("service__forgiven_at"))
    return Q(state__in=FAILURES, version=F("service__version"), service__desired=Desired.UP) & since


def _waits(services: list[int]) -> dict[int, str]:
    """What the live operation of each replica waits for."""
    live = Operation.objects.filter(ALIVE, service__in=services).exclude(waits_for="")
    return dict(live.values_list("replica_id", "waits_for"))


def _one(
    service: Service, replicas: list[Replica], waits: dict[int, str], everything: bool, rollout: Rollout | None
) -> Standing:
    ready = sum(replica.state == ReplicaState.READY for replica in replicas)
    failed = [replica.pk for replica in replicas if replica.state in FAILURES]
    hidden = set(failed if ready >= service.target else failed[:-MISSED_SHOWN])
    shown = [replica for replica in replicas if everything or replica.pk not in hidden]
    return Standing(service, ready, [(replica, waits.get(replica.pk, "")) for replica in shown], rollout)


def standing_row(each: Standing) -> dict[str, Any]:
    """The documented JSON of `status --json`: these keys and no others."""
    service = each.service
    return {
        "name": service.name,
        "status": service.status,
        "reason": service.reason,
        "version": service.version.number if service.version else None,
        "target": service.target,
        "ready": each.ready,
        "endpoint": service.endpoint or None,
        "endpoint_reason": service.endpoint_reason or None,
        "rollout": rollout_facts(each.rollout) if each.rollout else None,
        "replicas": [_replica_row(replica) for replica, _ in each.shown],
    }


def rollout_facts(rollout: Rollout) -> dict[str, Any]:
    """The documented JSON of a rollout: its public row without what only the feed needs."""
    return {key: value for key, value in rollout_row(rollout).items() if key not in INNER}


def _replica_row(replica: Replica) -> dict[str, Any]:
    return {
        "number": replica.number,
        "uid": replica.uid,
        "state": replica.state,
        "outcome": replica.outcome or None,
        "reason": replica.reason,
        "version": replica.version_number,
        "url": replica.url or None,
        "pid": replica.pid,
        "created_at": stamp(replica.created_at),
        "ready_at": stamp(replica.ready_at),
    }
