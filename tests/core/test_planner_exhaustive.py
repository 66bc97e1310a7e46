"""Small updates in every order of controller, jobs, probes, cancels and crashes: no bound breaks, none gets stuck.

Each case prints how many states it visited. ROLLCALL_EXPLORE=all adds the cases that take minutes.
"""

import os

import pytest

from replicas.core.values import RolloutMode
from replicas.core.views import Surge
from tests.core.exploring import Case, explore

BLUE_GREEN = RolloutMode.BLUE_GREEN
CASES = (
    Case("a good version", 2, Surge(1, 0)),
    Case("a good version that takes places first", 2, Surge(0, 1)),
    Case("a good version for three", 3, Surge(1, 0)),
    Case("a good version and a launch that is cancelled", 2, Surge(1, 0), cancels=1),
    Case("a good version that somebody aborts", 2, Surge(1, 0), aborts=1),
    Case("a canary that bakes", 2, Surge(1, 0), canary=1),
    Case("one replica, and a crash", 1, Surge(1, 0), crashes=1),
    Case("one replica that goes first, and a crash", 1, Surge(0, 1), crashes=1),
    Case("a version that is never ready", 2, Surge(1, 0), bad="never"),
    Case("a version that is never ready, and a crash", 2, Surge(1, 0), bad="never", crashes=1),
    Case("a version that is ready and dies", 2, Surge(1, 0), bad="late"),
    Case("a version that is ready and dies unseen", 2, Surge(1, 0), bad="late", blinds=2),
    Case("a good version while nobody probes", 2, Surge(1, 0), blinds=2),
    Case("a version that is never ready and stays", 2, Surge(1, 0), bad="never", auto_rollback=False),
    Case("blue-green", 2, Surge(1, 0), BLUE_GREEN),
    Case("blue-green, never ready", 2, Surge(1, 0), BLUE_GREEN, bad="never"),
    Case("blue-green for one, and a crash", 1, Surge(1, 0), BLUE_GREEN, crashes=1),
    Case("a good version for three with both bounds", 3, Surge(1, 1)),
    Case("a version that is ready and dies, and a crash", 2, Surge(1, 0), bad="late", crashes=1),
)
LONG = (
    Case("blue-green that is ready and dies unseen", 2, Surge(1, 0), BLUE_GREEN, bad="late", blinds=2),
    Case("a canary that is ready and dies unseen", 2, Surge(1, 0), bad="late", canary=1, blinds=3),
    Case("a good version and a crash", 2, Surge(1, 0), crashes=1),
    Case("a good version for three, and a crash", 3, Surge(1, 0), crashes=1),
    Case("a canary and a crash", 2, Surge(1, 0), canary=1, crashes=1),
    Case("blue-green and a crash", 2, Surge(1, 0), BLUE_GREEN, crashes=1),
    Case("blue-green, never ready, and a crash", 2, Surge(1, 0), BLUE_GREEN, bad="never", crashes=1),
    Case("a crash and a launch that is cancelled", 2, Surge(1, 0), crashes=1, cancels=1),
    Case("a canary that somebody aborts, and a crash", 2, Surge(1, 0), canary=1, aborts=1, crashes=1),
)
EVERY = CASES + (LONG if os.environ.get("ROLLCALL_EXPLORE") == "all" else ())


@pytest.mark.parametrize("case", EVERY, ids=lambda case: case.name)
def test_no_order_of_events_does_harm(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    found = explore(case)
    assert found.states > 50
    assert found.resting
    assert found.stuck == 0
    with capsys.disabled():
        print(f" [{case.name}: {found.states} states]", end="")
