"""The table is closed: every state can be reached, ends have no way out, and no outcome is ever overwritten."""

from itertools import product
from pathlib import Path

import pytest

from replicas.core.lifecycle import TABLE, TRIGGERS, markdown, step
from replicas.core.values import ENDS, FAILURES, LIVE, OUTCOMES, ReplicaState

S = ReplicaState
PAGE = Path(__file__).parents[2] / "docs" / "lifecycle.md"
EVERYTHING = list(product(ReplicaState, [None, *sorted(OUTCOMES)], sorted(TRIGGERS)))


def reachable() -> set[tuple[ReplicaState, ReplicaState | None]]:
    """Every (state, outcome) that some row of triggers leads to, from a new replica on."""
    found: set[tuple[ReplicaState, ReplicaState | None]] = {(S.PENDING, None)}
    front = list(found)
    while front:
        state, outcome = front.pop()
        for trigger in TRIGGERS:
            made = step(state, outcome, trigger)
            if made is not None and (made.state, made.outcome) not in found:
                found.add((made.state, made.outcome))
                front.append((made.state, made.outcome))
    return found


def test_names_are_unique() -> None:
    assert len({row.name for row in TABLE}) == len(TABLE)


def test_every_state_can_be_reached() -> None:
    assert {state for state, _ in reachable()} == set(ReplicaState)


def test_every_outcome_can_be_reached() -> None:
    assert {outcome for _, outcome in reachable()} == OUTCOMES | {None}


def test_a_replica_can_end_from_every_live_state() -> None:
    for state in LIVE:
        seen, front = {state}, [state]
        while front:
            here = front.pop()
            for row in TABLE:
                if here in row.sources:
                    made = step(here, None, row.name)
                    assert made is not None
                    if made.state not in seen:
                        seen.add(made.state)
                        front.append(made.state)
        assert seen & ENDS, f"{state} has no way to an end"


def test_no_trigger_begins_at_an_end() -> None:
    assert not any(row.sources & ENDS for row in TABLE)


@pytest.mark.parametrize("trigger", sorted(TRIGGERS))
def test_an_end_never_changes(trigger: str) -> None:
    assert all(step(state, outcome, trigger) is None for state in ENDS for outcome in [None, *OUTCOMES])


def test_an_outcome_is_never_overwritten() -> None:
    for state, outcome, trigger in EVERYTHING:
        made = step(state, outcome, trigger)
        if made is not None and outcome is not None:
            assert made.outcome is outcome, f"{trigger} on {state} with outcome {outcome} made {made}"


def test_a_trigger_applies_exactly_to_its_sources() -> None:
    for state, outcome, trigger in EVERYTHING:
        assert (step(state, outcome, trigger) is not None) == (state in TRIGGERS[trigger].sources)


def test_who_leaves_has_an_outcome_and_who_serves_has_none() -> None:
    for state, outcome in reachable():
        assert (outcome is not None) == (state in {S.DRAINING, S.SHUTTING_DOWN} or state in ENDS), (state, outcome)


def test_an_end_is_its_outcome_or_a_failed_cleanup() -> None:
    for state, outcome in reachable():
        if state in ENDS:
            assert state in (outcome, S.FAILED_CLEANUP)


def test_only_what_is_on_its_way_out_ends_and_a_launch_not_begun() -> None:
    ways = {(state, made.state) for state, outcome, name in EVERYTHING if (made := step(state, outcome, name))}
    assert {state for state, end in ways if end in ENDS} == {S.PENDING, S.SHUTTING_DOWN}


def test_nothing_brings_a_replica_back_to_an_earlier_life() -> None:
    order = [S.PENDING, S.PROVISIONING, S.STARTING, S.READY, S.DRAINING, S.SHUTTING_DOWN]
    rank = {state: order.index(state) for state in order} | {S.NOT_READY: order.index(S.READY)}
    for state, outcome, name in EVERYTHING:
        made = step(state, outcome, name)
        if made is not None and made.state in rank:
            assert rank[made.state] >= rank[state], f"{name}: {state} -> {made.state}"


class TestRaces:
    """CASES: whoever comes second finds the decision made."""

    def test_the_probe_that_fails_after_a_scale_down_does_not_make_it_a_failure(self) -> None:
        retired = step(S.STARTING, None, "retired")
        assert retired is not None
        assert step(retired.state, retired.outcome, "initial_delay_passed") is None
        ended = step(retired.state, retired.outcome, "gone")
        assert ended is not None
        assert ended.state is S.TERMINATED

    def test_a_process_that_dies_while_it_drains_was_still_meant_to_go(self) -> None:
        draining = step(S.READY, None, "drain_begun")
        assert draining is not None
        died = step(draining.state, draining.outcome, "exited")
        assert died is not None
        assert (died.state, died.outcome) == (S.SHUTTING_DOWN, S.TERMINATED)

    def test_a_replica_that_failed_and_is_then_retired_stays_failed(self) -> None:
        failed = step(S.READY, None, "exited")
        assert failed is not None
        assert step(failed.state, failed.outcome, "retired") is None
        ended = step(failed.state, failed.outcome, "gone")
        assert ended is not None
        assert ended.state is S.FAILED

    def test_a_failed_cleanup_keeps_why_it_went(self) -> None:
        made = step(S.SHUTTING_DOWN, S.FAILED_PROBING, "cleanup_failed")
        assert made is not None
        assert (made.state, made.outcome) == (S.FAILED_CLEANUP, S.FAILED_PROBING)


def test_an_unknown_trigger_is_an_error_and_not_a_lost_race() -> None:
    with pytest.raises(KeyError):
        step(S.READY, None, "no_such_trigger")


def test_the_closed_sets_fit_together() -> None:
    assert set(ReplicaState) == LIVE | ENDS
    assert not LIVE & ENDS
    assert FAILURES < OUTCOMES < ENDS
    assert {state for state in ReplicaState if state.ended} == ENDS
    assert {state for state in ReplicaState if state.failed} == FAILURES


def test_the_page_in_the_docs_is_the_table() -> None:
    assert PAGE.read_text() == markdown()
