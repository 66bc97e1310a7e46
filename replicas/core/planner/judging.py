"""What becomes of a rollout: that it gets on, is promoted, switches, has come to a good end, or is given up."""

from datetime import datetime

from replicas.core.backoff import waits_until
from replicas.core.history import ended_at, failures
from replicas.core.planner.actions import Fail, OnRollout, Plan, Progress, Promote, Rollback, Succeed, Switch
from replicas.core.planner.fleet import Fleet, given_up
from replicas.core.planner.proof import Proof, ready_since
from replicas.core.planner.rolling import in_canary
from replicas.core.rollout import turns_back
from replicas.core.values import RolloutKind, RolloutMode, RolloutState
from replicas.core.views import ReplicaView, RolloutView, ServiceView
from replicas.core.wording import after, seconds, some, times


def judge(service: ServiceView, fleet: Fleet, proof: Proof, halted: str | None, now: datetime) -> Plan:
    """The decision on the rollout that is due, one at a time, and when the next could be."""
    rollout = service.rollout
    if rollout is None:
        return Plan()
    if given_up(service):
        back = _turn_back(service, rollout, rollout.reason)
        return Plan(actions=(back,) if back else ())
    if rollout.state is not RolloutState.PROGRESSING:
        return Plan()
    if service.target and proof.proven > rollout.best:
        reason = f"{proof.proven} of {some(service.target)} of version {rollout.to_version} proved"
        return Plan(actions=(Progress(rollout.id, rollout.revision, proof.proven, reason),))
    if rollout.paused_at is not None:
        return Plan()
    hopeless = halted if rollout.good_version or not fleet.new else None  # one on its way may still be ready
    failure = hopeless or why_failed(service, rollout, fleet, proof, now)
    if failure:
        return Plan(actions=_give_up(service, rollout, failure))
    return _get_on(service, rollout, fleet, proof, now)


def _give_up(service: ServiceView, rollout: RolloutView, reason: str) -> tuple[OnRollout, ...]:
    failed = Fail(rollout.id, rollout.revision, reason)
    back = _turn_back(service, rollout, reason) if rollout.good_version else None
    return (failed, back) if back else (failed,)


def _turn_back(service: ServiceView, rollout: RolloutView, reason: str) -> Rollback | None:
    """The way back that a failure calls for by itself; a rollback that fails is not followed by another."""
    if not turns_back(rollout.kind, service.policy.auto_rollback):
        return None
    return Rollback(rollout.id, f"back to version {rollout.good_version}{after(reason)}")


def can_fail(service: ServiceView, rollout: RolloutView) -> bool:
    """True where there is something to fall back on; else the version is just tried again, until it is hopeless.

    Going back to what is good already is such a case: its replicas are those of the good version.
    """
    return rollout.good_version != 0 and not (rollout.kind is RolloutKind.ROLLBACK and service.good_fits)


def why_failed(service: ServiceView, rollout: RolloutView, fleet: Fleet, proof: Proof, now: datetime) -> str | None:
    """Why the new version is given up now; None while it is not."""
    if not can_fail(service, rollout):
        return None
    failed = failures(service, fleet.ended)
    if len(failed) >= service.policy.max_failures:
        last = max(failed, key=ended_at)
        return (
            f"version {rollout.to_version} failed {times(len(failed))}; the last one was"
            f" replica {last.number}{after(last.reason)}"
        )
    if runs_out(service, rollout) and deadline(service, rollout, now) is None:
        return (
            f"version {rollout.to_version} made no progress for {seconds(service.policy.progress_deadline)}:"
            f" {proof.proven} of {some(service.target)} proved"
        )
    return None


def deadline(service: ServiceView, rollout: RolloutView, now: datetime) -> datetime | None:
    """When the rollout fails unless it gets on; None when that moment has passed."""
    return waits_until(rollout.progressed_at, service.policy.progress_deadline, now)


def runs_out(service: ServiceView, rollout: RolloutView) -> bool:
    """True while the deadline runs: something more of the new version is to prove itself."""
    if rollout.paused_at is not None or rollout.switched_at is not None or not can_fail(service, rollout):
        return False
    canary = in_canary(service)
    return rollout.best < (service.target if canary is None else canary)


def _get_on(service: ServiceView, rollout: RolloutView, fleet: Fleet, proof: Proof, now: datetime) -> Plan:
    """Promote, switch or succeed, where that is due; else when the deadline is."""
    canary = in_canary(service)
    moment = baked(service, fleet, canary, now) if canary is not None else None
    if canary is not None and moment is not None and moment <= now and proof.proven >= canary:
        reason = f"{some(canary, 'canary replica')} ready for {seconds(service.policy.bake_seconds or 0)}"
        return Plan(actions=(Promote(rollout.id, rollout.revision, reason),))
    if service.target and proof.proven >= service.target:
        if rollout.mode is RolloutMode.BLUE_GREEN and rollout.switched_at is None:
            reason = f"version {rollout.to_version} is complete and proved: {some(proof.proven)}"
            return Plan(actions=(Switch(rollout.id, rollout.revision, service.target, reason),))
        if canary is None and _alone(service, fleet):
            reason = f"version {rollout.to_version} has taken over: {some(proof.proven)} proved"
            return Plan(actions=(Succeed(rollout.id, rollout.revision, reason),))
    end = deadline(service, rollout, now) if runs_out(service, rollout) else None
    return Plan(wake_at=min((wake for wake in (moment, end) if wake is not None and wake > now), default=None))


def baked(service: ServiceView, fleet: Fleet, canary: int, now: datetime) -> datetime | None:
    """When all canaries will have been ready for bake_seconds without a failure; None while they are not all ready.

    None also where only a person promotes.
    """
    if service.policy.bake_seconds is None:
        return None
    serving = [replica for replica in fleet.new if ready_since(service, replica) is not None]
    if len(serving) < canary:
        return None
    wait = max(service.policy.bake_seconds, service.policy.min_ready_seconds)
    since = max(_moments(service, fleet, serving), default=now)
    return waits_until(since, wait, now) or now


def _moments(service: ServiceView, fleet: Fleet, serving: list[ReplicaView]) -> list[datetime]:
    """When the canaries became ready, and when one failed."""
    moments = [since for replica in serving if (since := ready_since(service, replica)) is not None]
    return moments + [ended_at(replica) for replica in failures(service, fleet.ended)]


def _alone(service: ServiceView, fleet: Fleet) -> bool:
    """True when nothing of another version is alive."""
    others = (*fleet.old, *fleet.held, *fleet.leaving, *(replica for replica, _ in fleet.unwanted))
    return all(replica.version == service.version for replica in others)
