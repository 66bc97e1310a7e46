"""The feed of this web process: one tailer that reads new event rows and hands them to the hub for every socket."""

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.db import Error as DatabaseTrouble

from replicas import bell
from replicas.actions import leases
from replicas.web import outbox
from replicas.web.guard import Guard
from replicas.web.hub import Hub
from replicas.web.logtail import Logs
from replicas.web.offload import kept_going, query, tailer_query

log = logging.getLogger(__name__)

POLL_SECONDS = 1.0  # the fallback for a ring that was lost, and for changes made on other hosts
PACE_SECONDS = 0.1  # at most ten messages a second; a lone event goes out at once
TROUBLE_SECONDS = 1.0
BEAT_SECONDS = 3.0
CHECK_SECONDS = 2.0
PING_SECONDS = 5.0
LATE_SECONDS = 5.0


class Feed:
    """Tailer, hub and guard, with the tasks that keep them going. For one event loop."""

    def __init__(self) -> None:
        self.hub = Hub()
        self.guard = Guard()
        self.logs = Logs(self.hub)
        self.server = os.urandom(8).hex()
        self.sockets = 0
        self._rung = asyncio.Event()
        self._looked = 0.0
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Read where the events end and begin to tail. Raises django.db.Error when the database does not answer."""
        self.hub.begin(await tailer_query(outbox.newest))
        self._looked = time.monotonic()
        loops = (self._tail, self._beat, self._check, self._ping)
        self._tasks = [asyncio.create_task(kept_going(each)) for each in loops]

    async def stop(self) -> None:
        """End the tasks and remove the bell."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []

    @contextlib.contextmanager
    def counting(self) -> Iterator[None]:
        """One more open socket."""
        self.sockets += 1
        try:
            yield
        finally:
            self.sockets -= 1

    @property
    def ok(self) -> bool:
        """True while the tailer gets through to the database."""
        return self.lag <= LATE_SECONDS and bool(self._tasks) and not any(task.done() for task in self._tasks)

    @property
    def lag(self) -> float:
        """Seconds since the tailer last looked at the database."""
        return time.monotonic() - self._looked

    async def _tail(self) -> None:
        loop = asyncio.get_running_loop()
        ear = bell.Bell(settings.ROLLCALL.run, bell.EVENTS)
        loop.add_reader(ear.fileno(), self._ring, ear)
        try:
            while True:
                rung = await self._listen()
                try:
                    await asyncio.sleep(await self._look(rung))
                except DatabaseTrouble as error:
                    log.warning("The feed cannot read the events (%s); it tries again each second.", first_line(error))
                    await asyncio.sleep(TROUBLE_SECONDS)
        finally:
            loop.remove_reader(ear.fileno())
            ear.close()

    def _ring(self, ear: bell.Bell) -> None:
        ear.drain()
        self._rung.set()

    async def _listen(self) -> bool:
        """Wait for a ring, at most until the next poll is due. True if there was one."""
        try:
            await asyncio.wait_for(self._rung.wait(), POLL_SECONDS)
        except TimeoutError:
            return False
        self._rung.clear()
        return True

    async def _look(self, rung: bool) -> float:
        """Publish what is new. Seconds for which the next look can wait, so that bursts become few messages."""
        items = await tailer_query(outbox.items_after, self.hub.end)
        if not items and not rung and await tailer_query(outbox.newest) < self.hub.end:
            log.warning("The newest events are gone: another database took the place of the one that was read.")
            self.hub.begin(await tailer_query(outbox.newest))
        self._looked = time.monotonic()
        self.hub.publish(items)
        if len(items) == outbox.PAGE:
            self._rung.set()
        return PACE_SECONDS if items else 0.0

    async def _beat(self) -> None:
        while True:
            try:
                await query(leases.beat, "web")
            except DatabaseTrouble as error:
                log.warning("The heartbeat of the web process is not written: %s", first_line(error))
            await asyncio.sleep(BEAT_SECONDS)

    async def _check(self) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            try:
                await self.guard.check()
            except DatabaseTrouble as error:
                log.warning("Open sockets are not checked: %s", first_line(error))

    async def _ping(self) -> None:
        while True:
            await asyncio.sleep(PING_SECONDS)
            self.hub.wake()
            self.logs.wake()


_feed: Feed | None = None
_starting = asyncio.Lock()


async def running() -> Feed:
    """The feed of this process, started if it was not. Raises django.db.Error when the database does not answer."""
    global _feed
    async with _starting:
        if _feed is None:
            feed = Feed()
            await feed.start()
            _feed = feed
    return _feed


async def stop() -> None:
    """End the feed of this process, if it runs."""
    global _feed
    feed, _feed = _feed, None
    if feed is not None:
        await feed.stop()


def feed_status() -> dict[str, Any]:
    """`{"ok", "cursor", "lag_seconds", "sockets"}`: whether new events reach the browsers of this process."""
    if _feed is None:
        return {"ok": False, "cursor": 0, "lag_seconds": None, "sockets": 0}
    return {"ok": _feed.ok, "cursor": _feed.hub.end, "lag_seconds": round(_feed.lag, 3), "sockets": _feed.sockets}


def first_line(error: Exception) -> str:
    """The first line of an error's text."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
