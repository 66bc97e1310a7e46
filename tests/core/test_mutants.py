"""The exploration notices faults: each mutant of the core is caught by the test that is there for it."""

import os

import pytest

from tests.core.mutants import MUTANTS, Mutant, caught

SHORT = MUTANTS if os.environ.get("ROLLCALL_EXPLORE") == "all" else MUTANTS[::4]


def test_there_are_enough_of_them() -> None:
    assert len(MUTANTS) >= 10
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize("mutant", SHORT, ids=lambda mutant: mutant.name)
def test_a_fault_in_the_core_is_noticed(mutant: Mutant) -> None:
    assert caught(mutant), f"nobody notices that {mutant.name}"
