"""How many requests took how long, in buckets that can be added up: so that percentiles of any stretch are true.

Times are whole milliseconds. Below 16 ms each has a bucket of its own; from there on each doubling has eight, as HDR
histograms have them, so that the middle of a bucket is within 6 % of whatever is in it.
"""

from collections import Counter
from collections.abc import Mapping

EXACT_BITS = 4  # so many leading bits of a time tell its bucket
HALF = 1 << (EXACT_BITS - 1)

Buckets = Mapping[str, float]  # the number of a bucket, as JSON has keys, to how many requests are in it


def bucket(milliseconds: int) -> int:
    """The number of the bucket of a time."""
    beyond = max(0, milliseconds.bit_length() - EXACT_BITS)
    return beyond * HALF + (milliseconds >> beyond)


def middle(number: int) -> float:
    """The time in the middle of a bucket."""
    beyond = max(0, number // HALF - 1)
    low = (number - beyond * HALF) << beyond
    return low + ((1 << beyond) - 1) / 2


def counted(times: Mapping[int, int]) -> dict[str, int]:
    """The buckets of so many requests of each time."""
    found: Counter[str] = Counter()
    for milliseconds, count in times.items():
        found[str(bucket(milliseconds))] += count
    return dict(found)


def add(total: dict[str, float], buckets: Buckets) -> None:
    """Add buckets to a total."""
    for key, count in buckets.items():
        total[key] = total.get(key, 0) + count


def percentile(buckets: Buckets, share: float) -> float | None:
    """The time under which this share of the requests were; None without requests."""
    total = sum(buckets.values())
    if not total:
        return None
    before = 0.0
    for number in sorted(map(int, buckets)):
        before += buckets[str(number)]
        if before > share * total:
            return middle(number)
    return middle(max(map(int, buckets)))


def guessed(requests: int, p50: float | None, p95: float | None, p99: float | None) -> dict[str, float]:
    """Buckets for what only its percentiles were kept of."""
    found: dict[str, float] = {}
    for value, share in ((p50, 0.94), (p95, 0.04), (p99, 0.02)):
        if value is not None:
            add(found, {str(bucket(round(value))): share * max(requests, 1)})
    return found
