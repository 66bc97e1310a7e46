"""What a rollout waits for, since when and until when: the sentence that the user reads while it does."""

from datetime import datetime

from replicas.core.planner.fleet import Fleet, count_ready, given_up
from replicas.core.planner.judging import baked, deadline, runs_out
from replicas.core.planner.proof import Proof
from replicas.core.planner.rolling import Allowance, in_canary
from replicas.core.values import RolloutKind, RolloutMode, RolloutState
from replicas.core.views import RolloutView, ServiceView
from replicas.core.wording import after, at, some


def tell(
    service: ServiceView, fleet: Fleet, proof: Proof, allowance: Allowance, halted: str | None, now: datetime
) -> tuple[str, ...]:
    """The note on the rollout; none where nothing is to be said."""
    rollout = service.rollout
    if rollout is None or halted:
        return _tell_older(service, fleet, allowance, halted)
    if given_up(service):
        kept = f"; version {rollout.good_version} is kept in its place"
        return (f"version {rollout.to_version} was given up{after(rollout.reason)}{kept}",)
    if rollout.state is not RolloutState.PROGRESSING:
        return _tell_older(service, fleet, allowance, halted)
    if rollout.paused_at is not None:
        proved = _proved(service, proof)
        return (f"the rollout of version {rollout.to_version} is paused since {at(rollout.paused_at)}: {proved}",)
    if service.target == 0:
        return ()
    return _tell_moving(service, rollout, fleet, proof, allowance, now)


def _tell_older(service: ServiceView, fleet: Fleet, allowance: Allowance, halted: str | None) -> tuple[str, ...]:
    if not fleet.old or not allowance.old:
        return ()
    older = some(allowance.old, "older replica")
    if halted:
        return (f"{older} kept, because version {service.version} was given up",)
    ready = f"{count_ready(fleet.new)} of {service.target} ready"
    return (f"version {service.version} takes over: {ready}, {older} kept until it is",)


def _tell_moving(
    service: ServiceView, rollout: RolloutView, fleet: Fleet, proof: Proof, allowance: Allowance, now: datetime
) -> tuple[str, ...]:
    canary = in_canary(service)
    parts = [_what(service, rollout, fleet, proof, allowance)]
    if proof.due is not None:
        parts.append(f"the next one will have proved itself at {at(proof.due)}")
    elif proof.unasked:
        parts.append(f"{some(proof.unasked)} {'waits' if proof.unasked == 1 else 'wait'} for one more probe to pass")
    if canary is not None and proof.proven >= canary:
        moment = baked(service, fleet, canary, now)
        parts.append("it waits to be promoted" if moment is None else f"it is promoted at {at(moment)}")
    if service.policy.one_port and fleet.old:
        parts.append("run listens on one port of this host, so an old one goes before a new one comes")
    end = deadline(service, rollout, now) if runs_out(service, rollout) else None
    if end is not None:
        parts.append(f"it fails unless it gets on by {at(end)}")
    return ("; ".join(parts),) if len(parts) > 1 or rollout.kind is not RolloutKind.FIRST else ()


def _what(service: ServiceView, rollout: RolloutView, fleet: Fleet, proof: Proof, allowance: Allowance) -> str:
    version, since = f"version {rollout.to_version}", f"since {at(rollout.started_at)}"
    older = some(min(allowance.old, len(fleet.old)), "older replica")
    if rollout.mode is RolloutMode.BLUE_GREEN:
        if rollout.switched_at is None:
            return (
                f"{version} is made ready beside {older} {since}: {_proved(service, proof)}, switched to when all are"
            )
        kept = f"; {older} kept until {at(allowance.kept_until)}" if allowance.kept_until and fleet.old else ""
        return f"{version} serves since {at(rollout.switched_at)}: {_proved(service, proof)}{kept}"
    canary = in_canary(service)
    if canary is not None:
        first = some(canary, "replica")
        return f"version {rollout.to_version} is tried with {first} {since}: {min(proof.proven, canary)} proved"
    kept = f", {older} kept until it is" if fleet.old and allowance.old else ""
    verb = "comes up" if rollout.kind is RolloutKind.FIRST else "takes over"
    return f"{version} {verb} {since}: {_proved(service, proof)}{kept}"


def _proved(service: ServiceView, proof: Proof) -> str:
    return f"{proof.proven} of {service.target} proved"
