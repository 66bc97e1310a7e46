"""Waits grow, stop growing, and end."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replicas.core.backoff import delay, retry_delay, waits_until
from replicas.core.views import RestartPolicy
from tests.core.cast import NOW, ago, later


def test_replacements_wait_as_documented() -> None:
    policy = RestartPolicy()
    assert [delay(failures, policy) for failures in range(9)] == [0, 0, 10, 20, 40, 80, 160, 300, 300]


def test_the_policy_of_the_spec_counts() -> None:
    policy = RestartPolicy(backoff_seconds=1, max_backoff_seconds=3)
    assert [delay(failures, policy) for failures in (1, 2, 3, 4)] == [0, 1, 2, 3]


def test_a_backoff_of_0_never_waits() -> None:
    assert delay(50, RestartPolicy(backoff_seconds=0)) == 0


def test_retries_follow_skypilots_gaps() -> None:
    assert [round(retry_delay(attempt, 60, 1.6, 300), 1) for attempt in (1, 2, 3, 4, 5)] == [60, 96, 153.6, 245.8, 300]


@pytest.mark.parametrize(
    ("attempt", "base", "factor", "maximum", "expected"),
    [(0, 5, 2, 60, 5), (1, 5, 2, 60, 5), (9, 5, 1, 60, 5), (9, 60, 2, 5, 5), (1, 60, 2, 5, 5), (3, 0, 2, 60, 0)],
)
def test_corners(attempt: int, base: float, factor: float, maximum: float, expected: float) -> None:
    assert retry_delay(attempt, base, factor, maximum) == expected


@settings(deadline=None, derandomize=True, database=None)
@given(
    attempt=st.integers(-5, 10**12),
    base=st.floats(0, 1e6),
    factor=st.floats(0, 1e3),
    maximum=st.floats(0, 1e9),
)
def test_a_wait_never_shrinks_and_never_exceeds_its_maximum(
    attempt: int, base: float, factor: float, maximum: float
) -> None:
    wait = retry_delay(attempt, base, factor, maximum)
    assert 0 <= wait <= maximum
    assert wait <= retry_delay(attempt + 1, base, factor, maximum)


class TestWaitsUntil:
    def test_it_ends_after_its_seconds(self) -> None:
        assert waits_until(ago(10), 30, NOW) == later(20)
        assert waits_until(ago(30), 30, NOW) is None
        assert waits_until(ago(31), 30, NOW) is None

    def test_a_wait_of_no_seconds_is_over(self) -> None:
        assert waits_until(NOW, 0, NOW) is None

    def test_a_beginning_slightly_ahead_is_another_hosts_clock(self) -> None:
        assert waits_until(later(30), 10, NOW) == later(40)

    def test_a_beginning_far_ahead_is_a_clock_that_was_set_back(self) -> None:
        assert waits_until(later(31), 10, NOW) is None
