"""Scenes: one for all tests that leave it whole, and new ones for tests that do not."""

from collections.abc import Callable, Iterator

import pytest

from tests.acceptance.scene import Scene
from tests.support.controlplane import ControlPlane


@pytest.fixture(scope="session")
def scene() -> Iterator[Scene]:
    """A running control plane for all tests that leave it whole; what is wrong at its end fails the last of them."""
    made = raised()
    yield made
    made.close()


@pytest.fixture
def new_scene() -> Iterator[Callable[..., Scene]]:
    """`new_scene(ROLLCALL_LONG_WORKERS="2")`: a running control plane of the test's own."""
    made: list[Scene] = []

    def make(**environment: str) -> Scene:
        made.append(raised(**environment))
        return made[-1]

    yield make
    for each in made:
        each.close()


def raised(**environment: str) -> Scene:
    """A scene over a new control plane."""
    plane = ControlPlane(**environment)
    try:
        return Scene(plane)
    except BaseException:
        plane.close()
        raise
