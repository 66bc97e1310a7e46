"""What is handed to the queue: bounded, fair, never twice too soon, and never lost."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replicas.core.dispatch import LONGEST_REDELIVERY, Limits, dispatch
from replicas.core.values import OperationKind, OperationStatus
from replicas.core.views import OperationView
from tests.core.cast import NOW, ago, later

LAUNCH, DOWN = OperationKind.LAUNCH, OperationKind.DOWN
QUEUED, RUNNING, WAITING = OperationStatus.QUEUED, OperationStatus.RUNNING, OperationStatus.WAITING
LIMITS = Limits(max_launches=8, max_launches_per_service=4, max_downs=3, redeliver_after=5.0)


def op(number: int, service: int = 1, kind: OperationKind = LAUNCH, status=QUEUED, **fields) -> OperationView:
    """An operation; the higher its number, the later it was made."""
    fields.setdefault("created_at", ago(10_000 - number))
    return OperationView(number, kind, status, service, replica_id=number, **fields)


class TestHandingOver:
    def test_the_oldest_first(self) -> None:
        rows = [op(3), op(1), op(2)]
        assert dispatch(rows, LIMITS, NOW).enqueue == (1, 2, 3)

    def test_nothing_to_do(self) -> None:
        decided = dispatch([], LIMITS, NOW)
        assert (decided.enqueue, dict(decided.holds), decided.wake_at) == ((), {}, None)

    @pytest.mark.parametrize("status", [s for s in OperationStatus if not s.live])
    def test_what_has_ended_is_left_alone_and_takes_no_place(self, status: OperationStatus) -> None:
        rows = [op(n, service=n, status=status) for n in range(1, 20)] + [op(20)]
        assert dispatch(rows, LIMITS, NOW).enqueue == (20,)

    def test_what_runs_is_left_alone(self) -> None:
        decided = dispatch([op(1, status=RUNNING), op(2, kind=DOWN, status=RUNNING)], LIMITS, NOW)
        assert decided.enqueue == ()
        assert decided.wake_at is None


class TestBounds:
    def test_launches_in_all(self) -> None:
        rows = [op(n, service=n) for n in range(1, 11)]
        decided = dispatch(rows, LIMITS, NOW)
        assert decided.enqueue == tuple(range(1, 9))
        assert decided.holds == {9: "8 of 8 launches in flight", 10: "8 of 8 launches in flight"}

    def test_launches_of_a_service(self) -> None:
        decided = dispatch([op(n) for n in range(1, 7)], LIMITS, NOW)
        assert decided.enqueue == (1, 2, 3, 4)
        assert decided.holds[6] == "4 of 4 launches of this service in flight"

    def test_a_service_may_have_a_bound_of_its_own(self) -> None:
        limits = replace(LIMITS, overrides={1: 1})
        decided = dispatch([op(1), op(2), op(3, service=2), op(4, service=2)], limits, NOW)
        assert decided.enqueue == (1, 3, 4)
        assert decided.holds == {2: "1 of 1 launches of this service in flight"}

    @pytest.mark.parametrize(
        "busy",
        [
            {"status": RUNNING},
            {"status": WAITING, "retry_at": later(60)},
            {"status": QUEUED, "enqueued_at": ago(1)},
        ],
    )
    def test_running_waiting_and_handed_over_count_as_in_flight(self, busy: dict) -> None:
        rows = [op(n, **busy) for n in (1, 2, 3)] + [op(n) for n in (4, 5)]
        decided = dispatch(rows, LIMITS, NOW)
        assert decided.enqueue == (4,)
        assert set(decided.holds) == {5}

    def test_downs_have_a_bound_of_their_own(self) -> None:
        decided = dispatch([op(n, kind=DOWN) for n in range(1, 6)], LIMITS, NOW)
        assert decided.enqueue == (1, 2, 3)
        assert decided.holds == {4: "3 of 3 downs in flight", 5: "3 of 3 downs in flight"}

    def test_downs_are_never_held_behind_launches(self) -> None:
        rows = [op(n, service=n, status=RUNNING) for n in range(1, 9)] + [op(9, service=9), op(10, kind=DOWN)]
        decided = dispatch(rows, LIMITS, NOW)
        assert decided.enqueue == (10,)
        assert set(decided.holds) == {9}

    def test_a_limit_lowered_below_what_runs_holds_and_does_not_fail(self) -> None:
        rows = [op(n, status=RUNNING) for n in range(1, 7)] + [op(7)]
        assert dispatch(rows, replace(LIMITS, max_launches=2), NOW).holds == {7: "6 of 2 launches in flight"}


class TestFairness:
    def test_a_service_with_500_launches_does_not_starve_another(self) -> None:
        rows = [op(n) for n in range(1, 501)] + [op(501, service=2), op(502, service=3)]
        decided = dispatch(rows, replace(LIMITS, max_launches_per_service=500), NOW)
        assert {501, 502} <= set(decided.enqueue)
        assert len(decided.enqueue) == 8

    def test_turns_are_shared_evenly(self) -> None:
        rows = [op(100 * service + n, service) for service in (1, 2, 3, 4) for n in range(50)]
        decided = dispatch(rows, LIMITS, NOW)
        assert Counter(number // 100 for number in decided.enqueue) == {1: 2, 2: 2, 3: 2, 4: 2}

    def test_who_has_much_in_flight_comes_later(self) -> None:
        rows = [op(n, status=RUNNING) for n in (1, 2, 3)] + [op(4), op(5, service=2)]
        assert dispatch(rows, replace(LIMITS, max_launches=4), NOW).enqueue == (5,)


class TestRetry:
    def test_it_waits_until_its_moment(self) -> None:
        decided = dispatch([op(1, status=WAITING, retry_at=later(20))], LIMITS, NOW)
        assert decided.enqueue == ()
        assert decided.wake_at == later(20)

    @pytest.mark.parametrize("seconds", [0, 0.001, 3600])
    def test_it_goes_on_at_its_moment(self, seconds: float) -> None:
        assert dispatch([op(1, status=WAITING, retry_at=ago(seconds))], LIMITS, NOW).enqueue == (1,)

    def test_it_asks_for_no_place_since_it_has_one(self) -> None:
        rows = [op(n, service=n, status=WAITING, retry_at=ago(1)) for n in range(1, 21)]
        assert len(dispatch(rows, LIMITS, NOW).enqueue) == 20

    def test_the_oldest_goes_on_first(self) -> None:
        rows = [op(n, status=WAITING, retry_at=ago(n)) for n in (3, 1, 2)]
        assert dispatch(rows, LIMITS, NOW).enqueue == (1, 2, 3)

    def test_it_is_not_handed_over_again_at_once(self) -> None:
        decided = dispatch([op(1, status=WAITING, retry_at=ago(2), enqueued_at=ago(1))], LIMITS, NOW)
        assert decided.enqueue == ()
        assert decided.wake_at == later(4)

    def test_a_delivery_of_an_earlier_attempt_does_not_count(self) -> None:
        row = op(1, status=WAITING, retry_at=ago(1), enqueued_at=ago(100))
        assert dispatch([row], LIMITS, NOW).enqueue == (1,)

    def test_a_clock_that_was_set_back_does_not_hang_it(self) -> None:
        row = op(1, status=WAITING, retry_at=later(3660), created_at=later(3600))
        assert dispatch([row], LIMITS, NOW).enqueue == (1,)


class TestCancelling:
    def test_it_is_never_held(self) -> None:
        rows = [op(n, service=n, status=RUNNING) for n in range(1, 9)] + [op(9, service=9, cancelling=True)]
        assert dispatch(rows, LIMITS, NOW).enqueue == (9,)

    def test_it_does_not_wait_for_its_retry(self) -> None:
        row = op(1, status=WAITING, retry_at=later(300), enqueued_at=ago(30), cancelling=True)
        assert dispatch([row], LIMITS, NOW).enqueue == (1,)

    def test_it_is_not_handed_over_again_at_once(self) -> None:
        row = op(1, status=WAITING, retry_at=later(300), enqueued_at=ago(1), cancelling=True)
        decided = dispatch([row], LIMITS, NOW)
        assert decided.enqueue == ()
        assert decided.wake_at == later(4)

    def test_what_runs_sees_it_by_itself(self) -> None:
        assert dispatch([op(1, status=RUNNING, cancelling=True)], LIMITS, NOW).enqueue == ()


class TestNoDelivery:
    def test_an_operation_that_nobody_claims_is_handed_over_again(self) -> None:
        assert dispatch([op(1, enqueued_at=ago(5), deliveries=1)], LIMITS, NOW).enqueue == (1,)

    def test_not_too_soon(self) -> None:
        decided = dispatch([op(1, enqueued_at=ago(4), deliveries=1)], LIMITS, NOW)
        assert decided.enqueue == ()
        assert decided.wake_at == later(1)

    @pytest.mark.parametrize(
        ("deliveries", "patience"), [(0, 5), (1, 5), (2, 10), (3, 20), (6, 160), (7, 300), (99, 300)]
    )
    def test_each_time_later(self, deliveries: int, patience: float) -> None:
        row = op(1, enqueued_at=NOW, deliveries=deliveries)
        assert dispatch([row], LIMITS, NOW).wake_at == later(patience)
        assert dispatch([row], LIMITS, later(patience)).enqueue == (1,)

    def test_a_clock_that_was_set_back_does_not_hang_it(self) -> None:
        assert dispatch([op(1, enqueued_at=later(3600))], LIMITS, NOW).enqueue == (1,)


operations = st.builds(
    op,
    st.integers(1, 10**6),
    service=st.integers(1, 4),
    kind=st.sampled_from(OperationKind),
    status=st.sampled_from((QUEUED, QUEUED, QUEUED, RUNNING, WAITING)),
    enqueued_at=st.none() | st.integers(-600, 5).map(later),
    retry_at=st.none() | st.integers(-600, 300).map(later),  # no wait is longer
    cancelling=st.sampled_from((False, False, False, True)),
    deliveries=st.integers(0, 9),
)
limits = st.builds(
    Limits,
    max_launches=st.integers(0, 12),
    max_launches_per_service=st.integers(0, 6),
    max_downs=st.integers(0, 6),
    redeliver_after=st.floats(0.1, 60),
    overrides=st.dictionaries(st.integers(1, 4), st.integers(0, 6), max_size=2),
)


def in_flight(row: OperationView) -> bool:
    return row.status in (RUNNING, WAITING) or row.enqueued_at is not None


@settings(deadline=None, derandomize=True, database=None, max_examples=300)
@given(rows=st.lists(operations, unique_by=lambda row: row.id, max_size=30), bounds=limits)
def test_bounds_hold_and_nothing_is_forgotten(rows: list[OperationView], bounds: Limits) -> None:
    decided = dispatch(rows, bounds, NOW)
    by_id = {row.id: row for row in rows}
    handed = [by_id[number] for number in decided.enqueue]
    assert len(set(decided.enqueue)) == len(handed)
    assert not any(row.status is RUNNING for row in handed)
    assert not set(decided.enqueue) & set(decided.holds)
    fresh = [row for row in handed if not in_flight(row) and not row.cancelling]
    for kind, bound in ((LAUNCH, bounds.max_launches), (DOWN, bounds.max_downs)):
        added = sum(row.kind is kind for row in fresh)
        busy = sum(row.kind is kind and (in_flight(row) or row.cancelling) for row in rows)
        assert not added or busy + added <= bound
    for service in {row.service_id for row in fresh if row.kind is LAUNCH}:
        ours = [row for row in rows if row.service_id == service and row.kind is LAUNCH]
        count = sum(in_flight(row) or row.cancelling or row in fresh for row in ours)
        assert count <= bounds.launches_of(service)
    for row in rows:
        told = row.id in decided.enqueue or row.id in decided.holds
        assert told or row.status is RUNNING or decided.wake_at is not None, f"forgotten: {row}"


@settings(deadline=None, derandomize=True, database=None, max_examples=150)
@given(rows=st.lists(operations, unique_by=lambda row: row.id, max_size=30), bounds=limits)
def test_handing_over_twice_hands_over_nothing_more(rows: list[OperationView], bounds: Limits) -> None:
    first = dispatch(rows, bounds, NOW)
    after = [
        replace(row, enqueued_at=NOW, deliveries=row.deliveries + 1) if row.id in first.enqueue else row for row in rows
    ]
    second = dispatch(after, bounds, NOW)
    assert second.enqueue == ()
    assert second.holds.keys() == first.holds.keys()


@settings(deadline=None, derandomize=True, database=None, max_examples=150)
@given(rows=st.lists(operations, unique_by=lambda row: row.id, max_size=30), bounds=limits)
def test_nothing_is_due_before_the_wake_up_and_something_is_at_it(rows: list[OperationView], bounds: Limits) -> None:
    now = dispatch(rows, bounds, NOW)
    if now.wake_at is None:
        return
    assert NOW < now.wake_at <= NOW + timedelta(seconds=LONGEST_REDELIVERY + 600)
    before = dispatch(rows, bounds, now.wake_at - timedelta(microseconds=1))
    assert set(before.enqueue) == set(now.enqueue)
    assert set(dispatch(rows, bounds, now.wake_at).enqueue) > set(now.enqueue)


def test_ten_thousand_operations_are_shared_out() -> None:
    rows = [op(n, service=n % 100) for n in range(1, 10_001)]
    decided = dispatch(rows, replace(LIMITS, max_launches=500), NOW)
    assert len(decided.enqueue) == 400
    assert len(decided.holds) == 9600
