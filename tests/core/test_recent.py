"""The samples that still matter, kept small."""

from datetime import UTC, datetime, timedelta

import pytest

from replicas.core.autoscaler import Sample
from replicas.core.autoscaler.recent import Recent
from replicas.core.autoscaler.signals import means

START = datetime(2030, 1, 1, tzinfo=UTC)


def at(second: float) -> datetime:
    return START + timedelta(seconds=second)


def filled(seconds: int) -> Recent:
    recent = Recent(1200)
    for second in range(1, seconds + 1):
        recent.add(Sample(at(second), 1.0, qps=float(second % 7), ready=second % 3))
    return recent


def test_a_long_time_is_few_samples_with_the_same_mean() -> None:
    kept = filled(1200).all()
    assert len(kept) < 200
    assert sum(sample.seconds for sample in kept) == 1200
    assert means(kept, START, at(1200)).qps == pytest.approx(sum(n % 7 for n in range(1, 1201)) / 1200)
    assert means(kept, at(1194), at(1200)).qps == pytest.approx(sum(n % 7 for n in range(1195, 1201)) / 6)


def test_what_is_too_old_is_forgotten() -> None:
    kept = filled(5000).all()
    assert at(5000) - kept[0].at < timedelta(seconds=1300)


def test_a_gap_stays_one() -> None:
    recent = filled(100)
    for second in range(400, 600):
        recent.add(Sample(at(second), 1.0, qps=1.0))
    assert means(recent.all(), at(100), at(399)).covered == 0


def test_a_clock_that_was_set_back_begins_anew() -> None:
    recent = filled(100)
    recent.add(Sample(at(3), 1.0, qps=9.0))
    assert [sample.qps for sample in recent.all()] == [9.0]
