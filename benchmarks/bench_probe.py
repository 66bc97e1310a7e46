"""A sweep of probes over 1,000 local replicas, in CPU seconds of the probing process.

Held against the usual loop: a thread pool of cpu_count threads, `requests.get` for each replica, and the result written
to its row, one commit each (plain sqlite3 in WAL mode, which is cheaper than any ORM, so the comparison is a hard one).
"""

import os
import socket
import sqlite3
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import requests

from benchmarks.endpoints import endpoints, more_files
from benchmarks.rows import Row, alternating, compared
from replicas.providers.probing import ProbeRequest, ProbeResult, sweep

REPLICAS = 1000
HANGING = 10
ROUNDS = 5


def run() -> list[Row]:
    more_files()
    with tempfile.TemporaryDirectory(prefix="bench-probe-") as directory:
        loop = UsualLoop(Path(directory) / "rows.sqlite3")
        return [_all_ready(loop), _all_refused(loop), _some_hanging()]


def _all_ready(loop: "UsualLoop") -> Row:
    with endpoints(REPLICAS) as ports:
        usual, ours = alternating(ROUNDS, lambda: loop.cpu_seconds(ports, 200), lambda: sweep_cpu_seconds(ports, 200))
    return compared("sweep over 1,000 ready replicas: CPU", ours, usual, most=0.25, unit="s")


def _all_refused(loop: "UsualLoop") -> Row:
    with ExitStack() as stack:
        bound = [stack.enter_context(socket.socket()) for _ in range(REPLICAS)]
        for sock in bound:
            sock.bind(("127.0.0.1", 0))
        ports = [sock.getsockname()[1] for sock in bound]
        usual, ours = alternating(2, lambda: loop.cpu_seconds(ports, None), lambda: sweep_cpu_seconds(ports, None))
    return compared("sweep over 1,000 that refuse connections: CPU", ours, usual, most=0.25, unit="s")


def _some_hanging() -> Row:
    """When the last of 990 healthy replicas has been heard, with and without ten others that never answer."""
    with endpoints(REPLICAS, HANGING) as ports:
        healthy, hanging = ports[:-HANGING], ports[-HANGING:]
        alone, beside = alternating(
            ROUNDS, lambda: last_heard(healthy, healthy), lambda: last_heard(hanging + healthy, healthy)
        )
    return compared("last of 990 is heard, 10 others hang", beside, alone, most=1.5, unit="s")


def last_heard(ports: list[int], healthy: list[int]) -> float:
    """Seconds until the last of the healthy ones has been heard as ready."""
    heard: dict[int, float] = {}

    def note(result: ProbeResult) -> None:
        if result.ok:
            heard[result.key] = time.monotonic() - began

    asked = probes(ports, timeout=3.0)
    began = time.monotonic()
    sweep(asked, on_result=note)
    assert heard.keys() == set(healthy)
    return max(heard.values())


def probes(ports: list[int], timeout: float = 5.0) -> list[ProbeRequest]:
    return [ProbeRequest(port, f"http://127.0.0.1:{port}", "/healthz", timeout=timeout) for port in ports]


def sweep_cpu_seconds(ports: list[int], status: int | None) -> float:
    """CPU seconds of one sweep, making its requests included."""
    began = time.process_time()
    results = sweep(probes(ports))
    took = time.process_time() - began
    assert {result.status for result in results} == {status}, {result.detail for result in results}
    return took


class UsualLoop:
    """The loop to be measured against. Each thread has a connection to the database, as an ORM would."""

    def __init__(self, database: Path) -> None:
        self.database = database
        self.local = threading.local()
        with sqlite3.connect(database) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("CREATE TABLE replica (port INTEGER PRIMARY KEY, status INTEGER, probed_at REAL)")

    def cpu_seconds(self, ports: list[int], status: int | None) -> float:
        """CPU seconds of one sweep over the ports."""
        with sqlite3.connect(self.database) as connection:
            connection.executemany("INSERT OR IGNORE INTO replica (port) VALUES (?)", [(port,) for port in ports])
        began = time.process_time()
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            statuses = set(pool.map(self.probe, ports))
        took = time.process_time() - began
        assert statuses == {status}, statuses
        return took

    def probe(self, port: int) -> int | None:
        """Ask one replica and write down what it said."""
        try:
            status = requests.get(f"http://127.0.0.1:{port}/healthz", timeout=5).status_code
        except requests.ConnectionError:
            status = None
        if not hasattr(self.local, "connection"):
            self.local.connection = sqlite3.connect(self.database, timeout=20, isolation_level=None)
            self.local.connection.execute("PRAGMA synchronous=NORMAL")
        change = "UPDATE replica SET status = ?, probed_at = ? WHERE port = ?"
        self.local.connection.execute(change, (status, time.time(), port))
        return status
