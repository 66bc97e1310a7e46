"""One websocket of a signed-in user: admission, the stream that a subclass writes, and every way in which it ends.

These are plain ASGI applications below Channels' routing and sessions. Channels' own consumers would tidy up database
connections through the one shared thread at every message, which is what the feed must not depend on.
"""

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import parse_qs

from django.db import Error as DatabaseTrouble

from replicas.web import feed
from replicas.web.guard import Refused, admit
from replicas.web.numbers import whole

log = logging.getLogger(__name__)

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]

NORMAL, UNAVAILABLE, STALLED = 1000, 1013, 4408
STALL_SECONDS = 30.0  # so long a reader may take for one message
CLOSE_SECONDS = 1.0


class BadRequest(Exception):
    """The address of the socket asks for nothing that can be given."""


class Socket:
    """The life of one websocket. A subclass gives `prepare` and `stream`."""

    def __init__(self, origin: feed.Feed, query: Mapping[str, str], send: Send) -> None:
        self.feed = origin
        self.asked = query
        self.sending_since: float | None = None
        self.last_sent = time.monotonic()
        self._send = send

    @classmethod
    async def serve(cls, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """The ASGI application."""
        await receive()  # websocket.connect
        try:
            viewer = await admit(scope)
            socket = cls(await feed.running(), asked(scope), send)
            await socket.prepare()
        except Refused as refusal:
            return await deny(send, refusal.code)
        except BadRequest as error:
            log.info("A socket was refused: %s", error)
            return await deny(send, 4400)
        except DatabaseTrouble as error:
            log.warning("A socket was refused since the database does not answer: %s", feed.first_line(error))
            return await deny(send, UNAVAILABLE)
        await send({"type": "websocket.accept"})
        with socket.feed.guard.watching(viewer) as dismissal, socket.feed.counting():
            code = await socket._until_over(receive, dismissal)
        if code is not None:
            await close(send, code)
        return None

    async def prepare(self) -> None:
        """Look at what was asked for, before the socket is accepted. Raises BadRequest."""

    async def stream(self) -> None:
        """Write messages, for ever or until there is nothing more to say."""
        raise NotImplementedError

    async def write(self, text: str) -> None:
        """Send one message; returns once the transport takes more."""
        self.sending_since = time.monotonic()
        await self._send({"type": "websocket.send", "text": text})
        self.sending_since, self.last_sent = None, time.monotonic()

    async def tell(self, **message: Any) -> None:
        """Send one message as JSON."""
        await self.write(json.dumps(message, separators=(",", ":")))

    async def _until_over(self, receive: Receive, dismissal: "asyncio.Future[int]") -> int | None:
        """Run until the stream ends, the other side leaves or stalls, or the user must go. The close code, if any."""
        writer = asyncio.create_task(self.stream())
        reader = asyncio.create_task(_left(receive))
        stall = asyncio.create_task(self._stalled())
        ends: list[asyncio.Future[Any]] = [writer, reader, stall, dismissal]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if reader.done():
                return None
            if dismissal.done():
                return dismissal.result()
            if stall.done():
                return STALLED
            return self._ended(writer)
        finally:
            for task in (writer, reader, stall):
                task.cancel()
            await asyncio.gather(writer, reader, stall, return_exceptions=True)

    def _ended(self, writer: "asyncio.Task[None]") -> int | None:
        error = writer.exception()
        if error is None:
            return NORMAL
        if isinstance(error, DatabaseTrouble):
            log.warning("A socket is closed since the database does not answer: %s", feed.first_line(error))
            return UNAVAILABLE
        if isinstance(error, OSError):  # the server's word for a client that has gone
            return None
        raise error

    async def _stalled(self) -> None:
        while self.sending_since is None or time.monotonic() - self.sending_since < STALL_SECONDS:
            await asyncio.sleep(STALL_SECONDS / 4)


async def _left(receive: Receive) -> None:
    """Return when the other side has gone. Whatever else it says is not heeded."""
    while (await receive())["type"] != "websocket.disconnect":
        pass


async def deny(send: Send, code: int) -> None:
    """Refuse a handshake: HTTP 403 to the browser, which is told the why by the page `session`."""
    await send({"type": "websocket.close", "code": code})


async def close(send: Send, code: int) -> None:
    """Close an accepted socket, unless its buffer is so full that not even that can be said."""
    with contextlib.suppress(TimeoutError, OSError):
        async with asyncio.timeout(CLOSE_SECONDS):
            await send({"type": "websocket.close", "code": code})


def asked(scope: Mapping[str, Any]) -> dict[str, str]:
    """The query of the address; of a repeated name the last value."""
    return {name: values[-1] for name, values in parse_qs(scope.get("query_string", b"").decode("latin-1")).items()}


def number(asked: Mapping[str, str], name: str, *, least: int = 0, most: int = 2**62) -> int | None:
    """The number that the query gives, or None. Raises BadRequest."""
    text = asked.get(name)
    if text is None:
        return None
    found = whole(text, least, most)
    if found is None:
        raise BadRequest(f"{name}={text[:40]!r} is not a number between {least} and {most}")
    return found
