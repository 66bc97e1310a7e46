"""Reads what is there into plain values, in a number of queries that does not grow with the number of rows."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from django.db.models import Exists, F, Max, OuterRef, Q, Subquery

from replicas.controller.picture import COLUMNS, Owned, Picture, Seen, view_of
from replicas.core.machines import spot_policy
from replicas.core.rollout import bounds, one_port
from replicas.core.values import (
    Desired,
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
from replicas.models import Replica, Rollout, Service, ServiceVersion
from replicas.models.fields import ENDED

HISTORY = timedelta(hours=1)
INITIAL_DELAY_SECONDS, BEYOND_SECONDS = 1200.0, 600.0  # as the spec's `progress_deadline` has them
UNFINISHED = (RolloutState.PROGRESSING, RolloutState.FAILED)
SETTLED = (ServiceStatus.DOWN, ServiceStatus.FAILED_CLEANUP)


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


def observe(now: datetime, picture: Picture | None = None) -> World:
    """One look at everything that is alive, and at the history that decisions need.

    Of `picture`, which the looks of one controller have in common, only what has changed is read again.
    """
    world = World()
    picture = Picture() if picture is None else picture
    rows = list(_services())
    picture.look()
    operations = _operations(world, picture)
    compatible, steady = _replicas(world, picture, rows, operations)
    rollouts = _rollouts()
    unsettled = {row.pk for row in rows if not row.proven} | ({row.pk for row in rows if row.version} - steady)
    for row in _history(now, rollouts, unsettled):
        world.replicas[row["service_id"]].append(view_of(row))
        if row["purge"]:
            world.purged_replicas.append(row["id"])
    for service in rows:
        _add_service(world, service, frozenset(compatible[service.pk]), rollouts.get(service.pk))
    return world


def _operations(world: World, picture: Picture) -> dict[int, OperationView]:
    """Live operations by replica."""
    for number, work in picture.operations.items():
        world.operations.append(work.view)
        world.owned.append(work.owned)
        world.waits_for[number] = work.waits_for
    return {view.replica_id: view for view in world.operations}


def _replicas(
    world: World, picture: Picture, rows: Sequence[Any], operations: Mapping[int, OperationView]
) -> tuple[dict[int, set[int]], set[int]]:
    """The live replicas. Gives which versions ask for the same process as the active one, by service; and the services
    of whose active version one is ready."""
    versions = {row.pk: row.version for row in rows if row.version}
    digests = {number: version.process_digest for number, version in versions.items()}
    active = {number: version.number for number, version in versions.items()}
    compatible: dict[int, set[int]] = defaultdict(set)
    steady: set[int] = set()
    for number, living in picture.replicas.items():
        view, service = living.view, living.service_id
        if living.process == digests.get(service):
            compatible[service].add(view.version)
        if view.state is ReplicaState.READY and view.version == active.get(service):
            steady.add(service)
        operation = operations.get(number)
        world.replicas[service].append(replace(view, operation=operation) if operation else view)
        world.seen.append(living.seen)
    return compatible, steady


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
