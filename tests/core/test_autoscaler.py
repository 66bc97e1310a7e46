"""The autoscaler: from samples to a target, with a reason."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replicas.core.autoscaler import Decision, Memory, Mix, Policy, Sample, decide, mix, policy_from
from replicas.core.spec import parse

NOW = datetime(2030, 1, 1, tzinfo=UTC)
POLICY = Policy(minimum=1, maximum=10, qps=2.0, upscale_delay=300, downscale_delay=1200)


def samples(*loads: tuple[float, float | None], step: float = 2.0, ready: int = 1, **more: float) -> list[Sample]:
    """Samples that end at NOW: (seconds, qps) stretches, the oldest first."""
    made: list[Sample] = []
    total = sum(seconds for seconds, _ in loads)
    at = NOW - timedelta(seconds=total)
    for seconds, qps in loads:
        for _ in range(round(seconds / step)):
            at += timedelta(seconds=step)
            made.append(Sample(at, step, qps=qps, ready=ready, **more))
    return made


def run(measured: Sequence[Sample], target: int, policy: Policy = POLICY, memory: Memory | None = None) -> Decision:
    return decide(policy, measured, memory or Memory(), NOW, target=target)


def test_a_load_that_lasts_brings_more() -> None:
    made = run(samples((1200, 2.0), (400, 7.0)), 2)
    assert (made.target, made.changed) == (4, True)
    assert made.reason == "from 2 to 4 replicas: requests per second asked for more in most of the last 300 s"
    assert made.inputs["qps"] == 7.0


def test_a_load_that_has_not_lasted_changes_nothing_and_says_so() -> None:
    made = run(samples((1200, 2.0), (120, 7.0)), 2)
    assert (made.target, made.changed) == (2, False)
    assert made.reason == "requests per second ask for 4 now; the target follows when that has lasted for 300 s"


def test_a_jittery_sample_does_not_begin_the_delay_anew() -> None:
    jitter = samples((1200, 2.0), (160, 7.0), (20, 1.0), (140, 7.0))
    assert run(jitter, 2).target == 4


def test_a_lull_that_lasts_takes_away_in_one_step() -> None:
    made = run(samples((1200, 12.0), (1200, 3.0)), 6)
    assert made.target == 2
    assert made.reason == "from 6 to 2 replicas: the load asked for fewer in most of the last 1200 s"


def test_a_lull_that_has_not_lasted_takes_nothing_away() -> None:
    assert run(samples((1200, 12.0), (600, 3.0)), 6).target == 6


def test_a_peak_in_the_lull_does_not_begin_the_delay_anew() -> None:
    lull = samples((1200, 12.0), (500, 3.0), (20, 12.0), (700, 3.0))
    assert run(lull, 6).target == 2


def test_what_is_taken_away_leaves_what_was_asked_for_of_late() -> None:
    lull = samples((1200, 12.0), (1100, 1.0), (100, 7.0))
    assert run(lull, 6).target == 4


def test_a_burst_is_answered_at_once() -> None:
    made = run(samples((1200, 4.0), (6, 16.0)), 2)
    assert made.target == 8
    assert "a burst: requests per second of the last 6 s fill 8.0" in made.reason
    assert made.memory.panic_until == NOW + timedelta(seconds=60)


def test_nothing_is_taken_away_while_a_burst_is_on() -> None:
    memory = Memory(8, NOW - timedelta(seconds=30), NOW + timedelta(seconds=30))
    made = run(samples((2400, 2.0)), 8, memory=memory)
    assert made.target == 8
    assert made.reason == "a burst is on: nothing is taken away before 00:00:30 UTC"


def test_while_replicas_start_the_base_is_the_target_and_not_what_runs() -> None:
    """A second look at the same spike, with 1 of 8 ready yet, does not ask for more than the spike does."""
    memory = Memory(8, NOW, NOW + timedelta(seconds=60))
    assert run(samples((1200, 4.0), (10, 16.0), ready=1), 8, memory=memory).target == 8


def test_another_rate_counts_from_the_next_look_with_the_same_history() -> None:
    measured = samples((1600, 4.0))
    assert run(measured, 2).target == 2
    assert run(measured, 2, replace(POLICY, qps=1.0)).target == 4


def test_missing_samples_hold_the_target() -> None:
    old = [replace(sample, at=sample.at - timedelta(seconds=60)) for sample in samples((1300, 0.0))]
    made = run(old, 6)
    assert (made.target, made.changed) == (6, False)
    assert made.reason == "nothing was measured since 23:59:00 UTC: the target is held"
    assert run([], 6).target == 6


def test_a_source_that_was_away_and_is_back_as_zero_holds_the_target() -> None:
    away = [*samples((1200, 12.0)), *samples((30, 0.0))]
    gap = [replace(one, at=one.at - timedelta(seconds=600)) for one in away[:600]] + away[600:]
    assert run(gap, 6).target == 6


def test_a_signal_that_is_not_measured_is_not_zero() -> None:
    assert run(samples((2400, None)), 6).target == 6


def test_from_zero_the_first_request_starts_one() -> None:
    none = replace(POLICY, minimum=0)
    assert run(samples((1300, 0.0)), 0, none).target == 0
    made = run([*samples((1300, 0.0))[:-1], Sample(NOW, 2.0, qps=0.5)], 0, none)
    assert (made.target, made.reason) == (1, "from 0 to 1 replica: requests came while there was none")


def test_from_zero_a_request_that_only_waits_starts_one_whatever_the_signal() -> None:
    policy = Policy(minimum=0, maximum=4, p95=0.5)
    made = run([*samples((60, None)), Sample(NOW, 1.0, queued=1.0)], 0, policy)
    assert made.target == 1


def test_without_traffic_it_settles_at_zero_where_that_is_allowed() -> None:
    quiet = samples((1300, 0.0))
    assert run(quiet, 3, replace(POLICY, minimum=0)).target == 0
    assert run(quiet, 3, replace(POLICY, minimum=0, overprovision=2)).target == 0
    assert run(quiet, 3).target == 1


def test_a_live_client_without_requests_does_not_keep_one_up() -> None:
    assert run(samples((1300, 0.0), inflight=1.0), 1, replace(POLICY, minimum=0)).target == 0


def test_the_largest_signal_wins() -> None:
    both = replace(POLICY, inflight=4.0)
    made = run(samples((1200, 2.0), (400, 2.0), inflight=19.0), 5, both)
    assert made.target == 5
    made = run(samples((1600, 2.0), inflight=30.0), 5, both)
    assert made.target == 8
    assert "requests in flight" in made.reason


def test_waiting_requests_ask_for_more_than_what_serves() -> None:
    policy = Policy(minimum=1, maximum=10, queue=10.0)
    assert run(samples((400, None), ready=3, queued=25.0), 3, policy).target == 6


def test_latency_at_most_doubles() -> None:
    policy = Policy(minimum=1, maximum=10, p95=0.5)
    assert run(samples((400, None), ready=2, p95=9.0), 2, policy).target == 4
    assert run(samples((1300, None), ready=4, p95=0.01), 4, policy).target == 2


def test_a_second_of_few_slow_requests_tells_little_of_the_latency() -> None:
    policy = Policy(minimum=1, maximum=10, p95=0.5)
    made = [
        replace(sample, qps=1.0, p95=9.0) if number % 2 else replace(sample, qps=99.0, p95=0.3)
        for number, sample in enumerate(samples((1300, None), ready=2))
    ]
    assert run(made, 2, policy).target == 2


def test_a_custom_number_moves_the_target() -> None:
    policy = Policy(minimum=1, maximum=10, custom=100.0)
    assert run(samples((400, None), custom=480.0), 3, policy).target == 5


def test_spare_replicas_come_on_top() -> None:
    assert run(samples((400, 8.0)), 2, replace(POLICY, overprovision=1)).target == 5


def test_a_load_at_the_edge_does_not_flap() -> None:
    assert run(samples((1600, 4.18)), 2).target == 2
    assert run(samples((1600, 4.18)), 3).target == 3


def test_the_bounds_count_at_once() -> None:
    made = run(samples((10, 2.0)), 20)
    assert (made.target, made.reason) == (10, "from 20 to 10 replicas: at most 10 wanted")
    assert run([], 0).target == 1


def test_a_target_fixed_by_hand_stays() -> None:
    made = decide(POLICY, samples((1600, 20.0)), Memory(3), NOW, target=2, pinned=True)
    assert (made.target, made.memory.target) == (2, 2)
    assert made.reason == "2 replicas fixed by hand, until that is released"


def test_memory_survives_a_restart() -> None:
    memory = Memory(4, NOW, NOW + timedelta(seconds=60))
    assert Memory.from_json(memory.to_json()) == memory
    assert Memory.from_json({}) == Memory()


def test_a_burst_of_a_clock_that_was_set_back_is_forgotten() -> None:
    memory = Memory(8, NOW + timedelta(hours=1), NOW + timedelta(hours=1, seconds=60))
    assert run(samples((2400, 2.0)), 8, memory=memory).target == 1


def test_rates_of_accelerators_are_summed_over_the_replicas() -> None:
    policy = replace(POLICY, qps={"A100": 10.0, "L4": 2.0})
    made = decide(policy, samples((400, 14.0)), Memory(), NOW, target=1, capacities=("A100:8", "L4"))
    assert made.target == 3


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        ({"overprovision": 1, "base": 1, "dynamic": False, "spot_ready": 0}, Mix(4, 1)),
        ({"overprovision": 0, "base": 1, "dynamic": True, "spot_ready": 1}, Mix(3, 3)),
        ({"overprovision": 0, "base": 9, "dynamic": True, "spot_ready": 0}, Mix(0, 4)),
    ],
)
def test_spot_and_on_demand(given_: dict[str, int | bool], expected: Mix) -> None:
    assert mix(4, **given_) == expected  # type: ignore[arg-type]


def test_a_policy_comes_from_the_spec() -> None:
    text = """
name: web
run: exec server
service:
  readiness_probe: /
  replica_policy:
    min_replicas: 0
    max_replicas: 4
    target_qps_per_replica: 2.5
    target_inflight_per_replica: 8
    custom_signal: {url: "http://127.0.0.1:9/load", target_per_replica: 3}
    downscale_delay_seconds: 60
"""
    policy = policy_from(parse(text, providers=("local",)).spec.to_json()["service"])
    assert policy == Policy(0, 4, qps=2.5, inflight=8, custom=3, downscale_delay=60)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.floats(10, 400), st.one_of(st.none(), st.floats(0, 60))), max_size=8),
    st.integers(0, 12),
    st.integers(0, 3),
    st.integers(0, 12),
)
def test_it_stays_within_the_bounds_and_is_calm_when_asked_again(
    loads: list[tuple[float, float | None]], target: int, minimum: int, spread: int
) -> None:
    policy = Policy(minimum=minimum, maximum=minimum + spread, qps=2.0, overprovision=1)
    measured = samples(*loads)
    first = run(measured, target, policy)
    assert minimum <= first.target <= minimum + spread
    assert first.reason
    second = run(measured, first.target, policy, first.memory)
    third = run(measured, second.target, policy, second.memory)
    assert third.target == second.target
