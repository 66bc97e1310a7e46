"""Silence and patience, with time as an argument."""

from pathlib import Path

import pytest

from controlplane.children import table
from controlplane.vigil import SILENT_SECONDS, START_SECONDS, Patience, Pulse


def let_pass(pulse: Pulse, seconds: float, beat: int, due: bool = True, step: float = 0.25) -> None:
    for _ in range(round(seconds / step)):
        pulse.observe(beat, step, due)


def test_a_child_may_be_silent_while_it_starts() -> None:
    pulse = Pulse()
    let_pass(pulse, START_SECONDS + SILENT_SECONDS - 1, beat=0)
    assert not pulse.wedged
    assert not pulse.heard


def test_a_child_that_never_speaks_is_wedged_in_the_end() -> None:
    pulse = Pulse()
    let_pass(pulse, START_SECONDS + SILENT_SECONDS + 1, beat=0)
    assert pulse.wedged


def test_a_child_that_falls_silent_is_wedged_after_eight_seconds() -> None:
    pulse = Pulse()
    for beat in range(1, 60):
        let_pass(pulse, 1, beat)
    assert pulse.fresh
    let_pass(pulse, SILENT_SECONDS - 1, beat=59)
    assert not pulse.wedged
    let_pass(pulse, 1, beat=59)
    assert pulse.wedged


def test_a_child_that_falls_silent_soon_after_its_start_is_not_given_the_time_to_start_again() -> None:
    pulse = Pulse()
    let_pass(pulse, 3, beat=0)
    let_pass(pulse, SILENT_SECONDS, beat=1)
    assert not pulse.wedged
    let_pass(pulse, 1, beat=1)
    assert pulse.wedged


def test_the_beat_of_an_earlier_run_is_not_a_sign_of_life() -> None:
    pulse = Pulse(beat=17)
    let_pass(pulse, 5, beat=17)
    assert not pulse.heard


def test_a_suspended_machine_is_not_silence() -> None:
    pulse = Pulse()
    let_pass(pulse, 1, beat=1)
    pulse.observe(1, seconds=3600.0)
    assert not pulse.wedged


def test_a_beat_that_steps_back_with_the_clock_counts() -> None:
    pulse = Pulse(beat=1_000_000)
    let_pass(pulse, START_SECONDS + 5, beat=1_000_000)
    pulse.observe(400_000, 0.25)
    assert pulse.silence == 0
    assert pulse.heard


def test_a_pool_is_not_blamed_while_the_controller_sends_no_beats() -> None:
    pulse = Pulse()
    let_pass(pulse, 1, beat=1)
    let_pass(pulse, 60, beat=1, due=False)
    assert not pulse.wedged
    let_pass(pulse, SILENT_SECONDS + 1, beat=1, due=True)
    assert pulse.wedged


def test_the_first_replacement_comes_at_once_and_the_next_ones_later() -> None:
    patience = Patience()
    assert [patience.delay(lived=1.0) for _ in range(7)] == [0, 1, 2, 5, 10, 10, 10]


@pytest.mark.parametrize("lived", [60.0, 3600.0])
def test_a_child_that_had_settled_is_replaced_at_once_again(lived: float) -> None:
    patience = Patience()
    for _ in range(4):
        patience.delay(lived=1.0)
    assert patience.delay(lived) == 0
    assert patience.delay(1.0) == 1


def test_a_gateway_or_controller_that_works_is_replaced_at_once_however_often_it_is_killed() -> None:
    for child in table(Path("/srv")):
        if child.name in ("gateway", "controller"):
            patience = Patience(child.delays, child.settled)
            assert [patience.delay(lived=10.0) for _ in range(9)] == [0.0] * 9
