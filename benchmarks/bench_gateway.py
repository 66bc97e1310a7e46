"""Requests through a service's address: against a reverse proxy of aiohttp, and how soon replicas come and go.

Needs wrk. The replicas are HAProxies that answer by themselves, so that what is measured is the proxy before them.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

from benchmarks.homes import Plane, control_plane, spent
from benchmarks.rows import Row, limited, percentile
from controlplane import processes
from replicas.gateway import binary
from tests.support.load import load

REPLICAS = 4
CONNECTIONS = 32
LOAD_SECONDS = 4
ROUNDS = 3
ARRIVALS = 12
KILLS = 10
PATIENCE_SECONDS = 20.0
ORIGIN = """\
global
    nbthread 1
defaults
    mode http
    timeout client 60s
    timeout server 60s
frontend origin
    bind 127.0.0.1:${PORT}
    http-request return status 200 content-type text/plain string ok
"""
SERVICE = """\
name: {name}
run: exec {binary} -db -f {file}
service:
  readiness_probe: /
  replicas: {replicas}
  restart: {{backoff_seconds: 0}}
"""


def run() -> list[Row]:
    if shutil.which("wrk") is None:
        raise RuntimeError("wrk is not installed: apt-get install wrk")
    with control_plane() as plane:
        url = deploy(plane, "busy", REPLICAS)
        rows = throughput(plane, url)
        rows += arrivals(plane)
        rows += deaths(plane, url)
    return rows


def deploy(plane: Plane, name: str, replicas: int) -> str:
    """Apply a service; its address once all replicas are ready and one has answered."""
    origin, text = plane.home / "origin.cfg", plane.home / f"{name}.yaml"
    origin.write_text(ORIGIN)
    found = binary.find(os.environ).path
    text.write_text(SERVICE.format(name=name, binary=found, file=origin, replicas=replicas))
    plane.manage("apply", str(text))
    if replicas:
        plane.wait(lambda: ready(plane, name) == replicas)
    return plane.wait(lambda: address(plane, name))


def ready(plane: Plane, name: str) -> int:
    sql = "SELECT count(*) FROM replicas_replica r JOIN replicas_service s ON s.id = r.service_id "
    return int(plane.query(f"{sql} WHERE s.name = ? AND r.state = 'READY'", name)[0][0])


def address(plane: Plane, name: str) -> str:
    return str(plane.query("SELECT endpoint FROM replicas_service WHERE name = ?", name)[0][0])


# --- throughput ---------------------------------------------------------------------------------------------------


def throughput(plane: Plane, url: str) -> list[Row]:
    """Requests per second and CPU for each, in turns with a proxy of aiohttp before the same replicas."""
    urls = [row[0] for row in plane.query("SELECT url FROM replicas_replica WHERE state = 'READY'")]
    leader = plane.children()["gateway"]
    controller = plane.children()["controller"]

    def gateway_cpu() -> float:
        return sum(spent(pid)[0] for pid in processes.session_members(leader)) + spent(controller)[0]

    ours: list[tuple[float, float]] = []
    theirs: list[tuple[float, float]] = []
    with aiohttp_proxy(urls) as (pid, other):
        for turn in range(ROUNDS + 1):
            measured = wrk(url, gateway_cpu), wrk(other, lambda: spent(pid)[0])
            if turn:
                ours.append(measured[0])
                theirs.append(measured[1])
    rate, cost = (percentile([each[n] for each in ours], 0.5) for n in range(2))
    other_rate, other_cost = (percentile([each[n] for each in theirs], 0.5) for n in range(2))
    return [
        limited("requests per second through the address", rate, most=None, unit="/s"),
        limited("the same through aiohttp", other_rate, most=None, unit="/s"),
        limited("requests per second: aiohttp's of ours", other_rate / rate, most=1 / 5, unit="x"),
        limited("CPU for a request (HAProxy and controller)", 1e6 * cost, most=None, unit="us"),
        limited("the same of aiohttp", 1e6 * other_cost, most=None, unit="us"),
        limited("CPU for a request: ours of aiohttp's", cost / other_cost, most=1 / 5, unit="x"),
    ]


def wrk(url: str, cpu: Callable[[], float]) -> tuple[float, float]:
    """(requests per second, CPU seconds for each) of a load on `url`, where `cpu` tells what was spent so far."""
    before = cpu()
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{LOAD_SECONDS}s", url]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    count, rate = re.search(r"(\d+) requests in", said), re.search(r"Requests/sec:\s+([\d.]+)", said)
    assert count is not None
    assert rate is not None
    assert "Non-2xx" not in said, said
    return float(rate[1]), (cpu() - before) / int(count[1])


@contextlib.contextmanager
def aiohttp_proxy(urls: list[str]) -> Iterator[tuple[int, str]]:
    """(pid, address) of a reverse proxy that takes the replicas in turn."""
    command = [sys.executable, "-m", "benchmarks.plain_proxy", *urls]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1])
    try:
        assert process.stdout is not None
        yield process.pid, process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


# --- coming and going ---------------------------------------------------------------------------------------------


def arrivals(plane: Plane) -> list[Row]:
    """From the moment a replica is READY by its row to the first request that is served."""
    url = deploy(plane, "early", 1)
    taken = []
    for _ in range(ARRIVALS):
        plane.manage("scale", "early", "0")
        plane.wait(lambda: plane.query("SELECT live FROM replicas_service WHERE name = 'early'")[0][0] == 0)
        served = first_served(plane, url)
        sql = "SELECT max(ready_at) FROM replicas_replica r JOIN replicas_service s ON s.id = r.service_id"
        (at,) = plane.query(f"{sql} WHERE s.name = 'early'")[0]
        taken.append(max(0.0, served - datetime.fromisoformat(f"{at}+00:00").timestamp()))
    return [
        limited("READY to the first request served, p50", percentile(taken, 0.5), most=None, unit="s"),
        limited("READY to the first request served, p99", percentile(taken, 0.99), most=0.3, unit="s"),
    ]


def first_served(plane: Plane, url: str) -> float:
    """Want one replica; when (wall clock) a request was first served, asked again and again all the while."""
    with load(url, clients=1, pause=0.002) as asked:
        plane.manage("scale", "early", "1")
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not any(answer.ok for answer in list(asked.answers)[-3:]):
            assert time.monotonic() < deadline, "no request was served"
            time.sleep(0.002)
        first = next(answer for answer in asked.answers if answer.ok)
        return time.time() - (time.monotonic() - first.done)


def deaths(plane: Plane, url: str) -> list[Row]:
    """From the SIGKILL of a replica to the last request that was sent and failed for it."""
    taken, lost, asked = [], 0, 0
    for _ in range(KILLS):
        plane.wait(lambda: ready(plane, "busy") == REPLICAS)
        pids = plane.query("SELECT pid FROM replicas_replica WHERE state = 'READY' AND service_id = 1 ORDER BY id")
        with load(url, clients=4, pause=0.001) as traffic:
            time.sleep(0.2)
            os.kill(pids[0][0], signal.SIGKILL)
            killed = time.monotonic()
            time.sleep(0.6)
        late = [answer.sent - killed for answer in traffic.failed]
        taken.append(max([0.0, *late]))
        lost, asked = lost + len(traffic.failed), asked + len(traffic.answers)
    return [
        limited("SIGKILL to the last request that failed for it, most", max(taken), most=0.3, unit="s"),
        limited(f"requests that failed, of {asked} while {KILLS} were killed", lost, most=None, unit=""),
    ]
