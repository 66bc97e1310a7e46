"""Homes of their own for the tests of providers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from replicas.providers.fake import FakeProvider
from replicas.providers.local import LocalProvider
from tests.providers.cast import Cast


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Cast]:
    """The local provider."""
    (tmp_path / "logs").mkdir()
    cast = Cast(LocalProvider(tmp_path / "home"), tmp_path / "home", tmp_path / "logs")
    yield cast
    cast.clear()


@pytest.fixture
def fake(tmp_path: Path) -> Cast:
    """The fake provider."""
    (tmp_path / "logs").mkdir()
    return Cast(FakeProvider(tmp_path / "home"), tmp_path / "home", tmp_path / "logs")
