"""A real HAProxy with replicas behind it, without a control plane."""

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from replicas.gateway import binary
from replicas.gateway.accesslog import Reader
from replicas.gateway.config import Options
from replicas.gateway.dataplane import DataPlane
from replicas.gateway.places import Places
from replicas.gateway.values import Entry, Member, Wanted
from tests.support.controlplane import BASE
from tests.support.polling import eventually


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Site:
    """HAProxy in a home of its own; `origin` starts a replica, `serve` makes the gateway serve entries."""

    def __init__(self) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="rc-", dir="/tmp"))
        (self.home / "run").mkdir()
        self.places = Places(self.home / "gateway", self.home / "run", self.home / "logs")
        self.places.prepare()
        found = binary.find(os.environ)
        assert found.path, found.why
        self.shared_port = free_port()
        self.plane = DataPlane(Options(self.places, shared_port=self.shared_port), found.path)
        self.processes: list[subprocess.Popen[bytes]] = []
        self.haproxy: subprocess.Popen[bytes] | None = None
        self.reader = Reader(self.places.access, self.places.logs, lambda number: f"s{number}")
        self.wanted = Wanted()

    def start(self) -> None:
        """Start HAProxy and make it serve what is wanted."""
        self.launch()
        eventually(self.again, 10, lambda: self.plane.trouble)

    def launch(self) -> None:
        """Start HAProxy as the supervisor does."""
        environment = os.environ | {"ROLLCALL_HOME": str(self.home)}
        self.haproxy = subprocess.Popen(
            self.places.start(sys.executable, self.plane.binary),
            cwd=BASE,
            env=environment,
            start_new_session=True,
            stderr=subprocess.DEVNULL,
        )

    def again(self) -> bool:
        """Look again, wanting the same."""
        return self.plane.follow(self.wanted)

    def origin(self, number: int) -> Member:
        """A replica that answers."""
        port = free_port()
        command = [sys.executable, "-m", "tests.gateway.origin", str(port), f"r{number}"]
        self.processes.append(subprocess.Popen(command, cwd=BASE))
        member = Member(number, "127.0.0.1", port)
        eventually(lambda: reachable(port), 10)
        return member

    def kill(self, number: int) -> None:
        """SIGKILL a replica, in the order of their start."""
        self.processes[number].kill()
        self.processes[number].wait()

    def serve(self, entry: Entry, *members: Member, reason: str = "") -> None:
        """Serve this entry alone."""
        self.wanted = Wanted((entry,), {entry.id: members}, {entry.id: reason})
        eventually(self.again, 10, lambda: f"{self.plane.trouble} {self.plane.problems}")

    def ask(
        self, entry: Entry, path: str = "/", method: str = "GET", body: Any = None, port: int = 0, **headers: str
    ) -> tuple[int, dict[str, str], Any]:
        """Status, headers and body (JSON where it is) of one request on a connection of its own."""
        link = http.client.HTTPConnection("127.0.0.1", port or entry.port, timeout=15)
        try:
            with contextlib.suppress(BrokenPipeError):  # it may be refused before all of it was sent
                link.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            answer = link.getresponse()
            data = answer.read()
        finally:
            link.close()
        with contextlib.suppress(ValueError):
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, json.loads(data)
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, data

    def close(self) -> None:
        """End everything."""
        self.reader.close()
        for process in self.processes:
            process.kill()
            process.wait()
        if self.haproxy is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.haproxy.pid, signal.SIGKILL)
            self.haproxy.wait()
        shutil.rmtree(self.home, ignore_errors=True)


def reachable(port: int) -> bool:
    with socket.socket() as link:
        return link.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    try:
        made.start()
        yield made
    finally:
        made.close()


@pytest.fixture
def entry() -> Entry:
    return Entry(7, "web", free_port())
