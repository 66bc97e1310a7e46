"""Reads what is there into plain values, in a number of queries that does not grow with the number of rows."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from django.db.models import Exists, F, Max, OuterRef, Q, Subquery

from replicas.core.machines import spot_policy
from replicas.core.rollout import bounds, one_port
from replicas.core.values import (
    Desired,
    OperationKind,
    OperationStatus,
    ReplicaState,
    RolloutState,
    ServiceStatus,
)
from replicas.core.views import (
    OperationView,
    ReplicaView,
    RestartPolicy,
    RolloutPolicy,
    RolloutView,
    ServiceView,
    SpotPolicy,
    Surge,
)
from replicas.models import Operation, Replica, Rollout, Service, ServiceVersion
from replicas.models.fields import ALIVE, ENDED

HISTORY = timedelta(hours=1)
INITIAL_DELAY_SECONDS, BEYOND_SECONDS = 1200.0, 600.0  # as the spec's `progress_deadline` has them
UNFINISHED = (RolloutState.PROGRESSING, RolloutState.FAILED)
SETTLED = (ServiceStatus.DOWN, ServiceStatus.FAILED_CLEANUP)


@dataclass(frozen=True, slots=True)
class Seen:
    """A replica's facts that only the controller's own parts need."""

    id: int
    provider: str
    state: ReplicaState
    handle: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Owned:
    """Who works on a live operation, and what a waiting one waits for."""

    id: int
    status: OperationStatus
    host: str
    pid: int | None
    start: int | None
    claim: int
    heartbeat_at: datetime | None
    watch: tuple[int, int] | None


@dataclass(slots=True)
class World:
    """Everything that one tick decides from."""

    services: list[ServiceView] = field(default_factory=list)
    replicas: dict[int, list[ReplicaView]] = field(default_factory=lambda: defaultdict(list))
    seen: list[Seen] = field(default_factory=list)
    operations: list[OperationView] = field(default_factory=list)
    owned: list[Owned] = field(default_factory=list)
    purged_replicas: list[int] = field(default_factory=list)
    purged_services: list[int] = field(default_factory=list)
    launch_limits: dict[int, int] = field(default_factory=dict)
    told: dict[int, dict[str, Any]] = field(default_factory=dict)  # of each service: what its row says of its state
    waits_for: dict[int, str] = field(default_factory=dict)  # of each live operation


def observe(now: datetime) -> World:
    """One look at everything that is alive, and at the history that decisions need."""
    world = World()
    operations = _operations(world)
    rows = list(_services())
    compatible: dict[int, set[int]] = defaultdict(set)
    digests = {row.pk: row.version.process_digest for row in rows if row.version}
    active = {row.pk: row.version.number for row in rows if row.version}
    steady = set()
    for row in Replica.objects.filter(ALIVE).order_by().values(*COLUMNS, "version__process_digest"):
        if row["version__process_digest"] == digests.get(row["service_id"]):
            compatible[row["service_id"]].add(row["version_number"])
        if row["state"] == ReplicaState.READY and row["version_number"] == active.get(row["service_id"]):
            steady.add(row["service_id"])
        world.replicas[row["service_id"]].append(_view(row, operations.get(row["id"])))
        world.seen.append(Seen(row["id"], row["provider"], ReplicaState(row["state"]), row["handle"]))
    rollouts = _rollouts()
    unsettled = {row.pk for row in rows if not row.proven} | (active.keys() - steady)
    for row in _history(now, rollouts, unsettled):
        world.replicas[row["service_id"]].append(_view(row, None))
        if row["purge"]:
            world.purged_replicas.append(row["id"])
    for service in rows:
        _add_service(world, service, frozenset(compatible[service.pk]), rollouts.get(service.pk))
    return world


COLUMNS = (
    "id", "service_id", "number", "version_number", "state", "state_since", "created_at", "outcome", "launched_at",
    "ready_at", "ended_at", "restarts", "replaces", "retire_reason", "reason", "provider", "handle", "purge",
    "adopted_at", "probe_at", "probe_ok", "probe_detail", "spot",
)  # fmt: skip


def _services() -> Any:
    """Services that are wanted, or not yet settled; each with whether its active version has proved itself."""
    since = Q(ended_at=None) | Q(ended_at__gt=OuterRef("forgiven_at"))
    ready = Replica.objects.filter(since, version=OuterRef("version"), ready_at__isnull=False)
    return (
        Service.objects.select_related("version")
        .defer("version__text", "version__sealed", "version__spec")
        .annotate(proven=Exists(ready))
        .exclude(Q(desired=Desired.DOWN, status__in=SETTLED, purge=False))
    )


@dataclass(frozen=True, slots=True)
class Move:
    """The latest rollout of a service, and the process digest of the version that it turns back to."""

    view: RolloutView
    good_process: str | None


def _rollouts() -> dict[int, Move]:
    """The latest rollout of each service, by the service."""
    newest = Rollout.objects.order_by().values("service").annotate(newest=Max("id")).values("newest")
    good = ServiceVersion.objects.filter(service=OuterRef("service"), number=OuterRef("good_version"))
    rows = Rollout.objects.filter(pk__in=newest).annotate(good_process=Subquery(good.values("process_digest")[:1]))
    return {row.service_id: Move(row.view(), row.good_process) for row in rows.order_by()}


def _history(now: datetime, rollouts: dict[int, Move], unsettled: set[int]) -> Iterator[dict[str, Any]]:
    """Ended replicas that backoff and giving up are computed from, leftovers, and what is purged.

    Those of active versions, and of the versions that unfinished rollouts may bring back. Where neither a rollout nor
    the status depends on the failures of late (the service is not among `unsettled`), only places that nobody has taken
    are worth a look: what a steady service costs does not grow with the deaths that it has got over.
    """
    going = {service: move.view.good_version for service, move in rollouts.items() if move.view.state in UNFINISHED}
    back = {service: number for service, number in going.items() if number}
    ended = Replica.objects.order_by().values(*COLUMNS)
    recent = ended.filter(ended_at__gt=now - HISTORY)
    up = Service.objects.filter(desired=Desired.UP).order_by()
    heirs = Replica.objects.filter(service=OuterRef("service"), replaces=OuterRef("number"))
    active = recent.filter(~Exists(heirs), version__in=up.values("version"))
    parts = [ended.filter(state=ReplicaState.FAILED_CLEANUP), ended.filter(ENDED, purge=True)]
    whole = unsettled | going.keys()
    if whole:
        versions = up.filter(pk__in=whole).values("version")
        hopeless = ended.filter(ready_at=None, ended_at__gt=F("service__forgiven_at"))
        parts += [recent.filter(version__in=versions), hopeless.filter(version__in=versions)]
    if back:
        parts.append(recent.filter(service__in=back, version_number__in=set(back.values())))
    found = {row["id"]: row for row in active.union(*parts, all=True)}  # one by one each finds its index
    yield from found.values()


def _add_service(world: World, row: Any, compatible: frozenset[int], move: Move | None) -> None:
    version = row.version
    if version is None:
        return
    policy = policies(version.uid)
    if policy.max_launches is not None:
        world.launch_limits[row.pk] = policy.max_launches
    if row.purge and row.desired == Desired.DOWN:
        world.purged_services.append(row.pk)
    world.told[row.pk] = {"status": row.status, "reason": row.reason, "ready": row.ready, "live": row.live}
    world.services.append(
        ServiceView(
            id=row.pk,
            name=row.name,
            desired=Desired(row.desired),
            target=row.target,
            version=version.number,
            restart=policy.restart,
            surge=policy.surge(row.target),
            drain_seconds=policy.drain_seconds,
            compatible=compatible - {version.number},
            forgiven_at=row.forgiven_at,
            proven=row.proven,
            policy=policy.rollouts,
            rollout=move.view if move else None,
            good_fits=move is not None and move.good_process == version.process_digest,
            spot=policy.spot,
            initial_delay=policy.initial_delay,
        )
    )


@dataclass(frozen=True, slots=True)
class Policies:
    """What the spec of a version says about keeping its replicas."""

    restart: RestartPolicy
    drain_seconds: float
    max_launches: int | None
    rollout: dict[str, Any]
    rollouts: RolloutPolicy
    spot: SpotPolicy | None
    initial_delay: float

    def surge(self, target: int) -> Surge:
        """The rollout's bounds for a target."""
        max_surge, max_unavailable = bounds(self.rollout, target)
        return Surge(max_surge, max_unavailable)


@lru_cache(maxsize=1024)
def policies(version_uid: str) -> Policies:
    """The policies of a version, which never changes."""
    spec = ServiceVersion.objects.values_list("spec", flat=True).get(uid=version_uid)
    service = spec.get("service") or {}
    restart = service.get("restart") or {}
    known = {name: restart[name] for name in RestartPolicy.__dataclass_fields__ if restart.get(name) is not None}
    return Policies(
        restart=RestartPolicy(**known),
        drain_seconds=float(service.get("drain_seconds", 30.0)),
        max_launches=service.get("max_launches"),
        rollout=service.get("rollout") or {},
        rollouts=_rollout_policy(spec, service),
        spot=spot_policy(spec),
        initial_delay=_initial_delay(service),
    )


def _rollout_policy(spec: dict[str, Any], service: dict[str, Any]) -> RolloutPolicy:
    """What `service.rollout` says besides the bounds."""
    rollout = service.get("rollout") or {}
    known = {name: rollout[name] for name in RolloutPolicy.__dataclass_fields__ if rollout.get(name) is not None}
    known["progress_deadline"] = rollout.get("progress_deadline_seconds") or _initial_delay(service) + BEYOND_SECONDS
    return RolloutPolicy(**known, one_port=one_port(spec))


def _initial_delay(service: dict[str, Any]) -> float:
    probe = service.get("readiness_probe") or {}
    return float(probe.get("initial_delay_seconds", INITIAL_DELAY_SECONDS))


def _operations(world: World) -> dict[int, OperationView]:
    """Live operations by replica."""
    by_replica: dict[int, OperationView] = {}
    for row in Operation.objects.filter(ALIVE).order_by("id"):
        view = OperationView(
            id=row.pk,
            kind=OperationKind(row.kind),
            status=OperationStatus(row.status),
            service_id=row.service_id,
            replica_id=row.replica_id,
            created_at=row.created_at,
            enqueued_at=row.enqueued_at,
            retry_at=row.retry_at,
            cancelling=row.cancel_requested_at is not None,
            deliveries=row.deliveries,
        )
        by_replica[row.replica_id] = view
        world.operations.append(view)
        world.waits_for[row.pk] = row.waits_for
        watch = (row.watch[0], row.watch[1]) if row.watch else None
        world.owned.append(
            Owned(
                row.pk, view.status, row.owner_host, row.owner_pid, row.owner_start, row.claim, row.heartbeat_at, watch
            )
        )
    return by_replica


def _view(row: dict[str, Any], operation: OperationView | None) -> ReplicaView:
    return ReplicaView(
        id=row["id"],
        number=row["number"],
        version=row["version_number"],
        state=ReplicaState(row["state"]),
        state_since=row["state_since"],
        created_at=row["created_at"],
        outcome=ReplicaState(row["outcome"]) if row["outcome"] else None,
        launched_at=row["launched_at"],
        ready_at=row["ready_at"],
        ended_at=row["ended_at"],
        restarts=row["restarts"],
        replaces=row["replaces"],
        retire_reason=row["retire_reason"] or None,
        reason=row["reason"],
        operation=operation,
        adopted_at=row["adopted_at"],
        probed_at=row["probe_at"] if row["probe_ok"] else None,
        probe_failure=row["probe_detail"] if row["probe_ok"] is False else "",
        spot=row["spot"],
    )
