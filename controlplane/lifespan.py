"""The life of the web process: its heartbeat from start to stop."""

import asyncio
import contextlib
from typing import Any

from django.conf import settings

BEAT_SECONDS = 1.0


class Lifespan:
    """The lifespan part of the ASGI application.

    The beat is touched on the event loop itself, so that it stops when the loop is stuck, and only then: a slow
    database must not make the supervisor replace a web process that could still say so.
    """

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        beating: asyncio.Task[None] | None = None
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                beating = asyncio.create_task(beat())
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                if beating is not None:
                    beating.cancel()
                    with contextlib.suppress(asyncio.CancelledError):
                        await beating
                await send({"type": "lifespan.shutdown.complete"})
                return


async def beat() -> None:
    """Touch `beat-web` for ever."""
    path = settings.ROLLCALL.run / "beat-web"
    while True:
        path.touch(mode=0o600)
        await asyncio.sleep(BEAT_SECONDS)
