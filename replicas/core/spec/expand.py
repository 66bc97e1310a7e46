"""`${NAME}` and `$NAME` in workdir, file_mounts, resources and service, as SkyPilot expands them."""

import re
from collections.abc import Mapping
from typing import Any

from replicas.core.spec.scalars import Expanded

_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")


_MOST_VARIABLES = 10_000


class TooLong(ValueError):
    """The expanded texts are larger than the limit, or have more variables than anybody means."""


def expand(value: Any, names: Mapping[str, str], limit: int = 1024 * 1024) -> Any:
    """The JSON value (or tree) with the variables of `names` put in, in keys too; other variables stay as they are.

    Raises TooLong (a ValueError) when the variables bring more than `limit` characters. Secrets are never put into a
    spec: whoever uses a field that names one (a probe's header, a mount's source) calls this with the secrets as
    `names`, at that moment.
    """
    return _Expansion(names, limit).value(value)


class _Expansion:
    def __init__(self, names: Mapping[str, str], limit: int):
        self._names = names
        self._left = limit
        self._variables_left = _MOST_VARIABLES

    def value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            return {self._text(key) if isinstance(key, str) else key: self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return value

    def _text(self, text: str) -> str:
        if "$" not in text or not self._names:
            return text
        result = _VARIABLE.sub(self._variable, text)
        return text if result == text else Expanded(result)

    def _variable(self, found: re.Match[str]) -> str:
        self._variables_left -= 1
        if self._variables_left < 0:
            raise TooLong
        value = self._names.get(found[1] or found[2])
        if value is None:
            return found[0]
        self._left -= len(value)
        if self._left < 0:
            raise TooLong
        return value
