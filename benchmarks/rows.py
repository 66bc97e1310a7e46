"""What a benchmark reports: figures, each with what it is held against and its bound."""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. `ratio` is measured / against, both taken in the same run; without `against` there is none.

    `bound` is the most that the ratio (or, without one, the measured value) may be; None for a figure that is only
    told. `unit` is that of `measured` and `against`.
    """

    name: str
    measured: float
    against: float | None
    ratio: float | None
    bound: float | None
    unit: str
    ok: bool

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def compared(name: str, measured: float, against: float, *, most: float | None, unit: str) -> Row:
    """A figure that is held against another of the same run: the ratio may be at most `most`."""
    ratio = measured / against
    return Row(name, measured, against, ratio, most, unit, most is None or ratio <= most)


def limited(name: str, measured: float, *, most: float | None, unit: str) -> Row:
    """A figure with a bound of its own."""
    return Row(name, measured, None, None, most, unit, most is None or measured <= most)


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` (0 to 1) of the values do not exceed; of at least one value."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def alternating(rounds: int, *works: Callable[[], float]) -> list[float]:
    """The median of what each of `works` measures, taken in turns so that a busy machine touches all alike.

    The first turn warms up and is not counted.
    """
    taken: list[list[float]] = [[] for _ in works]
    for turn in range(rounds + 1):
        for measured, work in zip(taken, works, strict=True):
            value = work()
            if turn:
                measured.append(value)
    return [statistics.median(values) for values in taken]
