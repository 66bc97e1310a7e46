"""SkyServe's published rule for the number of replicas, stated anew: what ours is held against."""

import math
from collections.abc import Sequence
from datetime import datetime, timedelta

from replicas.core.autoscaler import Policy, Sample
from replicas.core.simulation import Scaler

TICK = 20  # seconds
WINDOW = 60  # seconds


def skyserve(policy: Policy) -> Scaler:
    """The requests of the last minute, divided by what a replica carries, must ask for more (or fewer) in each tick of
    the delay before the target follows; one tick that does not begins the count anew. From zero it follows at once."""
    up = down = 0
    assert isinstance(policy.qps, float | int)
    rate = policy.qps

    def scale(samples: Sequence[Sample], now: datetime, target: int) -> int:
        nonlocal up, down
        since = now - timedelta(seconds=WINDOW)
        count = sum((sample.qps or 0.0) * sample.seconds for sample in samples if sample.at > since)
        wanted = max(policy.minimum, min(policy.maximum, math.ceil(count / WINDOW / rate)))
        if target == 0:
            return wanted
        up = up + 1 if wanted > target else 0
        down = down + 1 if wanted < target else 0
        if up >= policy.upscale_delay / TICK or down >= policy.downscale_delay / TICK:
            up = down = 0
            return wanted
        return target

    return scale
