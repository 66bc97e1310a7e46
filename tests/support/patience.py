"""Time limits of a machine that has a processor for us; on one that is short of them they are longer in proportion."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.support.looking import Looking

MOST_STARVED = 6.0
WORK_SECONDS = 0.004
USUAL_WORK_SECONDS = 0.02  # of `_usual_work`
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


class _Watch(Looking):
    """Looks at a limit until told to stop."""

    def __init__(self, seconds: float) -> None:
        super().__init__("patience", APART_SECONDS)
        self.patience = Patience(seconds)

    def look(self) -> object:
        return self.patience.over()


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """The block takes no more than so many seconds, of a machine with a processor for us; else the test fails."""
    watch = _Watch(seconds)
    watch.start()
    try:
        yield
    finally:
        watch.stop()
    assert not watch.patience.over(), f"it took {watch.patience.spent:.2f} s, and {seconds:g} s are the limit"


def spent(work: Callable[[], object], limit: float) -> float:
    """CPU seconds of the work on a processor of the usual speed: the best of up to five goes, as others disturb some.

    How fast this processor is now is told by a fixed piece of work before each go.
    """
    best = float("inf")
    for _ in range(5):
        slow = _processor_seconds(_usual_work) / USUAL_WORK_SECONDS
        best = min(best, _processor_seconds(work) / max(1.0, slow))
        if best < limit:
            break
    return best


def _processor_seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def _usual_work() -> int:
    return len({str(number): [number] for number in range(30_000)})
