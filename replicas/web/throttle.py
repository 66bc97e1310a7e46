"""Who fails again and again has to wait: wrong tokens and wrong passwords are counted for each address."""

from dataclasses import dataclass

from django.core.cache import cache


@dataclass(frozen=True, slots=True)
class Failures:
    """At most `most` failures, of which the last is less than `seconds` old. `name` tells them from others."""

    name: str
    most: int
    seconds: int

    def too_many(self, whose: str) -> bool:
        """Whether somebody has to wait."""
        return int(cache.get(self._key(whose), 0)) >= self.most

    def note(self, whose: str) -> None:
        """Somebody has failed."""
        key = self._key(whose)
        cache.set(key, int(cache.get(key, 0)) + 1, self.seconds)

    def forget(self, whose: str) -> None:
        """Somebody has not failed."""
        cache.delete(self._key(whose))

    def _key(self, whose: str) -> str:
        return f"failures:{self.name}:{whose.encode().hex()}"
