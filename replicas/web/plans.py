"""What applying a draft would do to the replicas that are there: their rows, read for core.preview."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from replicas.actions import moves
from replicas.actions.versions import Draft
from replicas.core.preview import Move, There, preview, scaling
from replicas.core.spec import Spec, hardcoded_port
from replicas.core.values import LIVE, Desired, ReplicaState, RolloutKind, RolloutMode
from replicas.models import Replica, Service, ServiceVersion

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
        move = Move(1, RolloutKind.FIRST, RolloutMode.ROLLING, one_port=one_port(spec))
        return preview(move, draft.target, (), None, spec)
    alive = _alive(service)
    if before is not None and _same(before, draft):
        return scaling(draft.target, _there(alive, before.process_digest, {}))
    groups = moves.there(service, before)
    mode, switched = moves.way_to(draft.process_digest, draft.spec, before, groups, draft.mode)
    going_on = moves.live_of(service.pk)
    move = Move(
        version=_number(service, draft),
        kind=RolloutKind.FIRST if before is None else RolloutKind.UPDATE,
        mode=mode,
        good_version=moves.good_version(service),
        switched=switched,
        one_port=one_port(spec),
        superseded=going_on.to_version if going_on else 0,
        leaving=alive.leaving,
    )
    there = _there(alive, draft.process_digest, {group.version: group.listed for group in groups})
    return preview(move, draft.target, there, Spec.from_json(before.spec) if before else None, spec)


def one_port(spec: Spec) -> bool:
    """True when no two replicas of the spec can run beside each other: they listen on the same port of one host."""
    section = spec.service.model_copy(update={"replicas": 2, "replica_policy": None})
    return hardcoded_port(spec.model_copy(update={"service": section})) is not None


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
    rows = Replica.objects.filter(service=service, state__in=LIVE).values_list(
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
