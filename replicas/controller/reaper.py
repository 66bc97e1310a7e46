"""Takes operations from owners that died or went silent, so that somebody else goes on with them."""

import signal
import socket
from collections.abc import Iterable
from datetime import datetime, timedelta

from replicas.actions import operations
from replicas.controller.picture import Owned
from replicas.core.values import OperationStatus
from replicas.models import Operation
from replicas.providers import procs


def reap(owned: Iterable[Owned], now: datetime, stale: timedelta) -> list[int]:
    """Orphan every running operation whose owner is dead (seen at once on this host) or silent for `stale`."""
    here = socket.gethostname()
    reaped = []
    for owner in owned:
        reason = why_orphan(owner, now, stale, here)
        if reason is None:
            continue
        if owner.host == here and owner.pid is not None and owner.start is not None:
            # Stopped or hung: it must not wake up and go on beside its successor. A dead one is not there any more.
            procs.send(owner.pid, owner.start, signal.SIGKILL)
        operation = Operation.objects.get(pk=owner.id)
        if operation.claim == owner.claim and operations.orphan(operation, reason=reason):
            reaped.append(owner.id)
    return reaped


def why_orphan(owner: Owned, now: datetime, stale: timedelta, here: str) -> str | None:
    """Why the operation has lost its owner; None while it has one."""
    if owner.status is not OperationStatus.RUNNING or owner.pid is None or owner.start is None:
        return None
    if owner.host == here and not procs.alive(owner.pid, owner.start):
        return f"its worker (pid {owner.pid}) died; another goes on with it"
    if owner.heartbeat_at is None or now - owner.heartbeat_at <= stale:
        return None
    silent = (now - owner.heartbeat_at).total_seconds()
    return f"its worker (pid {owner.pid} on {owner.host}) was silent for {silent:.0f} s; another goes on with it"
