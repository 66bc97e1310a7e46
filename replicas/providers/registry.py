"""The providers by name."""

import os
from collections.abc import Callable
from pathlib import Path

from replicas.providers.base import Provider, ProviderError
from replicas.providers.fake import FakeProvider
from replicas.providers.local import LocalProvider

_FACTORIES: dict[str, Callable[[Path], Provider]] = {"fake": FakeProvider, "local": LocalProvider}
_made: dict[tuple[str, Path], Provider] = {}


def names() -> list[str]:
    """The known providers."""
    return sorted(_FACTORIES)


def get(name: str, home: Path) -> Provider:
    """The provider of that name for that ROLLCALL_HOME, made once per process. Raises ProviderError for another
    name."""
    if name not in _FACTORIES:
        raise ProviderError(f"provider: {name!r} is not known: use one of {', '.join(names())}.", retryable=False)
    key = (name, Path(os.path.abspath(home)))
    if key not in _made:
        _made[key] = _FACTORIES[name](key[1])
    return _made[key]
