"""The pruning job: removes old history in the background."""

import logging
from datetime import timedelta

from django.conf import settings

from replicas import clock
from replicas.actions import idempotency, notices, pruning
from replicas.jobs import orphans, queue
from replicas.providers import registry

log = logging.getLogger(__name__)


def forget_replica(provider: str, uid: str) -> None:
    """Remove what a provider keeps of a replica that is gone, where it keeps anything."""
    forget = getattr(registry.get(provider, settings.ROLLCALL.home), "forget_replica", None)
    if forget is not None:
        forget(uid)


def forget_versions() -> int:
    """Remove what providers keep for versions that nothing uses; how many versions that were."""
    unused = pruning.unused_versions()
    for version in unused:
        provider = registry.get(version.spec.get("provider", "local"), settings.ROLLCALL.home)
        forget = getattr(provider, "forget_version", None)
        if forget is not None:
            forget(version.files_uid)
    return len(unused)


def run(days: float) -> None:
    """Prune once: what ended more than `days` ago, or, where that is below 0, what the settings say."""
    older = timedelta(days=settings.ROLLCALL.prune_days if days < 0 else days)
    pruning.prune(clock.now() - older, forget_replica=forget_replica)
    notices.prune(clock.now() - older)
    idempotency.prune()
    forget_versions()
    left = orphans.remove()
    if left:
        log.warning("%s", left.hindrance() or f"Nothing named {left.words()}: they were removed.")
    queue.prune(older)
