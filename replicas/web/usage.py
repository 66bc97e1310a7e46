"""CPU and memory of the replicas that run where their provider can see it; measured when somebody looks."""

import time
from collections import defaultdict
from functools import lru_cache

from django.conf import settings

from replicas.models import Replica
from replicas.models.fields import ALIVE
from replicas.models.public import Row
from replicas.providers import registry

KEPT_SECONDS = 1  # a hundred pages of a service look at its processes once in so many seconds
KEPT = 64  # services


def of(service_id: int) -> Row:
    """`{at, replicas}`: `replicas` has `[CPU seconds so far, bytes of memory]` by number, of those that can be
    measured; `at` is when that was, in seconds of a clock that nobody sets."""
    return _measured(service_id, int(time.monotonic() // KEPT_SECONDS))


@lru_cache(maxsize=KEPT)
def _measured(service_id: int, _moment: int) -> Row:
    by_provider = defaultdict(list)
    live = Replica.objects.filter(ALIVE, service=service_id).exclude(handle=None)
    for number, provider, handle in live.values_list("number", "provider", "handle"):
        by_provider[provider].append((number, handle))
    at, found = time.monotonic(), {}
    for name, replicas in by_provider.items():
        meter = getattr(registry.get(name, settings.ROLLCALL.home), "usage", None)
        if meter is None:
            continue
        used = meter([handle for _, handle in replicas])
        for (number, _), usage in zip(replicas, used, strict=True):
            if usage is not None:
                found[number] = [round(usage.cpu_seconds, 2), usage.memory]
    return {"at": round(at, 3), "replicas": found}
