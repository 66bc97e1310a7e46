"""Percentiles out of buckets are those of the times themselves, within the width of a bucket."""

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replicas.core.latency import add, bucket, counted, guessed, middle, percentile

times = st.lists(st.integers(0, 5_000_000), min_size=1, max_size=60)


def test_buckets_have_no_gap_and_are_narrow() -> None:
    numbers = [bucket(milliseconds) for milliseconds in range(100_000)]
    assert set(numbers) == set(range(numbers[-1] + 1))
    assert numbers == sorted(numbers)
    assert [middle(number) for number in numbers[:16]] == list(range(16))
    for milliseconds, number in enumerate(numbers):
        assert abs(middle(number) - milliseconds) <= 0.0625 * milliseconds


@given(st.lists(times, min_size=1, max_size=5), st.sampled_from([0.5, 0.95, 0.99]))
def test_percentiles_of_merged_seconds_are_those_of_all_their_requests(seconds: list[list[int]], share: float) -> None:
    total: dict[str, float] = {}
    for second in seconds:
        add(total, json.loads(json.dumps(counted(Counter(second)))))
    every = sorted(time for second in seconds for time in second)
    exact = every[min(int(share * len(every)), len(every) - 1)]
    assert percentile(total, share) == middle(bucket(exact)) == pytest.approx(exact, rel=0.0667)


def test_nothing_measured_is_no_percentile() -> None:
    assert percentile({}, 0.95) is None


def test_what_only_its_percentiles_were_kept_of_gives_them_back() -> None:
    kept = guessed(1000, 10.0, 200.0, 1000.0)
    assert [percentile(kept, share) for share in (0.5, 0.95, 0.99)] == [10.0, middle(bucket(200)), middle(bucket(1000))]
    assert guessed(0, None, None, None) == {}


def test_a_row_stays_small() -> None:
    wide = counted(Counter(range(0, 60_000, 7)))
    assert len(json.dumps(wide)) < 1600
    assert len(json.dumps(counted(Counter(range(20, 80))))) < 300
