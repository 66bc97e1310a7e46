"""Many browsers at once: a hundred websockets in this process, and what the web process spends on them."""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from tests.web.site import Site

TICKS = os.sysconf("SC_CLK_TCK")


def boot() -> float:
    """Seconds since boot: a clock that all processes share."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def cpu_seconds(pid: int) -> float:
    """What a process has spent so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


class Spent:
    """The share of a core that the web process used within the context: `share`; `seconds` of wall time."""

    def __init__(self, site: Site) -> None:
        assert site.process is not None
        self._pid = site.process.pid
        self.share = self.seconds = 0.0

    def __enter__(self) -> "Spent":
        self._began, self._cpu = time.monotonic(), cpu_seconds(self._pid)
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.monotonic() - self._began
        self.share = (cpu_seconds(self._pid) - self._cpu) / self.seconds


@asynccontextmanager
async def crowd(site: Site, session: str, paths: Sequence[str]) -> AsyncIterator[list[ClientConnection]]:
    """A websocket for each path, with its hello read."""
    cookie = "; ".join(f"{name}={value}" for name, value in site.cookies(session).items())
    async with AsyncExitStack() as stack:
        sockets = []
        for path in paths:
            opening = connect(
                f"ws://127.0.0.1:{site.port}{path}",
                origin=site.origin,  # type: ignore[arg-type]
                additional_headers={"Cookie": cookie},
                compression=None,
                open_timeout=60,
            )
            ws = await stack.enter_async_context(opening)
            await ws.recv()
            sockets.append(ws)
        yield sockets


async def listen(ws: ClientConnection, take: Callable[[dict[str, Any], float], bool]) -> None:
    """Hand each message with its time of arrival to `take`, until that says that it has enough."""
    while True:
        raw = await ws.recv()
        if take(json.loads(raw), boot()):
            return


async def in_thread(work: Callable[..., Any], **arguments: Any) -> Any:
    """The result of blocking work."""
    return await asyncio.to_thread(work, **arguments)
