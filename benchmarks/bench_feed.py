"""From the commit of a change to a hundred open browsers, and what those cost the web process."""

import asyncio
from functools import partial
from typing import Any

from benchmarks.crowd import Spent, crowd, in_thread, listen
from benchmarks.rows import Row, limited, percentile
from tests.web.site import Site

SOCKETS = 100
CHANGES = 150
PACE = 0.2  # seconds between changes that come alone
BUSY = 0.01  # and between those of a busy time


def run() -> list[Row]:
    """Single changes, a hundred changes a second, and nothing at all."""
    site = Site()
    try:
        site.start()
        session = site.scribe.user(name="ann", permissions=["view_service"])["session"]
        service = site.scribe.service(name="web")
        return asyncio.run(measure(site, session, service))
    finally:
        site.close()


async def measure(site: Site, session: str, service: int) -> list[Row]:
    """The figures."""
    async with crowd(site, session, ["/ws/feed"] * SOCKETS) as sockets:
        with Spent(site) as idle:
            await asyncio.sleep(10)
        alone, _, quiet = await latencies(site, sockets, service, CHANGES, PACE)
        busy, messages, spent = await latencies(site, sockets, service, CHANGES * 6, BUSY)
    return [
        limited("change to 100 sockets, p50", percentile(alone, 0.5), most=None, unit="s"),
        limited("change to 100 sockets, p99", percentile(alone, 0.99), most=0.25, unit="s"),
        limited("change to 100 sockets in a busy time, p99", percentile(busy, 0.99), most=0.5, unit="s"),
        limited("messages a second to each in a busy time", messages, most=10, unit=""),
        limited("web process with 100 idle sockets, share of a core", idle.share, most=0.05, unit=""),
        limited("web process at five changes a second, share of a core", quiet.share, most=None, unit=""),
        limited("web process in a busy time, share of a core", spent.share, most=0.25, unit=""),
    ]


async def latencies(
    site: Site, sockets: list[Any], service: int, changes: int, pace: float
) -> tuple[list[float], float, Spent]:
    """How long each change took to each socket, messages a second, and what was spent. Raises when one is missing."""
    arrivals: list[list[tuple[int, float]]] = [[] for _ in sockets]
    messages = [0] * len(sockets)

    def take(place: int, message: dict[str, Any], at: float) -> bool:
        if message["type"] == "events":
            messages[place] += 1
            arrivals[place] += [(event["id"], at) for event in message["events"]]
        return len(arrivals[place]) >= changes

    with Spent(site) as spent:
        readers = [asyncio.create_task(listen(ws, partial(take, place))) for place, ws in enumerate(sockets)]
        sent = dict(await in_thread(site.scribe.emit_at_pace, service_id=service, count=changes, seconds=pace))
        await asyncio.wait_for(asyncio.gather(*readers), 60)
    for each in arrivals:
        assert [id for id, _ in each] == list(sent), "an event is missing, doubled or out of order"
    taken = [at - sent[id] for each in arrivals for id, at in each]
    return taken, sum(messages) / len(sockets) / spent.seconds, spent
