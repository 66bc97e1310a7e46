"""Sees the end of processes at once: of replicas, and of what waiting operations wait for."""

import os
import selectors
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from replicas.actions import operations, replicas
from replicas.controller.picture import Owned, Seen
from replicas.core.lifecycle import RUNNING
from replicas.core.values import OperationStatus
from replicas.providers import procs
from replicas.providers.base import Inspection, Provider

TRIGGERS = {"exited": "exited", "gone": "lost", "preempted": "preempted"}
ACTOR = "controller"
Identity = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Key:
    """What a watched process stands for: a replica or a waiting operation."""

    kind: str
    id: int
    identity: Identity


class Watch:
    """File descriptors of processes in one selector. Providers that cannot be watched are asked now and then."""

    def __init__(self, selector: selectors.BaseSelector, inspect_seconds: float = 2.0) -> None:
        self.selector = selector
        self.inspect_seconds = inspect_seconds
        self.watched: dict[Key, int] = {}
        self.ended: set[Key] = set()
        self.asked: dict[int, float] = {}  # when each replica that cannot be watched was last asked about

    def follow(self, wanted: Mapping[Key, Identity]) -> None:
        """Watch exactly these; one that has ended already counts as ended now."""
        for key in self.watched.keys() - wanted.keys():
            self._drop(key)
        for key, (pid, start) in wanted.items():
            if key in self.watched or key in self.ended:
                continue
            descriptor = open_process(pid, start)
            if descriptor is None:
                self.ended.add(key)
            else:
                self.watched[key] = descriptor
                self.selector.register(descriptor, selectors.EVENT_READ, key)

    def fired(self, key: Key) -> None:
        """The selector says that the process has ended."""
        self.ended.add(key)
        self._drop(key)

    def _drop(self, key: Key) -> None:
        descriptor = self.watched.pop(key, None)
        if descriptor is not None:
            self.selector.unregister(descriptor)
            os.close(descriptor)

    def take_ended(self) -> set[Key]:
        """What has ended since the last call."""
        ended, self.ended = self.ended, set()
        return ended

    def due(self, seen: Iterable[Seen], providers: Mapping[str, Provider]) -> list[Seen]:
        """Replicas of providers without a watch that it is time to ask about."""
        now = time.monotonic()
        unwatched = [s for s in seen if s.state in RUNNING and s.handle and not hasattr(providers[s.provider], "watch")]
        due = [s for s in unwatched if now - self.asked.get(s.id, 0.0) >= self.inspect_seconds]
        self.asked = {s.id: self.asked.get(s.id, 0.0) for s in unwatched} | {s.id: now for s in due}
        return due

    @property
    def has_unwatched(self) -> bool:
        """True when some replica can only be asked about."""
        return bool(self.asked)

    def close(self) -> None:
        """Let go of every descriptor."""
        for key in list(self.watched):
            self._drop(key)


def open_process(pid: int, start: int) -> int | None:
    """A pidfd of this very process; None when it has ended (a stranger with its pid is not it)."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    if procs.alive(pid, start):
        return descriptor
    os.close(descriptor)
    return None


def wanted(seen: Iterable[Seen], owned: Iterable[Owned], providers: Mapping[str, Provider]) -> dict[Key, Identity]:
    """Which processes are worth watching now."""
    found: dict[Key, Identity] = {}
    for replica in seen:
        look = getattr(providers[replica.provider], "watch", None)
        if look is None or replica.handle is None or replica.state not in RUNNING:
            continue
        identity = look(replica.handle)
        if identity is not None:
            found[Key("replica", replica.id, tuple(identity))] = identity
    for operation in owned:
        if operation.status is OperationStatus.WAITING and operation.watch is not None:
            found[Key("operation", operation.id, operation.watch)] = operation.watch
    return found


def settle_replica(replica: Seen, inspection: Inspection) -> bool:
    """Let what the provider saw happen to the replica. False when it still runs or is past it."""
    trigger = TRIGGERS.get(inspection.kind)
    if trigger is None:
        return False
    reason = inspection.detail or f"{inspection.kind} (exit code {inspection.code})"
    return replicas.observe(replica.id, trigger, reason=reason, actor=ACTOR, last_lines=list(inspection.tail))


def settle_operation(operation_id: int) -> None:
    """The process that an operation waited for has ended."""
    operations.hasten(operation_id)
