"""The logs that are looked at right now: one loop polls each of their files once, for all who look."""

import asyncio
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.db import Error as DatabaseTrouble

from replicas.web.hub import Hub, Item
from replicas.web.livelog import NOTHING, LiveLog, Stood, poll
from replicas.web.logrows import OPERATION, Key, Place, places
from replicas.web.offload import file_work, kept_going, query

log = logging.getLogger(__name__)

POLL_SECONDS = 0.1
ROWS_SECONDS = 5.0  # rows are read again at each event about them, and this often in case that was missed


class Logs:
    """Every log with at least one viewer. For one event loop."""

    def __init__(self, hub: Hub) -> None:
        self._open: dict[Key, LiveLog] = {}
        self._hub = hub
        self._kick = asyncio.Event()
        self._loop: asyncio.Task[None] | None = None
        hub.listeners.append(self._heard)

    @contextmanager
    def viewing(self, key: Key) -> Iterator[LiveLog]:
        """The log of `key`, kept up to date for as long as the context lasts."""
        live = self._open.setdefault(key, LiveLog(key))
        live.viewers += 1
        self._kick.set()
        if self._loop is None or self._loop.done():
            self._loop = asyncio.create_task(kept_going(self._run))
        try:
            yield live
        finally:
            live.viewers -= 1
            if not live.viewers:
                self._open.pop(key, None)

    def wake(self) -> None:
        """Let all viewers of all logs look again."""
        for live in self._open.values():
            live.wake()

    def _heard(self, items: list[Item]) -> None:
        """Mark the logs that the events are about."""
        if not self._open:
            return
        operations = {item.object_id for item in items if item.kind == "operation"}
        replicas = {item.replica_id for item in items}
        for key, live in self._open.items():
            if key.id in (operations if key.which == OPERATION else replicas):
                live.stale = True

    async def _run(self) -> None:
        """Look at all that is open, ten times a second, until nothing is."""
        while self._open:
            began = time.monotonic()
            self._kick.clear()
            await self._look(list(self._open.values()))
            try:
                await asyncio.wait_for(self._kick.wait(), max(0.0, began + POLL_SECONDS - time.monotonic()))
            except TimeoutError:
                continue
            await asyncio.sleep(POLL_SECONDS / 10)  # viewers come in crowds: look once for all of them

    async def _look(self, lives: list[LiveLog]) -> None:
        now = time.monotonic()
        due = [live for live in lives if live.stale or now - live.rows_read > ROWS_SECONDS]
        fresh = await self._rows(due) if due else {}
        found = [fresh.get(live.key, live.place) for live in lives]
        asked = [
            (place.path if place else "", last(live, place), live.quiet)
            for live, place in zip(lives, found, strict=True)
        ]
        stood = await file_work(poll_all, asked, settings.ROLLCALL.home)
        for live, place, seen in zip(lives, found, stood, strict=True):
            if live.key in fresh or live.known:
                live.apply(place, seen)

    async def _rows(self, due: list[LiveLog]) -> dict[Key, Place | None]:
        for live in due:
            live.stale = False
        try:
            found = await query(places, [live.key for live in due])
        except DatabaseTrouble as error:
            log.warning("Where logs are cannot be read: %s", error)
            return {}
        finally:
            for live in due:
                live.rows_read = time.monotonic()
        return {live.key: place for live, place in zip(due, found, strict=True)}


def last(live: LiveLog, place: Place | None) -> Stood:
    """What the last poll saw, if it saw the file that is meant now."""
    same = live.place is not None and place is not None and live.place.path == place.path
    return live.stood if same else NOTHING


def poll_all(asked: list[tuple[str, Stood, bool]], home: Path) -> list[Stood]:
    """`poll` of each. A file that cannot be read counts as none."""
    found = []
    for path, stood, flush in asked:
        try:
            found.append(poll(path, stood, home, flush))
        except OSError as error:
            log.warning("A log cannot be read: %s", error)
            found.append(NOTHING._replace(replaced=stood.identity is not None))
    return found
