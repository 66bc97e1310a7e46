"""Scenes: one for all tests that leave it whole, and new ones for tests that do not."""

import shutil
from collections.abc import Callable, Iterator

import pytest

from tests.acceptance.scene import Scene
from tests.support.controlplane import ControlPlane
from tests.support.disk import Disk

# Variables of the control plane's own, and of whoever starts it, that no replica may see.
HOSTILE = {
    "SECRET_KEY": "not-for-replicas",
    "DATABASE_URL": "",
    "VIRTUAL_ENV": "/not/for/replicas",
    "DJANGO_SETTINGS_MODULE": "controlplane.settings",
    "ROLLCALL_LOG_LEVEL": "INFO",
    "PYTHONPATH": "/not/for/replicas",
}


@pytest.fixture(scope="session")
def scene() -> Iterator[Scene]:
    """A running control plane for all tests that leave it whole; what is wrong at its end fails the last of them."""
    plane = ControlPlane(**HOSTILE)
    disk = Disk(plane.home / "replicas")
    try:
        made = raised(plane)
        made.disk = disk
        yield made
        made.close()
    finally:
        disk.close()
        shutil.rmtree(plane.home, ignore_errors=True)


@pytest.fixture
def new_scene() -> Iterator[Callable[..., Scene]]:
    """`new_scene(ROLLCALL_LONG_WORKERS="2")`: a running control plane of the test's own."""
    made: list[Scene] = []

    def make(**environment: str) -> Scene:
        made.append(raised(ControlPlane(**environment)))
        return made[-1]

    yield make
    for each in made:
        each.close()


def raised(plane: ControlPlane) -> Scene:
    """A scene over a new control plane."""
    try:
        return Scene(plane)
    except BaseException:
        plane.close()
        raise
