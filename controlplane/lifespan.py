"""The life of the web process: its heartbeat and its feed, from start to stop."""

import asyncio
import contextlib
import logging
from typing import Any

from django.db import Error as DatabaseError

from replicas.jobs import beats
from replicas.web import feed

log = logging.getLogger(__name__)

BEAT_SECONDS = 1.0
FEED_RETRY_SECONDS = 1.0


class Lifespan:
    """The lifespan part of the ASGI application.

    The beat is touched on the event loop itself, so that it stops when the loop is stuck, and only then: a slow
    database must not make the supervisor replace a web process that could still say so.
    """

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        tasks: list[asyncio.Task[None]] = []
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                tasks = [asyncio.create_task(beat()), asyncio.create_task(start_feed())]
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                for task in tasks:
                    task.cancel()
                    with contextlib.suppress(asyncio.CancelledError):
                        await task
                await feed.stop()
                await send({"type": "lifespan.shutdown.complete"})
                return


async def beat() -> None:
    """Say for ever that the event loop turns."""
    while True:
        beats.touch_file("web")
        await asyncio.sleep(BEAT_SECONDS)


async def start_feed() -> None:
    """Start the feed before the first browser asks for it; while the database is away, try again."""
    while True:
        try:
            await feed.running()
        except DatabaseError as error:
            log.warning("the feed cannot start (%s); it is tried again", feed.first_line(error))
            await asyncio.sleep(FEED_RETRY_SECONDS)
        else:
            return
