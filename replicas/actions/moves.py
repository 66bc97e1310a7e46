"""The rows of rollouts: how one begins, how the controller moves it on, how it ends.

A service has one that goes on (PROGRESSING) at most; its latest one stays in force as history.
"""

from collections.abc import Collection, Mapping
from typing import Any

from replicas import clock
from replicas.actions.transition import change, locked, record, writing
from replicas.core import beginning
from replicas.core.beginning import Group
from replicas.core.rollout import listed, one_port
from replicas.core.values import Desired, ReplicaState, RolloutKind, RolloutMode, RolloutState
from replicas.models import Replica, Rollout, Service, ServiceVersion
from replicas.models.fields import ALIVE

S = RolloutState
WAY_OUT = (ReplicaState.DRAINING, ReplicaState.SHUTTING_DOWN)


def latest(service_id: int) -> Rollout | None:
    """The service's newest rollout, going on or ended."""
    return Rollout.objects.select_related("service").filter(service_id=service_id).order_by("-id").first()


def live_of(service_id: int) -> Rollout | None:
    """The service's rollout that goes on."""
    return Rollout.objects.select_related("service").filter(service_id=service_id, state=S.PROGRESSING).first()


# Begun


def begin(
    service: Service, version: ServiceVersion, kind: RolloutKind, *, actor: str, mode: RolloutMode | None = None
) -> Rollout:
    """Begin the move of the service to `version`, which is about to become its active one; to be called before that.

    Inside the caller's `writing()`. A rollout that goes on is superseded. `mode` overrides the spec's.
    """
    before = service.version if service.desired == Desired.UP else None
    good = good_version(service)
    groups = there(service, before)
    superseded = live_of(service.pk)
    if superseded is not None:
        end(superseded, S.SUPERSEDED, reason=f"superseded by version {version.number}", actor=actor)
    begun = beginning.begin(
        groups,
        version.process_digest,
        before=before.process_digest if before else None,
        asked=_asked(version.spec, mode),
        good=good,
        one_port=one_port(version.spec),
    )
    now = clock.now()
    rollout = Rollout.objects.create(
        service=service,
        kind=kind,
        mode=begun.mode,
        from_version=before.number if before else 0,
        to_version=version.number,
        good_version=good,
        held=list(begun.held),
        from_target=service.target if before else None,
        actor=actor,
        revision=1,
        started_at=now,
        progressed_at=now,
        switched_at=now if begun.switched else None,
    )
    record(rollout, "rollout_begun", reason=_why(rollout), actor=actor, new=S.PROGRESSING)
    return rollout


def there(service: Service, before: ServiceVersion | None) -> list[Group]:
    """The versions that have live replicas, and whether those are listed under the latest rollout."""
    rows = set(
        Replica.objects.filter(ALIVE, service_id=service.pk)
        .exclude(state__in=WAY_OUT)
        .values_list("version_number", "version__process_digest")
    )
    row = latest(service.pk)
    in_force = row.view() if row else None
    same = {number for number, process in rows if before is not None and process == before.process_digest}
    return [Group(number, process, listed(in_force, number, same)) for number, process in sorted(rows)]


def way_to(
    process: str,
    spec: Mapping[str, Any],
    before: ServiceVersion | None,
    groups: Collection[Group],
    mode: RolloutMode | None,
) -> tuple[RolloutMode, bool]:
    """How a move from `before` to a version with the digest `process` and that spec would begin: mode, and switched."""
    begun = beginning.begin(
        groups,
        process,
        before=before.process_digest if before else None,
        asked=_asked(spec, mode),
        good=0,
        one_port=one_port(spec),
    )
    return begun.mode, begun.switched


def _asked(spec: Mapping[str, Any], mode: RolloutMode | None) -> RolloutMode:
    """The mode that was given at the apply, else the spec's."""
    own = ((spec.get("service") or {}).get("rollout") or {}).get("mode")
    return mode or RolloutMode(own or RolloutMode.ROLLING)


def good_version(service: Service) -> int:
    """The number of the version that proved itself last; 0 for none."""
    rows = Rollout.objects.filter(service_id=service.pk).order_by("-id")
    if service.version is not None and not rows.exists():  # it is older than rollouts are
        serves = Replica.objects.filter(version=service.version, state=ReplicaState.READY).exists()
        return service.version.number if serves else 0
    ends = (S.SUCCEEDED, S.PROGRESSING, S.SUPERSEDED)
    return beginning.good_version(row.view() for row in rows.filter(best__gt=0, state__in=ends))


def _why(rollout: Rollout) -> str:
    what = {
        RolloutKind.FIRST: f"version {rollout.to_version} is brought up",
        RolloutKind.UPDATE: f"from version {rollout.from_version} to {rollout.to_version}",
        RolloutKind.RESTART: f"every replica is replaced by one of version {rollout.to_version}",
        RolloutKind.ROLLBACK: f"back from version {rollout.from_version}, as version {rollout.to_version}",
    }
    way = {RolloutMode.IN_PLACE: "in place", RolloutMode.ROLLING: "rolling", RolloutMode.BLUE_GREEN: "blue-green"}
    return f"{what[RolloutKind(rollout.kind)]}, {way[RolloutMode(rollout.mode)]}"


def end(rollout: Rollout, state: RolloutState, *, reason: str, actor: str) -> bool:
    return change_rollout(rollout, state.lower(), reason=reason, actor=actor, state=state, ended_at=clock.now())


def change_rollout(rollout: Rollout, trigger: str, *, reason: str, actor: str, **fields: Any) -> bool:
    """Change the rollout, which keeps the reason; what happened to it is named rollout_paused and the like."""
    return change(
        rollout,
        f"rollout_{trigger}",
        reason=reason,
        actor=actor,
        old=rollout.state,
        new=fields.get("state", rollout.state),
        columns={"reason": reason},
        **fields,
    )


def begin_anew(service_id: int, *, reason: str, actor: str) -> None:
    """More is asked of the rollout that goes on: its deadline counts from now. Inside the caller's `writing()`."""
    rollout = live_of(service_id)
    if rollout is not None:
        change_rollout(rollout, "extended", reason=reason, actor=actor, progressed_at=clock.now())


def stop(service: Service, *, reason: str, actor: str) -> None:
    """The service is not wanted any more: what goes on is ABORTED. Inside the caller's `writing()`."""
    rollout = live_of(service.pk)
    if rollout is not None:
        end(rollout, S.ABORTED, reason=reason, actor=actor)


# Moved on by the controller; each is void, and False, once the rollout is at another revision


def _decided(rollout_id: int, revision: int) -> Rollout | None:
    rollout = locked(Rollout, rollout_id)
    return rollout if rollout is not None and rollout.revision == revision and rollout.state == S.PROGRESSING else None


def progress(rollout_id: int, revision: int, best: int, *, reason: str, actor: str) -> bool:
    """More replicas of the new version have proved themselves than ever before."""
    with writing():
        rollout = _decided(rollout_id, revision)
        return rollout is not None and change_rollout(
            rollout, "progressed", reason=reason, actor=actor, best=best, progressed_at=clock.now()
        )


def promoted(rollout_id: int, revision: int, *, reason: str, actor: str) -> bool:
    """The canary has baked."""
    with writing():
        rollout = _decided(rollout_id, revision)
        now = clock.now()
        return rollout is not None and change_rollout(
            rollout, "promoted", reason=reason, actor=actor, promoted_at=now, progressed_at=now
        )


def switch(rollout_id: int, revision: int, *, reason: str, actor: str, least: int = 0) -> bool:
    """From now on the new version is listed and no other: one step for everybody.

    False also when fewer than `least` of its replicas are READY by now.
    """
    with writing():
        rollout = _decided(rollout_id, revision)
        if rollout is None:
            return False
        ready = Replica.objects.filter(
            service_id=rollout.service_id, version_number=rollout.to_version, state=ReplicaState.READY
        )
        if least and ready.count() < least:
            return False
        now = clock.now()
        return change_rollout(rollout, "switched", reason=reason, actor=actor, switched_at=now, progressed_at=now)


def succeed(rollout_id: int, revision: int, *, reason: str, actor: str) -> bool:
    """The new version has taken over."""
    with writing():
        rollout = _decided(rollout_id, revision)
        return rollout is not None and end(rollout, S.SUCCEEDED, reason=reason, actor=actor)


def fail(rollout_id: int, revision: int, *, reason: str, actor: str) -> bool:
    """The new version has not proved itself."""
    with writing():
        rollout = _decided(rollout_id, revision)
        return rollout is not None and end(rollout, S.FAILED, reason=reason, actor=actor)
