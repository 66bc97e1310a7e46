"""Providers by name."""

from pathlib import Path

import pytest

from replicas.providers import registry
from replicas.providers.base import Provider, ProviderError
from tests.providers.cast import contract


def test_every_provider_is_made_once_for_a_home(tmp_path: Path) -> None:
    for name in registry.names():
        provider: Provider = contract(registry.get(name, tmp_path))
        assert provider.name == name
        assert registry.get(name, tmp_path) is provider
        assert registry.get(name, tmp_path / "other") is not provider


def test_an_unknown_name_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ProviderError, match="'locl' is not known: use one of fake, local") as caught:
        registry.get("locl", tmp_path)
    assert not caught.value.retryable
