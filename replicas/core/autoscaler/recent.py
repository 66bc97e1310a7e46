"""The samples that still matter: the last ones as they came, those before in steps."""

from collections import deque
from collections.abc import Sequence
from datetime import timedelta

from replicas.core.autoscaler.signals import averaged
from replicas.core.autoscaler.values import Sample

FINE = timedelta(seconds=70)  # kept as they came: a little more than the stretch that a decision looks at
STEP = 10.0  # seconds in one of the older ones, and between two entries of the history that decisions look at


class Recent:
    """Samples in order of time, of the last `span` seconds and a bit."""

    def __init__(self, span: float) -> None:
        self._fine: deque[Sample] = deque()
        self._coarse: deque[Sample] = deque(maxlen=max(1, round(span / STEP) + 1))

    def add(self, sample: Sample) -> None:
        """Take in one that came after all others; an earlier one (the clock was set back) begins anew."""
        if self._fine and sample.at <= self._fine[-1].at:
            self._fine.clear()
            self._coarse.clear()
        self._fine.append(sample)
        while self._fine[-1].at - self._fine[0].at > FINE:
            self._fold()

    def all(self) -> list[Sample]:
        """Everything, in order of time."""
        return [*self._coarse, *self._fine]

    def _fold(self) -> None:
        """Make one step of the oldest of the fine ones; no step reaches over a gap."""
        parts = [self._fine.popleft()]
        end = parts[0].at + timedelta(seconds=STEP - parts[0].seconds)
        while self._fine and self._fine[0].at <= end:
            parts.append(self._fine.popleft())
        self._coarse.append(_joined(parts))


def _joined(parts: Sequence[Sample]) -> Sample:
    """One sample for several that followed each other."""
    seen = averaged(parts)
    return Sample(
        at=parts[-1].at,
        seconds=sum(part.seconds for part in parts),
        qps=seen.qps,
        inflight=seen.inflight,
        queued=seen.queued,
        p95=seen.p95,
        custom=seen.custom,
        ready=seen.ready,
    )
