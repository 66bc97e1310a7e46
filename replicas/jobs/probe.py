"""The probe job: probes the replicas of a shard whenever each is due, until its time is over and the next job follows.

One job works for LIFETIME_SECONDS under a lease of its shard, so that a delivery that comes twice finds nothing to do
and one that is lost is noticed by the lease running out. What is due when is kept in memory only: a new job probes
everything at once. See docs/decisions/0002-probe-job.md.
"""

import asyncio
import logging
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from typing import ParamSpec, TypeVar

from django.conf import settings
from django.db import connection

from replicas import bell, clock
from replicas.actions import leases
from replicas.jobs.probing import Target, changes_after, load_targets, record
from replicas.providers import procs
from replicas.providers.exchange import CHUNK
from replicas.providers.naming import Names
from replicas.providers.probe import ProbeResult, probe

log = logging.getLogger(__name__)

LIFETIME_SECONDS = 120.0
OVERTIME_SECONDS = 120.0  # how much longer a job may stay to let slow probes end
IDLE_SECONDS = 10.0  # with nothing to probe the job ends
LEASE_SECONDS = 3.0
RENEW_SECONDS = 1.0
SETTLE_SECONDS = 0.02  # changes come in bursts: read the rows once for all of them
T = TypeVar("T")
P = ParamSpec("P")


def lease_of(shard: int) -> str:
    """The lease that the probe job of a shard holds."""
    return f"probe-{shard}"


def run(shard: int) -> None:
    """Probe until the time is over; nothing happens while another job has the shard."""
    holder = uuid.uuid4().hex
    if leases.acquire(lease_of(shard), holder, LEASE_SECONDS) is None:
        return
    procs.more_files()
    with ThreadPoolExecutor(1, thread_name_prefix="probe-rows") as rows:
        try:
            asyncio.run(Round(shard, holder, rows).work())
        finally:
            leases.release(lease_of(shard), holder)
            rows.submit(lambda: connection.close()).result()  # the connection of that thread
            bell.ring(settings.ROLLCALL.run, bell.EVENTS)  # the controller offers the next job at once


class Round:
    """The work of one probe job. Rows are read and written in one thread; probes share one event loop."""

    def __init__(self, shard: int, holder: str, rows: ThreadPoolExecutor) -> None:
        self.shard = shard
        self.holder = holder
        self.rows = rows
        self.targets: dict[int, Target] = {}
        self.under_way: dict[int, asyncio.Task[None]] = {}
        self.results: list[tuple[ProbeResult, datetime]] = []  # with the moments of the answers
        self.news = asyncio.Event()
        self.cursor = -1
        self.names = Names()
        self.buffer = memoryview(bytearray(CHUNK))
        self.began = time.monotonic()
        self.renewed = 0.0

    async def work(self) -> None:
        """Until the time is over or the lease is lost."""
        listener = bell.Bell(settings.ROLLCALL.run, bell.EVENTS)
        asyncio.get_running_loop().add_reader(listener.fileno(), self._rung, listener)
        try:
            while not self._over():
                if time.monotonic() - self.renewed >= RENEW_SECONDS:
                    self.renewed = time.monotonic()
                    if await self._in_rows(leases.acquire, lease_of(self.shard), self.holder, LEASE_SECONDS) is None:
                        return
                await self._refresh()
                self._start_due()
                await self._wait()
                await self._record()
        finally:
            asyncio.get_running_loop().remove_reader(listener.fileno())
            listener.close()
            self.names.close()
            for probing in self.under_way.values():
                probing.cancel()

    def _over(self) -> bool:
        age = time.monotonic() - self.began
        if not self.targets and age > IDLE_SECONDS:
            return True
        return age > LIFETIME_SECONDS and (not self.under_way or age > LIFETIME_SECONDS + OVERTIME_SECONDS)

    def _rung(self, listener: bell.Bell) -> None:
        listener.drain()
        self.news.set()

    async def _in_rows(self, call: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self.rows, partial(call, *arguments, **named))

    async def _refresh(self) -> None:
        """Read the rows that have changed; what is due when stays as it was."""
        self.cursor, changed = await self._in_rows(changes_after, self.cursor)
        if changed is not None and not changed:
            return
        self.targets = await self._in_rows(load_targets, self.shard, self.targets, changed)
        for key in self.under_way.keys() - self.targets.keys():
            self.under_way[key].cancel()

    def _start_due(self) -> None:
        now = time.monotonic()
        if now - self.began > LIFETIME_SECONDS:
            return
        for key, target in self.targets.items():
            if target.due <= now and key not in self.under_way:
                target.due = now + target.interval()
                self.under_way[key] = asyncio.create_task(self._probe(key, target))

    async def _probe(self, key: int, target: Target) -> None:
        try:
            result = target.answered() or await probe(target.request, self.names, self.buffer)
            self.results.append((result, clock.now()))
            self.news.set()
        except asyncio.CancelledError:
            pass  # its replica is gone, or the job is over
        finally:
            self.under_way.pop(key, None)

    async def _wait(self) -> None:
        """Until the bell rings, a result is in, the next probe is due, or the lease wants renewing."""
        now = time.monotonic()
        idle = (t.due for k, t in self.targets.items() if k not in self.under_way)
        seconds = min(max(0.0, min(idle, default=now + RENEW_SECONDS) - now), RENEW_SECONDS)
        try:
            await asyncio.wait_for(self.news.wait(), seconds)
            await asyncio.sleep(SETTLE_SECONDS)
        except TimeoutError:
            pass  # something is due
        self.news.clear()

    async def _record(self) -> None:
        results, self.results = self.results, []
        if time.monotonic() - self.renewed > LEASE_SECONDS:
            return  # stopped for so long that another job may have the shard: what was seen before that is history
        for result, moment in results:
            target = self.targets.get(result.key)
            if target is not None and result.conclusive:
                await self._in_rows(record, target, result, moment)
