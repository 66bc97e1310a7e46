"""Time limits of a machine that has a processor for us; on one that is short of them they are longer in proportion."""

import time
from dataclasses import dataclass, field

MOST_STARVED = 6.0
WORK_SECONDS = 0.004
APART_SECONDS = 0.2  # so far apart at least it looks how starved it is: that costs 2 % of a processor


@dataclass
class Patience:
    """A limit in seconds.

    Each `over` works for some milliseconds and sees how long these took: what the clock says is divided by that.
    """

    seconds: float
    spent: float = 0.0
    last: float = field(default_factory=time.monotonic)

    def over(self) -> bool:
        """Whether it is used up."""
        passed = time.monotonic() - self.last
        if passed >= APART_SECONDS or self.spent + passed > self.seconds:
            self.spent += passed / starvation()
            self.last = time.monotonic()
        return self.spent > self.seconds


def starvation() -> float:
    """How much longer a piece of work takes than the time it needs of a processor; 1 on a machine that is idle."""
    began, worked = time.monotonic(), time.thread_time()
    while time.thread_time() - worked < WORK_SECONDS:
        pass
    return max(1.0, min(MOST_STARVED, (time.monotonic() - began) / (time.thread_time() - worked)))
