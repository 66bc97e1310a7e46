"""How far an update may go beyond, and fall below, the target: numbers or percents of it."""

import math
from collections.abc import Mapping
from typing import Any

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
