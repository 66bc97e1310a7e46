"""What no row names any more: the directories and logs that a crash, or the forgetting of their rows, left behind."""

import logging
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from replicas import clock
from replicas.actions import pruning
from replicas.core.wording import some
from replicas.providers import registry
from replicas.providers.base import Kept, ProviderError
from replicas.providers.logtimes import times_of

log = logging.getLogger(__name__)

YOUNG_SECONDS = 3600.0  # its row may be about to be made
ACCESS_LOG = re.compile(r"(.+)\.log(?:\.[0-9]+)?")
FORGET = {"replica": "forget_replica", "version": "forget_version"}


@dataclass(frozen=True, slots=True)
class Orphans:
    """What is left over: (provider, kept) pairs, the logs of operations, and those of requests. `live` are those of
    which something runs; then the database is more likely the wrong one than everything else is garbage, and nothing
    may go."""

    kept: tuple[tuple[str, Kept], ...] = ()
    logs: tuple[Path, ...] = ()
    requests: tuple[Path, ...] = ()
    live: tuple[tuple[str, Kept], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.kept or self.logs or self.requests or self.live)

    def words(self) -> str:
        """The directories of 1 version and 2 replicas, 3 operation logs and 1 access log."""
        kinds = [kept.kind for _, kept in self.kept]
        versions, replicas = (some(kinds.count(kind), kind) for kind in ("version", "replica"))
        logs = f"{some(len(self.logs), 'operation log')} and {some(len(self.requests), 'access log')}"
        return f"the directories of {versions} and {replicas}, {logs}"

    def hindrance(self) -> str:
        """Why nothing goes, or ""."""
        if not self.live:
            return ""
        provider, kept = self.live[0]
        return (
            f"Of {kept.kind} {kept.uid} ({provider}) a process runs, and no row names it: is DATABASE_URL that of the"
            f" home {settings.ROLLCALL.home}? Nothing that no row names is removed."
        )


def find() -> Orphans:
    """What nothing names and nobody has touched for YOUNG_SECONDS, and what runs without a name.

    First what there is, then the rows: what comes into being meanwhile has its row by then."""
    kept = [(name, each) for name in registry.names() for each in _kept(name)]
    logs, requests = dict(_logs()), list(_access_logs())
    nobody = pruning.unnamed_services(name for name, _ in requests)
    replicas = pruning.unnamed_replicas(each.uid for _, each in kept if each.kind == "replica")
    versions = pruning.unnamed_versions(each.uid for _, each in kept if each.kind == "version")
    unnamed = {"replica": replicas, "version": versions}
    orphans = [(name, each) for name, each in kept if each.uid in unnamed[each.kind]]
    return Orphans(
        tuple((name, each) for name, each in orphans if not each.live and _old(each.changed)),
        tuple(logs[number] for number in sorted(pruning.unnamed_operations(logs))),
        tuple(path for name, path in requests if name in nobody),
        tuple((name, each) for name, each in orphans if each.live),
    )


def remove() -> Orphans:
    """Remove what `find` finds, unless something of it is alive; what has gone, or why nothing went."""
    found = find()
    if found.live:
        return Orphans(live=found.live)
    for path in (*found.logs, *map(times_of, found.logs), *found.requests):
        path.unlink(missing_ok=True)
    return Orphans(tuple(each for each in found.kept if _forget(*each)), found.logs, found.requests)


def _forget(provider: str, kept: Kept) -> bool:
    try:
        getattr(registry.get(provider, settings.ROLLCALL.home), FORGET[kept.kind])(kept.uid)
    except ProviderError as error:  # somebody is at work on it after all: the next pruning looks again
        log.warning("what is left of the %s %s stays: %s", kept.kind, kept.uid, error.reason)
        return False
    return True


def _kept(provider: str) -> Iterator[Kept]:
    kept = getattr(registry.get(provider, settings.ROLLCALL.home), "kept", None)
    yield from kept() if kept else ()


def _logs() -> Iterator[tuple[int, Path]]:
    for path in (settings.ROLLCALL.logs / "operations").glob("*.log"):
        if path.stem.isascii() and path.stem.isdigit() and _old(path.lstat().st_mtime):
            yield int(path.stem), path


def _access_logs() -> Iterator[tuple[str, Path]]:
    """The logs of requests, those put aside too, by the service's name."""
    for path in sorted((settings.ROLLCALL.logs / "access").glob("*")):
        named = ACCESS_LOG.fullmatch(path.name)
        if named and _old(path.lstat().st_mtime):
            yield named[1], path


def _old(changed: float) -> bool:
    """By the wall clock, and by ours that nobody steps: a jump of either makes nothing old."""
    return min(time.time(), clock.now().timestamp()) - changed > YOUNG_SECONDS
