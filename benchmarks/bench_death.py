"""From the SIGKILL of a READY replica to its event in the database, to a browser, and to its replacement's launch."""

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable
from typing import TypeVar

from websockets.asyncio.client import ClientConnection

from benchmarks.homes import Plane, control_plane
from benchmarks.rows import Row, limited, percentile

REPLICAS = 10
KILLS = 40
POLL_SECONDS = 0.004
PATIENCE_SECONDS = 30.0
PAUSE_SECONDS = 0.2
AT_ONCE = "  restart: {backoff_seconds: 0}\n"  # also a second failure in a row
T = TypeVar("T")


def run() -> list[Row]:
    with control_plane() as plane:
        plane.manage("apply", str(plane.service_file("mortal", REPLICAS, AT_ONCE)))
        plane.wait(lambda: plane.count("READY") == REPLICAS)
        taken = asyncio.run(kills(plane))
    row, page, launch = ([each[n] for each in taken] for n in range(3))
    return [
        limited("SIGKILL to its row, p50", percentile(row, 0.5), most=None, unit="s"),
        limited("SIGKILL to its row, p99", percentile(row, 0.99), most=0.5, unit="s"),
        limited("SIGKILL to the browser, p50", percentile(page, 0.5), most=None, unit="s"),
        limited("SIGKILL to the browser, p99", percentile(page, 0.99), most=1.0, unit="s"),
        limited("SIGKILL to the replacement's launch, p50", percentile(launch, 0.5), most=None, unit="s"),
        limited("SIGKILL to the replacement's launch, most", max(launch), most=2.0, unit="s"),
    ]


async def kills(plane: Plane) -> list[tuple[float, float, float]]:
    """Seconds from each kill to the row, to the browser, to the launch of the replacement."""
    taken = []
    async with plane.browser("/ws/feed") as socket:
        page = Page(socket)
        reading = asyncio.create_task(page.read())
        for _ in range(KILLS):
            await asyncio.sleep(PAUSE_SECONDS)
            taken.append(await kill_one(plane, page))
            assert not reading.done(), "the browser lost its socket"
        reading.cancel()
    return taken


class Page:
    """When each event came to a browser."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.came: dict[int, float] = {}

    async def read(self) -> None:
        """Until cancelled."""
        async for text in self.socket:
            now = time.monotonic()
            for event in json.loads(text).get("events", ()):
                self.came[event["id"]] = now


async def kill_one(plane: Plane, page: Page) -> tuple[float, float, float]:
    """Kill the replica that has been ready for longest."""
    victim = "SELECT id, number, pid FROM replicas_replica WHERE state = 'READY' ORDER BY ready_at LIMIT 1"
    key, number, pid = (await until(lambda: plane.query(victim)))[0]
    began = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    fallen = "SELECT id FROM replicas_event WHERE kind = 'replica' AND object_id = ? AND old = 'READY'"
    event = (await until(lambda: plane.query(fallen, key)))[0][0]
    row = time.monotonic() - began
    begun = (
        "SELECT id FROM replicas_event WHERE kind = 'replica' AND trigger = 'launch_begun'"
        " AND json_extract(data, '$.replaces') = ?"
    )
    await until(lambda: plane.query(begun, number))
    launch = time.monotonic() - began
    return row, await until(lambda: page.came.get(event)) - began, launch


async def until(look: Callable[[], T | None]) -> T:
    """The first true value of `look`."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (found := look()):
        assert time.monotonic() < deadline, "nothing came"
        await asyncio.sleep(POLL_SECONDS)
    return found
