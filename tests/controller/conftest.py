"""A stage for each test of the controller and its jobs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.controller.stage import Stage


@pytest.fixture
def stage(home: Path, monkeypatch: Any, db: None) -> Iterator[Stage]:
    """A controller with the lease, in a home of its own."""
    made = Stage(monkeypatch)
    yield made
    made.close()
