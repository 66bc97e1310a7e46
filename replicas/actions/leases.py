"""The controller's lease with its fencing number, and the heartbeats of the parts."""

import os
import socket
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, Q

from replicas import clock
from replicas.actions.transition import writing
from replicas.core.backoff import CLOCK_STEP, LONGEST_WAIT
from replicas.models import Heartbeat, Lease


def acquire(name: str, holder: str, seconds: float) -> int | None:
    """Take or renew the lease. The fencing number, which grows with every new holder; None while another holds it."""
    now = clock.now()
    until = now + timedelta(seconds=seconds)
    mine = Lease.objects.filter(name=name, holder=holder).filter(expires_at__gt=now)
    if mine.update(expires_at=until):
        return Lease.objects.values_list("fence", flat=True).get(name=name)
    Lease.objects.get_or_create(name=name)
    free = Lease.objects.filter(name=name).filter(~_in_force(now) | Q(holder=holder))
    with writing():
        if not free.update(
            holder=holder, host=socket.gethostname(), pid=os.getpid(), fence=F("fence") + 1, expires_at=until
        ):
            return None
        return Lease.objects.values_list("fence", flat=True).get(name=name)


def _in_force(now: datetime) -> Q:
    """Leases that somebody holds. One that ends later than any may was taken before the clock was set back."""
    return Q(expires_at__isnull=False, expires_at__gt=now, expires_at__lte=now + LONGEST_WAIT + CLOCK_STEP)


def release(name: str, holder: str) -> None:
    """Give the lease up at once, so that the next holder need not wait for its end."""
    Lease.objects.filter(name=name, holder=holder).update(expires_at=None, holder="")


def holds(name: str, holder: str, fence: int) -> bool:
    """True while the lease is still this holder's with this fencing number."""
    return Lease.objects.filter(name=name, holder=holder, fence=fence, expires_at__gt=clock.now()).exists()


def beat(name: str) -> None:
    """A sign of life of the part `name`, by this process."""
    sign: dict[str, Any] = {"at": clock.now(), "pid": os.getpid(), "host": socket.gethostname()}
    if not Heartbeat.objects.filter(name=name).update(**sign):
        Heartbeat.objects.update_or_create(name=name, defaults=sign)


def break_dead(name: str, alive: Callable[[int], bool]) -> bool:
    """Free a lease whose holder on this host is dead by `alive(pid)`, so that nobody waits for it to run out."""
    held = Lease.objects.filter(name=name, expires_at__gt=clock.now(), host=socket.gethostname()).first()
    if held is None or held.pid is None or alive(held.pid):
        return False
    return bool(Lease.objects.filter(pk=held.pk, fence=held.fence, holder=held.holder).update(expires_at=None))


def free(names: Sequence[str], alive: Callable[[int], bool] = lambda _pid: True) -> list[str]:
    """Those of the leases that nobody holds; one whose holder on this host is dead by `alive(pid)` is made free."""
    now, host = clock.now(), socket.gethostname()
    held = {lease.name: lease for lease in Lease.objects.filter(_in_force(now), name__in=names)}
    for name, lease in list(held.items()):
        if lease.host == host and lease.pid is not None and not alive(lease.pid) and break_dead(name, alive):
            del held[name]
    return [name for name in names if name not in held]
