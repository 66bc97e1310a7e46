"""What is done to rollouts: begun with a version, steered by people, turned back by the controller."""

from replicas import clock
from replicas.actions import versions
from replicas.actions.keeping import has_proved, kept_files, last_other
from replicas.actions.moves import (
    begin,
    change_rollout,
    end,
    fail,
    latest,
    live_of,
    progress,
    promoted,
    stop,
    succeed,
    switch,
)
from replicas.actions.operations import Refused
from replicas.actions.plans import plan_back
from replicas.actions.transition import change, locked, writing
from replicas.actions.versions import Conflict
from replicas.core.rollout import wanted
from replicas.core.values import Desired, RolloutKind, RolloutMode, RolloutState
from replicas.models import Rollout, Service, ServiceVersion

__all__ = [
    "Conflict",
    "Refused",
    "abort",
    "begin",
    "fail",
    "latest",
    "live_of",
    "pause",
    "plan_to_go_back",
    "progress",
    "promote",
    "promoted",
    "resume",
    "retargeted",
    "rollback",
    "stop",
    "succeed",
    "switch",
    "turn_back",
    "without_files",
]

S = RolloutState


def _going_on(service_id: int, verb: str, expected: int | None = None) -> tuple[Service, Rollout]:
    """The service and its rollout, both held. Raises Refused, and Conflict when it is not the rollout `expected`."""
    service = _service(service_id, verb)
    found = live_of(service_id)
    rollout = locked(Rollout, found.pk) if found else None
    if rollout is None:
        raise Refused(
            f"no rollout of service {service.name} is going on, so there is nothing to {verb}; "
            "`rollback` goes back to an earlier version"
        )
    if expected is not None and rollout.pk != expected:
        raise Conflict(
            f"another rollout of service {service.name} is going on by now, to version {rollout.to_version}; "
            f"look at it before you {verb} it"
        )
    rollout.service = service
    return service, rollout


def _service(service_id: int, verb: str) -> Service:
    service = locked(Service, service_id)
    if service is None:
        raise Refused("the service is gone; `status` lists those that there are")
    if service.version is None or service.desired != Desired.UP:
        raise Refused(f"service {service.name} is taken down, so there is nothing to {verb}; apply it to bring it up")
    return service


def pause(service_id: int, *, actor: str, expected: int | None = None) -> Rollout:
    """Let the rollout move nothing until it is resumed; its deadline stands still. Raises Refused.

    `expected`: the id of the rollout that is meant, here and below; raises Conflict when another one goes on by now.
    """
    with writing():
        _, rollout = _going_on(service_id, "pause", expected)
        if rollout.paused_at is None:
            change_rollout(rollout, "paused", reason=f"paused by {actor}", actor=actor, paused_at=clock.now())
        return rollout


def resume(service_id: int, *, actor: str, expected: int | None = None) -> Rollout:
    """Let a paused rollout go on; its deadline begins anew. Raises Refused."""
    with writing():
        _, rollout = _going_on(service_id, "resume", expected)
        if rollout.paused_at is not None:
            change_rollout(
                rollout, "resumed", reason=f"resumed by {actor}", actor=actor, paused_at=None, progressed_at=clock.now()
            )
        return rollout


def promote(service_id: int, *, actor: str, expected: int | None = None) -> Rollout:
    """Let a canary become everybody, or end the keeping of the old replicas after a switch. Raises Refused."""
    with writing():
        service, rollout = _going_on(service_id, "promote", expected)
        if rollout.promoted_at is not None:
            return rollout
        name = f"the rollout of service {service.name}"
        if rollout.mode == RolloutMode.BLUE_GREEN:
            if rollout.switched_at is None:
                raise Refused(f"{name} switches by itself once version {rollout.to_version} is complete and ready")
        elif not _has_canary(service, rollout):
            raise Refused(f"{name} has no canary, so it goes on by itself; `pause` holds it, `abort` turns it back")
        now = clock.now()
        change_rollout(
            rollout, "promoted", reason=f"promoted by {actor}", actor=actor, promoted_at=now, progressed_at=now
        )
        return rollout


def _has_canary(service: Service, rollout: Rollout) -> bool:
    """True where the planner holds the new version at its canary until the promotion."""
    if rollout.kind != RolloutKind.UPDATE or rollout.mode != RolloutMode.ROLLING or not rollout.good_version:
        return False
    assert service.version is not None
    section = (service.version.spec.get("service") or {}).get("rollout") or {}
    return bool(section.get("canary"))


def abort(service_id: int, *, actor: str, expected: int | None = None) -> Rollout:
    """Give the rollout up and go back to the last good version: the rollout that does so. Raises Refused."""
    with writing():
        service, rollout = _going_on(service_id, "abort", expected)
        good = _version(service, rollout.good_version) if rollout.good_version else None
        if good is None:
            raise Refused(
                f"no version of service {service.name} has proved itself yet, so there is none to go back to; "
                "apply a corrected version, or take the service down"
            )
        if rollout.kind == RolloutKind.ROLLBACK and _same(service, good):
            raise Refused(
                f"the rollout of service {service.name} goes back to version {good.number} already; "
                "apply a corrected version, or wait for it"
            )
        end(rollout, S.ABORTED, reason=f"aborted by {actor}", actor=actor)
        return _go_back(service, good, message=f"back to version {good.number}: aborted by {actor}", actor=actor)


def rollback(
    service_id: int, number: int | None = None, *, actor: str, message: str = "", expected: int | None = None
) -> Rollout:
    """Go back to version `number`, without one to the last other that proved itself: the rollout that does so.

    To one that never proved itself it goes as in an update: that may have to be turned back.

    What becomes active is a new version with the text, spec, secrets and files of the old one, as Nomad's job revert
    does it. `expected`: the version that is to be left; raises Conflict when it is not active any more. Raises Refused.
    """
    with writing():
        service = _service(service_id, "roll back")
        active = service.version
        assert active is not None
        if expected is not None and active.number != expected:
            raise Conflict(
                f"service {service.name} is at version {active.number} by now, not {expected}; "
                "look at what changed and roll back again"
            )
        old = _version(service, number) if number is not None else _default(service)
        if old is None:
            raise Refused(_no_such(service, number))
        if old.pk == active.pk:
            raise Refused(f"version {old.number} of service {service.name} is the active one; name an earlier one")
        return _go_back(
            service, old, kind_of_return(service, old), message=message or f"back to version {old.number}", actor=actor
        )


def kind_of_return(service: Service, old: ServiceVersion) -> RolloutKind:
    """Going back to what never proved itself may have to be turned back, as an update."""
    return RolloutKind.ROLLBACK if has_proved(service, old) else RolloutKind.UPDATE


def without_files(service: Service, old: ServiceVersion, kept: bool | None = None) -> str:
    """Why a version cannot be gone back to by its own text; "" where it can. `kept`: whether its files are."""
    if kept is None:
        kept = old.files_uid in kept_files(service.pk)
    if kept or not (old.spec.get("workdir") or old.spec.get("file_mounts")):
        return ""
    return (
        f"the files of version {old.number} of service {service.name} are gone; "
        "apply its text again, which copies them anew"
    )


def plan_to_go_back(service: Service, old: ServiceVersion) -> list[str]:
    """What `rollback` to that version would do now, in lines; none where it cannot be, or is the active one."""
    active = service.version
    if active is None or active.pk == old.pk or service.desired != Desired.UP or without_files(service, old):
        return []
    target = target_back(service, active, old)
    return plan_back(service, old, kind_of_return(service, old), target)


def target_back(service: Service, leaving: ServiceVersion, old: ServiceVersion) -> int:
    """How many replicas are wanted once `old` is back: what a hand set stays, also where it was set before the update.

    Else it is what the text of `old` says.
    """
    if service.target != wanted(leaving.spec):
        return service.target
    row = latest(service.pk)
    undone = row is not None and (row.from_version, row.to_version) == (old.number, leaving.number)
    before = row.from_target if row is not None and undone else None
    return wanted(old.spec) if before is None else before


def retargeted(rollout: Rollout) -> tuple[int, int] | None:
    """How many replicas were wanted before it began and are now; None where that has not changed."""
    now = Service.objects.values_list("target", flat=True).get(pk=rollout.service_id)
    return None if rollout.from_target in (None, now) else (rollout.from_target, now)


def _version(service: Service, number: int) -> ServiceVersion | None:
    return ServiceVersion.objects.filter(service=service, number=number).first()


def _same(service: Service, version: ServiceVersion) -> bool:
    """True when the active version asks for the same as `version`."""
    active = service.version
    return active is not None and (active.digest, active.files_digest) == (version.digest, version.files_digest)


def _no_such(service: Service, number: int | None) -> str:
    if number is not None:
        return f"service {service.name} has no version {number}; its versions are 1 to {service.last_version}"
    return f"no other version of service {service.name} has proved itself; name the version to go back to"


def _default(service: Service) -> ServiceVersion | None:
    """The version that an unfinished rollout turns back to; else the latest good one with another text."""
    assert service.version is not None
    row = latest(service.pk)
    if row is not None and row.state != S.SUCCEEDED and row.good_version not in (0, service.version.number):
        good = _version(service, row.good_version)
        if good is not None and not (row.kind == RolloutKind.ROLLBACK and _same(service, good)):
            return good
    return last_other(service)


def _go_back(
    service: Service, old: ServiceVersion, kind: RolloutKind = RolloutKind.ROLLBACK, *, message: str, actor: str
) -> Rollout:
    """Make a new version of an old one the active one. Raises Refused when the files that it needs are gone."""
    leaving = service.version
    assert leaving is not None
    kept = old.files_uid in kept_files(service.pk)
    if refusal := without_files(service, old, kept):
        raise Refused(refusal)
    target = target_back(service, leaving, old)
    plan = plan_back(service, old, kind, target)
    version = versions.make_again(service, old, message=message, actor=actor, plan=plan, kept=kept)
    rollout = begin(service, version, kind, actor=actor)
    now = clock.now()
    change(
        service,
        "rolled_back",
        reason=message,
        actor=actor,
        old=service.status,
        new=service.status,
        version=version,
        target=target,
        last_version=service.last_version,
        forgiven_at=now,
        updated_at=now,
    )
    return rollout


def turn_back(rollout_id: int, *, reason: str, actor: str) -> bool:
    """Go back to the good version after a failure. False: somebody else has begun something by now.

    Where that cannot be, the rollout says why and forgets the good version, so that it is not asked again.
    """
    with writing():
        rollout = locked(Rollout, rollout_id)
        if rollout is None or rollout.state != S.FAILED or not rollout.good_version:
            return False
        service = locked(Service, rollout.service_id)
        newest = latest(rollout.service_id)
        if service is None or service.desired != Desired.UP or newest is None or newest.pk != rollout.pk:
            return False
        rollout.service = service
        good = _version(service, rollout.good_version)
        try:
            if good is None:
                raise Refused(f"version {rollout.good_version} of service {service.name} is gone")
            _go_back(service, good, message=reason, actor=actor)
        except Refused as refused:
            change_rollout(
                rollout, "stuck", reason=f"{rollout.reason}; cannot go back: {refused}", actor=actor, good_version=0
            )
        return True
