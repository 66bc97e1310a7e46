"""How many of the replicas are spot and how many on demand, for providers that have both."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mix:
    """Numbers of replicas of each kind."""

    spot: int
    on_demand: int


def mix(target: int, *, overprovision: int, base: int, dynamic: bool, spot_ready: int) -> Mix:
    """SkyServe's rule: `base` replicas are never spot, the rest is; with `dynamic`, on demand ones stand in for spot
    ones that are missing. On demand is never more than the target."""
    base = min(base, target)
    spot = max(0, target + overprovision - base)
    stand_ins = max(0, target - base - spot_ready) if dynamic else 0
    return Mix(spot, min(target, base + stand_ins))
