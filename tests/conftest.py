"""Fixtures for all tests: isolated homes, whole control planes, and skips that CI does not allow."""

import dataclasses
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from controlplane import home as homes
from tests.support.controlplane import ControlPlane
from tests.support.needs import check
from tests.support.polling import eventually as poll


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip, or in CI fail, a test whose part of the machine is missing."""
    for mark in item.iter_markers("needs"):
        check(mark.args[0])


@pytest.fixture
def eventually() -> Callable[..., Any]:
    """`eventually(predicate, timeout, message)`: poll until true, fail at the deadline."""
    return poll


@pytest.fixture
def home(settings: Any) -> Iterator[Path]:
    """An empty home with a short path, which `settings.ROLLCALL` names for the length of the test."""
    path = Path(tempfile.mkdtemp(prefix="rc-", dir="/tmp"))
    settings.ROLLCALL = dataclasses.replace(settings.ROLLCALL, home=path)
    homes.prepare(settings.ROLLCALL)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def control_plane() -> Iterator[ControlPlane]:
    """A running control plane of the test's own. The test takes down what it has applied: what is left fails it."""
    plane = ControlPlane()
    left: list[str] = []
    try:
        yield plane.start()
    finally:
        left = plane.close()
    assert not left, "left running after the control plane was stopped:\n" + "\n".join(left)


@pytest.fixture
def new_control_plane() -> Iterator[Callable[..., ControlPlane]]:
    """Makes control planes that are not started yet: `new_control_plane(ROLLCALL_SHORT_WORKERS="3")`."""
    made: list[ControlPlane] = []

    def make(**environment: str) -> ControlPlane:
        made.append(ControlPlane(**environment))
        return made[-1]

    yield make
    for plane in made:
        plane.close()


@pytest.fixture(autouse=True)
def no_control_plane_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable of the developer's own must not reach a test."""
    for name in ("ROLLCALL_PROCESS", "ROLLCALL_ADMIN_PASSWORD", "ROLLCALL_ADMIN_USER"):
        if name in os.environ:
            monkeypatch.delenv(name)
