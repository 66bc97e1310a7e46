"""What a rollout means: how far it may go from the target, and whose replicas get traffic while it goes on."""

import math
from collections.abc import Collection, Mapping
from typing import Any

from replicas.core.values import ReplicaState, RolloutKind, RolloutMode
from replicas.core.views import ReplicaView, RolloutView, ServiceView

DEFAULT_SURGE = "25%"
DEFAULT_UNAVAILABLE = 0


def bounds(rollout: Mapping[str, Any], target: int) -> tuple[int, int]:
    """(max_surge, max_unavailable) as numbers of replicas for a target.

    Kubernetes' rule for Deployments: a percent of the target is rounded up for the surge and down for the unavailable;
    when both come to 0, one replica may be unavailable, or nothing could ever move.
    """
    surge = amount(rollout.get("max_surge", DEFAULT_SURGE), target, math.ceil)
    unavailable = amount(rollout.get("max_unavailable", DEFAULT_UNAVAILABLE), target, math.floor)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return surge, unavailable


def turns_back(kind: str, auto_rollback: bool) -> bool:
    """True where a rollout of this kind that fails is followed by a rollback by itself; a rollback never is."""
    return auto_rollback and kind != RolloutKind.ROLLBACK


def amount(value: Any, target: int, rounded: Any) -> int:
    """A number as it is; a text such as "25%" as that part of the target, rounded. None counts as 0."""
    if value is None:
        return 0
    if isinstance(value, str) and value.endswith("%"):
        return int(rounded(target * float(value[:-1]) / 100))
    return int(value)


def listed(rollout: RolloutView | None, version: int, compatible: Collection[int] = ()) -> bool:
    """True when READY replicas of the version get traffic. `rollout` is the service's latest, also one that has ended.

    `compatible`: versions whose replicas `to_version` adopts. Blue-green: before its switch only the versions that
    were listed when it began, after it only the new one.
    """
    if rollout is None:
        return True
    if rollout.mode is not RolloutMode.BLUE_GREEN:
        return version not in rollout.held
    if rollout.switched_at is not None:
        return version == rollout.to_version or version in compatible
    return version not in rollout.held and version != rollout.to_version


def serves(service: ServiceView, replica: ReplicaView) -> bool:
    """True when the replica gets traffic: READY and listed."""
    return replica.state is ReplicaState.READY and listed(service.rollout, replica.version, service.compatible)


def wanted(spec: Mapping[str, Any]) -> int:
    """Replicas that a spec (its JSON form) asks for to begin with; as `Spec.target`, without the parser."""
    service = spec.get("service") or {}
    pool = spec.get("pool") or service.get("pool")
    policy = service.get("replica_policy") or {}
    counts = [policy.get("min_replicas"), service.get("replicas"), service.get("workers")]
    if pool:
        counts = [pool.get("workers"), pool.get("min_workers")]
    return next((int(count) for count in counts if count is not None), 1)


def canaries(amount_: int | str | None, target: int) -> int | None:
    """How many replicas of the new version come first; None where all may. A percent is rounded up, at least 1."""
    if amount_ is None or amount_ == 0:
        return None
    return max(1, min(target, amount(amount_, target, math.ceil)))


def one_port(spec: Mapping[str, Any]) -> bool:
    """True when every replica of the spec (its JSON form) listens on the same port of this host, so that two of them,
    an old and a new one too, cannot run side by side.
    """
    run = str(spec.get("run") or "")
    ports = (spec.get("service") or {}).get("ports") or (spec.get("resources") or {}).get("ports")
    if spec.get("provider", "local") != "local" or not run or not ports:
        return False
    from replicas.core.spec import Spec, listens_on_one_port  # the parser is large, and few specs get here

    return listens_on_one_port(Spec.from_json(spec))
