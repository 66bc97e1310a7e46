"""What a rollout means: how far it may go from the target, and whose replicas get traffic while it goes on."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from replicas.core.values import RolloutMode
from replicas.core.views import RolloutView

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


@dataclass(frozen=True, slots=True)
class Group:
    """The replicas of one version that may stay, as they are before a rollout begins; `process`: their digest."""

    version: int
    process: str
    listed: bool


def way(process: str, chosen: RolloutMode, before: str | None, there: Collection[Group]) -> tuple[RolloutMode, bool]:
    """The mode of a move to a version with the digest `process`, and whether a blue-green begins with its switch made.

    `chosen`: the mode that was asked for; `before`: the digest of the version that is left, None for none. It is in
    place where nothing else runs. A blue-green begins switched when only its own replicas are listed; where both its
    own and others are, neither set could be switched to, so it rolls.
    """
    processes = {group.process for group in there} or {before or ""}
    if processes == {process}:
        return RolloutMode.IN_PLACE, False
    if before is None or chosen is not RolloutMode.BLUE_GREEN:
        return RolloutMode.ROLLING, False
    serving = {group.process for group in there if group.listed}
    if process in serving and len(serving) > 1:
        return RolloutMode.ROLLING, False
    return RolloutMode.BLUE_GREEN, serving == {process}


def wanted(spec: Mapping[str, Any]) -> int:
    """Replicas that a spec (its JSON form) asks for to begin with; as `Spec.target`, without the parser."""
    service = spec.get("service") or {}
    pool = spec.get("pool") or service.get("pool")
    policy = service.get("replica_policy") or {}
    counts = [policy.get("min_replicas"), service.get("replicas"), service.get("workers")]
    if pool:
        counts = [pool.get("workers"), pool.get("min_workers")]
    return next((int(count) for count in counts if count is not None), 1)
