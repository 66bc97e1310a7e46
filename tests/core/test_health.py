"""What one probe does to a replica, and when the next is due."""

import json
import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replicas.core.health import PROBED, Observed, ProbePolicy, Verdict, judge, next_probe_in
from replicas.core.lifecycle import TRIGGERS, step
from replicas.core.spec import parse
from replicas.core.values import ReplicaState

S = ReplicaState
NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
POLICY = ProbePolicy(initial_delay=60, failure_threshold=30, interval=10)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def observed(state: ReplicaState, since: float = 1, launched: float | None = 100) -> Observed:
    return Observed(state, ago(since), None if launched is None else ago(launched))


def trigger(seen: Observed, ok: bool, policy: ProbePolicy = POLICY, now: datetime = NOW) -> str | None:
    verdict = judge(seen, ok, "", policy, now)
    return verdict.trigger if verdict else None


# --- slow boot


def test_failures_before_the_initial_delay_are_ignored():
    assert trigger(observed(S.STARTING, launched=59.9), ok=False) is None


def test_the_first_success_counts_at_once():
    assert trigger(observed(S.STARTING, launched=0.1), ok=True) == "probe_passed"


def test_a_success_after_the_initial_delay_still_counts():
    assert trigger(observed(S.STARTING, launched=5000), ok=True) == "probe_passed"


@pytest.mark.parametrize("launched", [60, 60.1, 5000])
def test_never_ready_by_the_initial_delay(launched: float):
    assert trigger(observed(S.STARTING, launched=launched), ok=False) == "initial_delay_passed"


def test_the_initial_delay_counts_from_the_launch_not_from_the_state():
    assert trigger(observed(S.STARTING, since=1, launched=61), ok=False) == "initial_delay_passed"
    assert trigger(observed(S.STARTING, since=1, launched=None), ok=False) is None


def test_slow_boot_with_refusals_then_ready():
    launched = NOW
    for second in range(59):
        seen = Observed(S.STARTING, launched, launched)
        assert trigger(seen, ok=False, now=launched + timedelta(seconds=second)) is None
    assert trigger(seen, ok=True, now=launched + timedelta(seconds=59)) == "probe_passed"


# --- after it was ready


def test_one_failure_makes_it_not_ready():
    assert trigger(observed(S.READY, since=0), ok=False) == "probe_failed"
    assert trigger(observed(S.READY, since=86400), ok=False) == "probe_failed"


def test_one_success_makes_it_ready_again():
    assert trigger(observed(S.NOT_READY, since=29), ok=True) == "probe_passed"
    assert trigger(observed(S.NOT_READY, since=3000), ok=True) == "probe_passed"


def test_failing_for_the_threshold_ends_it():
    assert trigger(observed(S.NOT_READY, since=29.9), ok=False) is None
    assert trigger(observed(S.NOT_READY, since=30), ok=False) == "probe_exhausted"


def test_the_initial_delay_does_not_matter_once_it_was_ready():
    assert trigger(observed(S.NOT_READY, since=1, launched=10_000), ok=False) is None
    assert trigger(observed(S.NOT_READY, since=31, launched=32), ok=False) == "probe_exhausted"


def test_a_threshold_of_zero_takes_the_second_failure():
    policy = ProbePolicy(failure_threshold=0)
    assert trigger(observed(S.READY), ok=False, policy=policy) == "probe_failed"
    assert trigger(observed(S.NOT_READY, since=0), ok=False, policy=policy) == "probe_exhausted"


def test_ready_and_passing_is_nothing_new():
    assert trigger(observed(S.READY), ok=True) is None


@pytest.mark.parametrize("state", sorted(set(ReplicaState) - PROBED))
@pytest.mark.parametrize("ok", [True, False])
def test_other_states_are_left_alone(state: ReplicaState, ok: bool):
    assert trigger(observed(state, since=9999, launched=9999), ok) is None


# --- reasons


@pytest.mark.parametrize(
    ("seen", "ok", "reason"),
    [
        (observed(S.STARTING), True, "the readiness probe passed: HTTP 200 from GET /"),
        (observed(S.READY), False, "the readiness probe failed: HTTP 200 from GET /"),
        (
            observed(S.STARTING),
            False,
            "never ready within 60 s of its launch (initial_delay_seconds): HTTP 200 from GET /",
        ),
        (
            observed(S.NOT_READY, since=31),
            False,
            "the readiness probe failed for 30 s in a row (consecutive_failure_threshold_timeout): HTTP 200 from GET /",
        ),
    ],
)
def test_reasons_end_with_what_the_probe_saw(seen: Observed, ok: bool, reason: str):
    verdict = judge(seen, ok, "HTTP 200 from GET /", POLICY, NOW)
    assert verdict is not None
    assert verdict.reason == reason


def test_a_reason_without_detail_is_a_sentence_too():
    assert judge(observed(S.READY), False, "", POLICY, NOW) == Verdict("probe_failed", "the readiness probe failed")


# --- whatever comes

durations = st.floats(0, 1e6, allow_nan=False)
policies = st.builds(
    ProbePolicy,
    initial_delay=durations,
    failure_threshold=durations,
    interval=st.floats(0.1, 3600),
    timeout=st.floats(0.1, 600),
)
states = st.sampled_from(ReplicaState)


@given(states, durations, durations, st.booleans(), policies)
def test_a_verdict_always_fits_the_life_cycle(state, since, launched, ok, policy):
    verdict = judge(observed(state, since, launched), ok, "x", policy, NOW)
    if verdict is not None:
        assert state in TRIGGERS[verdict.trigger].sources
        after = step(state, None, verdict.trigger)
        assert after is not None
        assert ok == (after.state is S.READY)


@given(st.sampled_from(sorted(PROBED)), durations, durations, policies)
def test_a_success_never_ends_a_replica(state, since, launched, policy):
    assert trigger(observed(state, since, launched), True, policy) == (None if state is S.READY else "probe_passed")


@given(st.lists(st.tuples(st.booleans(), st.floats(0.05, 20)), max_size=60), policies)
def test_through_any_row_of_results_it_ends_only_for_good_cause(results, policy):
    """Drives a replica through results; checks each end against the results themselves, not against its state."""
    now = NOW
    seen = Observed(S.STARTING, NOW, NOW)
    ever_ready, failing_since = False, None
    for ok, gap in results:
        now += timedelta(seconds=gap)
        failing_since = None if ok else failing_since or now
        ever_ready = ever_ready or ok
        verdict = judge(seen, ok, "", policy, now)
        if verdict is None:
            assert (seen.state is S.READY) == ok or not ok
            continue
        after = step(seen.state, None, verdict.trigger)
        assert after is not None
        if after.state is S.SHUTTING_DOWN:
            if after.outcome is S.FAILED_INITIAL_DELAY:
                assert not ever_ready
                assert (now - NOW).total_seconds() >= policy.initial_delay
            else:
                assert after.outcome is S.FAILED_PROBING
                assert ever_ready
                assert failing_since is not None
                assert (now - failing_since).total_seconds() >= policy.failure_threshold
            return
        seen = Observed(after.state, now, NOW)
        assert (seen.state is S.READY) == ok


@given(policies, durations)
def test_an_unhealthy_replica_ends_in_the_end(policy, late):
    assert trigger(observed(S.STARTING, 0, policy.initial_delay + late + 0.001), False, policy)
    assert trigger(observed(S.NOT_READY, policy.failure_threshold + late + 0.001), False, policy) == "probe_exhausted"


# --- when to ask again


def test_a_starting_replica_is_asked_often_at_first():
    at, gaps = 0.0, []
    while at < 200:
        gaps.append(next_probe_in(S.STARTING, at, POLICY))
        at += gaps[-1]
    assert gaps[0] == pytest.approx(0.1)
    assert gaps[1] == pytest.approx(0.15)
    assert gaps[2] == pytest.approx(0.225)
    assert sorted(gaps) == gaps
    assert 1.0 in gaps
    assert gaps[-1] == 2.0
    assert len(gaps) < 150


def test_gaps_of_the_other_states():
    assert next_probe_in(S.READY, 1000, POLICY) == 10
    assert next_probe_in(S.NOT_READY, 1000, POLICY) == 1
    assert next_probe_in(S.NOT_READY, 1000, ProbePolicy(interval=0.2)) == 0.2
    assert next_probe_in(S.STARTING, 1000, ProbePolicy(interval=0.2)) == 0.2


@given(states, st.floats(-1e3, 1e7), policies)
def test_a_gap_is_positive_and_never_more_than_the_interval(state, launched_for, policy):
    gap = next_probe_in(state, launched_for, policy)
    if state in PROBED:
        assert 0 < gap <= policy.interval
    else:
        assert math.isinf(gap)


# --- the policy in a spec


def test_defaults_are_those_of_skyserve():
    policy = ProbePolicy.from_spec({"service": {"readiness_probe": {"path": "/"}}})
    assert policy == ProbePolicy()
    assert (policy.initial_delay, policy.timeout, policy.interval, policy.failure_threshold) == (1200, 15, 10, 180)
    assert (policy.method, policy.body) == ("GET", None)
    assert ProbePolicy.from_spec({"service": {}}) == policy


def test_every_field_of_a_spec():
    probe = {
        "path": "/v1/chat",
        "initial_delay_seconds": 5,
        "timeout_seconds": 2.5,
        "endpoint_probe_interval_seconds": 3,
        "consecutive_failure_threshold_timeout": 40,
        "post_data": {"prompt": "hi", "n": 1},
        "headers": {"Authorization": "Bearer x"},
        "insecure_tls": True,
        "scheme": "https",
    }
    policy = ProbePolicy.from_spec({"service": {"readiness_probe": probe}})
    assert policy.body is not None
    assert json.loads(policy.body) == {"prompt": "hi", "n": 1}
    assert policy == ProbePolicy(
        path="/v1/chat",
        body=policy.body,
        headers={"Authorization": "Bearer x"},
        initial_delay=5,
        timeout=2.5,
        interval=3,
        failure_threshold=40,
        insecure_tls=True,
        scheme="https",
    )
    assert policy.method == "POST"


@pytest.mark.parametrize(
    ("post", "body"), [("'{\"a\": [1]}'", b'{"a": [1]}'), ("{a: [1]}", b'{"a": [1]}'), ("{}", b"{}"), ("'[]'", b"[]")]
)
def test_a_policy_is_read_from_a_service_yaml(post: str, body: bytes):
    yaml = f"""
name: model
run: serve
service:
  readiness_probe:
    path: /v1
    post_data: {post}
    timeout_seconds: 3
"""
    policy = ProbePolicy.from_spec(parse(yaml).spec.to_json())
    assert policy == ProbePolicy(path="/v1", body=body, timeout=3)
    assert policy.method == "POST"


@pytest.mark.parametrize(
    ("scheme", "url", "base"),
    [
        ("http", "http://127.0.0.1:20001", "http://127.0.0.1:20001"),
        ("https", "http://127.0.0.1:20001", "https://127.0.0.1:20001"),
        ("https", "https://[::1]:20001", "https://[::1]:20001"),
        ("http", "https://replica.example", "https://replica.example"),
        ("https", "fake://abc", "fake://abc"),
    ],
)
def test_the_base_url_is_https_where_the_probe_or_the_replica_says_so(scheme: str, url: str, base: str):
    assert ProbePolicy(scheme=scheme).base_url(url) == base
