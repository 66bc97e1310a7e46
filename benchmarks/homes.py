"""Where benchmarks run: a database in this process, or a whole control plane, each in an empty home of its own."""

import contextlib
import os
import re
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import requests
from websockets.asyncio.client import connect
from websockets.typing import Origin

from controlplane import processes
from replicas.providers.control import PYTHON
from tests.support.controlplane import BASE, PASSWORD, ControlPlane

SERVER = (PYTHON, "-S", "-E", str(BASE / "examples" / "http" / "server.py"))  # a trivial server, which reads $PORT
SERVICE = """\
name: {name}
run: exec {command}
service:
  readiness_probe: /healthz
  replicas: {replicas}
"""
TICKS = os.sysconf("SC_CLK_TCK")
POLL_SECONDS = 0.005
PATIENCE_SECONDS = 120.0
T = TypeVar("T")


def connect_django(home: Path, process: str = "controller") -> None:
    """Set Django up in this process, over the database of that home, as that part of the control plane has it.

    Once per process: Django's settings cannot be made twice.
    """
    for name in [name for name in os.environ if name.startswith("ROLLCALL_")]:
        del os.environ[name]
    os.environ |= {
        "ROLLCALL_HOME": str(home),
        "ROLLCALL_PROCESS": process,
        "ROLLCALL_LOG_LEVEL": "WARNING",
        "DJANGO_SETTINGS_MODULE": "controlplane.settings",
    }
    import django

    django.setup()


@contextlib.contextmanager
def database(process: str = "controller") -> Iterator[Path]:
    """A migrated SQLite database for this process alone. Gives its home."""
    home = Path(tempfile.mkdtemp(prefix="rc-", dir="/tmp"))
    try:
        connect_django(home, process)
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextlib.contextmanager
def control_plane(**environment: str) -> Iterator["Plane"]:
    """A running control plane; at the end nothing of it and of its replicas is left."""
    plane = Plane(**environment)
    try:
        plane.start()
        yield plane
    finally:
        plane.close()


class Plane(ControlPlane):
    """A control plane with an eye on its database, which costs it nothing but reads."""

    def start(self, *arguments: str, ready: bool = True) -> "Plane":
        """Start it and open its database."""
        super().start(*arguments, ready=ready)
        path = self.home / "db" / "rollcall.sqlite3"
        self.rows = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=20, isolation_level=None)
        return self

    def close(self) -> list[str]:
        """See ControlPlane."""
        if hasattr(self, "rows"):
            self.rows.close()
        return super().close()

    def service_file(self, name: str, replicas: int, more: str = "") -> Path:
        """The YAML of a service of trivial servers; `more` goes on in its service section."""
        path = self.home / f"{name}.yaml"
        path.write_text(SERVICE.format(name=name, replicas=replicas, command=" ".join(SERVER)) + more)
        return path

    def cpu_seconds(self) -> float:
        """What the processes that run have spent so far, with all that they have waited for."""
        return sum(sum(spent(pid)) for pid in self.everything())

    def browser(self, path: str) -> connect:
        """A websocket as the admin's browser opens it."""
        with requests.Session() as session:
            token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', session.get(f"{self.url}/login").text)
            assert token is not None
            form = {"username": "admin", "password": PASSWORD, "csrfmiddlewaretoken": token[1]}
            session.post(f"{self.url}/login", form, headers={"Referer": self.url}).raise_for_status()
            cookies = "; ".join(f"{name}={value}" for name, value in session.cookies.items())
        address = self.url.replace("http", "ws", 1) + path
        return connect(address, origin=Origin(self.url), additional_headers={"Cookie": cookies}, max_size=None)

    def query(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Rows of the database as it is now."""
        return self.rows.execute(sql, values).fetchall()

    def count(self, state: str) -> int:
        """How many replicas are in that state."""
        return int(self.query("SELECT count(*) FROM replicas_replica WHERE state = ?", state)[0][0])

    def wait(self, look: Callable[[], T | None], seconds: float = PATIENCE_SECONDS, poll: float = POLL_SECONDS) -> T:
        """The first true value of `look`, asked every `poll` seconds."""
        deadline = time.monotonic() + seconds
        while not (found := look()):
            if time.monotonic() > deadline:
                states = self.query("SELECT state, count(*), max(reason) FROM replicas_replica GROUP BY state")
                raise AssertionError(f"not within {seconds:g} s; the replicas: {states}\n{self.tail()}")
            time.sleep(poll)
        return found


def spent(pid: int) -> tuple[float, float]:
    """CPU seconds of a process, and of the children that it has waited for; zeros if it has ended."""
    fields = processes.stat(pid)
    return (0.0, 0.0) if fields is None else tuple(sum(map(int, fields[n : n + 2])) / TICKS for n in (11, 13))
