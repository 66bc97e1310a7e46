"""A hundred viewers of twenty logs that grow by 200 lines a second each; and a download of 200 MB."""

import asyncio
import http.client
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from benchmarks.crowd import Spent, crowd, listen
from benchmarks.rows import Row, limited, percentile
from tests.web.site import Site

FILES = 20
VIEWERS = 100
LINES = 200  # a second, each file
SECONDS = 15
BIG = 200 << 20

# A process of its own writes, so that neither the readers nor the web process pay for it. Each line says when.
WRITER = """
import sys, time
lines, seconds, files = int(sys.argv[1]), int(sys.argv[2]), [open(name, "ab", buffering=0) for name in sys.argv[3:]]
begin = time.monotonic()
for number in range(lines * seconds):
    time.sleep(max(0.0, begin + number / lines - time.monotonic()))
    for file in files:
        now = time.clock_gettime(time.CLOCK_BOOTTIME)
        file.write(b"%.4f %d INFO request handled, path=/v1/items status=200 took=0.0123\\n" % (now, number))
"""


def run() -> list[Row]:
    """The figures."""
    site = Site()
    try:
        site.start()
        session = site.scribe.user(name="ann", permissions=["view_service"])["session"]
        service = site.scribe.service(name="web")
        logs = [site.home / "replicas" / f"r{number}.log" for number in range(FILES)]
        paths = []
        for log in logs:
            log.write_bytes(b"")
            paths.append(f"/ws/log?replica={site.scribe.replica(service_id=service, log=str(log))['replica']}")
        rows = asyncio.run(viewers(site, session, logs, paths))
        return rows + download(site, session, service)
    finally:
        site.close()


async def viewers(site: Site, session: str, logs: list[Path], paths: list[str]) -> list[Row]:
    """How long a line takes from its writing to each viewer. Raises when one is missing."""
    taken: list[float] = []
    counts = [0] * VIEWERS
    rests = [""] * VIEWERS

    def take(place: int, message: dict[str, Any], at: float) -> bool:
        if message["type"] == "chunk":
            *lines, rests[place] = (rests[place] + message["text"]).split("\n")
            for line in lines:
                written, number, _ = line.split(" ", 2)
                assert int(number) == counts[place], "a line is missing, doubled or out of order"
                counts[place] += 1
                taken.append(at - float(written))
        return counts[place] >= LINES * SECONDS

    async with crowd(site, session, (paths * (VIEWERS // FILES + 1))[:VIEWERS]) as sockets:
        readers = [asyncio.create_task(listen(ws, partial(take, place))) for place, ws in enumerate(sockets)]
        command = [sys.executable, "-c", WRITER, str(LINES), str(SECONDS), *map(str, logs)]
        with Spent(site) as spent, subprocess.Popen(command) as writer:
            await asyncio.wait_for(asyncio.gather(*readers), SECONDS * 4)
        assert writer.returncode == 0
    return [
        limited("log line to 100 viewers of 20 files, p50", percentile(taken, 0.5), most=None, unit="s"),
        limited("log line to 100 viewers of 20 files, p99", percentile(taken, 0.99), most=0.5, unit="s"),
        limited("lines lost", VIEWERS * LINES * SECONDS - len(taken), most=0, unit=""),
        limited("web process with these viewers, share of a core", spent.share, most=0.25, unit=""),
    ]


def download(site: Site, session: str, service: int) -> list[Row]:
    """What a download of 200 MB takes of time and of memory."""
    log = site.home / "big.log"
    with log.open("wb") as file:
        file.truncate(BIG)
    replica = site.scribe.replica(service_id=service, log=str(log))["replica"]
    assert site.process is not None
    server = psutil.Process(site.process.pid)
    before = most = server.memory_info().rss
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=60)
    cookie = "; ".join(f"{name}={value}" for name, value in site.cookies(session).items())
    began = time.monotonic()
    connection.request("GET", f"/logs/replica/{replica}/run/download", headers={"Cookie": cookie})
    answer, got = connection.getresponse(), 0
    while block := answer.read(1 << 20):
        got += len(block)
        most = max(most, server.memory_info().rss)
    seconds = time.monotonic() - began
    connection.close()
    assert got == BIG
    return [
        limited("download of 200 MB", seconds, most=None, unit="s"),
        limited("memory that it took", (most - before) / 1e6, most=20, unit="MB"),
    ]
