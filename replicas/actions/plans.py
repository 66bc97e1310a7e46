"""What a move would do to the replicas that are there: their rows, read for core.preview."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from replicas.actions import moves
from replicas.actions.versions import Draft
from replicas.core.preview import Move, There, preview, scaling
from replicas.core.spec import Spec, listens_on_one_port
from replicas.core.values import Desired, ReplicaState, RolloutKind, RolloutMode
from replicas.models import Replica, Service, ServiceVersion
from replicas.models.fields import ALIVE

WAY_OUT = (ReplicaState.DRAINING, ReplicaState.SHUTTING_DOWN)


@dataclass(frozen=True, slots=True)
class Alive:
    """The live replicas of a service: by version, then state, with the versions' process digests; and who leaves."""

    counts: Mapping[int, Mapping[ReplicaState, int]]
    digests: Mapping[int, str]
    leaving: int


def plan_of(draft: Draft, spec: Spec, service: Service | None, kind: str) -> list[str]:
    """The lines that say what carrying the draft out does, in order. `kind` is the proposal's; unchanged has none."""
    if kind == "unchanged":
        return []
    before = service.version if service is not None and service.desired == Desired.UP else None
    if service is None:
        move = Move(1, RolloutKind.FIRST, RolloutMode.ROLLING, one_port=listens_on_one_port(spec))
        return preview(move, draft.target, (), None, spec)
    alive = _alive(service)
    if before is not None and _same(before, draft):
        return scaling(draft.target, _there(alive, before.process_digest, {}))
    kind = RolloutKind.FIRST if before is None else RolloutKind.UPDATE
    wish = Wish(_number(service, draft), kind, draft.process_digest, draft.spec, draft.target, draft.mode)
    return _plan(service, before, wish, alive)


def plan_back(service: Service, old: ServiceVersion, kind: RolloutKind, target: int) -> list[str]:
    """The lines that say what going back to an earlier version does; `kind` is the rollout's."""
    wish = Wish(service.last_version + 1, kind, old.process_digest, old.spec, target)
    return _plan(service, service.version, wish, _alive(service))


def plan_restart(service: Service, active: ServiceVersion) -> list[str]:
    """The lines that say what replacing every replica does."""
    number = service.last_version + 1
    wish = Wish(number, RolloutKind.RESTART, f"{number}:{active.process_digest}", active.spec, service.target)
    return _plan(service, active, wish, _alive(service))


@dataclass(frozen=True, slots=True)
class Wish:
    """A version that is about to be active: its number, what its replicas are made from, its spec, its target."""

    number: int
    kind: RolloutKind
    process: str
    spec: Mapping[str, Any]
    target: int
    mode: RolloutMode | None = None


def _plan(service: Service, before: ServiceVersion | None, wish: Wish, alive: Alive) -> list[str]:
    groups = moves.there(service, before)
    mode, switched = moves.way_to(wish.process, wish.spec, before, groups, wish.mode)
    going_on = moves.live_of(service.pk)
    spec = _spec(service, wish.spec)
    good = moves.good_version(service)
    move = Move(
        version=wish.number,
        kind=wish.kind,
        mode=mode,
        good_version=good,
        good_fits=_process_of(service, good) == wish.process,
        switched=switched,
        one_port=listens_on_one_port(spec),
        superseded=going_on.to_version if going_on else 0,
        leaving=alive.leaving,
    )
    there = _there(alive, wish.process, {group.version: group.listed or group.version == good for group in groups})
    return preview(move, wish.target, there, _spec(service, before.spec) if before else None, spec)


def _process_of(service: Service, number: int) -> str | None:
    versions = ServiceVersion.objects.filter(service=service, number=number)
    return versions.values_list("process_digest", flat=True).first()


def _spec(service: Service, form: Mapping[str, Any]) -> Spec:
    return Spec.from_json({**form, "name": service.name})


def _number(service: Service, draft: Draft) -> int:
    """The number that the draft will have: a service that is down comes up with the very version that it had."""
    active = service.version
    if active is not None and _same(active, draft) and not draft.files_digest:
        return active.number
    return service.last_version + 1


def _same(before: ServiceVersion, draft: Draft) -> bool:
    """True when the draft asks for what the version is."""
    return (before.digest, before.files_digest) == (draft.digest, draft.files_digest)


def _alive(service: Service) -> Alive:
    rows = Replica.objects.filter(ALIVE, service=service).values_list(
        "version_number", "state", "version__process_digest"
    )
    counts: dict[int, Counter[ReplicaState]] = defaultdict(Counter)
    digests, leaving = {}, 0
    for version, state, process in rows:
        if state in WAY_OUT:
            leaving += 1
            continue
        counts[version][ReplicaState(state)] += 1
        digests[version] = process
    return Alive(counts, digests, leaving)


def _there(alive: Alive, process: str, listed: Mapping[int, bool]) -> list[There]:
    return [
        There(version, counts, adopted=alive.digests[version] == process, listed=listed.get(version, True))
        for version, counts in sorted(alive.counts.items())
    ]
