"""How much is tried: a little in the suite, ROLLCALL_FUZZ times that by `make fuzz`."""

import os
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings

FACTOR = max(1, int(os.environ.get("ROLLCALL_FUZZ") or 1))


def fuzzed(examples: int = 100) -> Callable[..., Any]:
    """Settings of a fuzz test: so many examples, times ROLLCALL_FUZZ."""
    return settings(deadline=None, max_examples=examples * FACTOR, suppress_health_check=list(HealthCheck))
