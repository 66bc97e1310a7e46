"""A real web process for tests: started as the supervisor does, on a socket that the test holds, in its own home."""

import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, ConnectionClosedError, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from controlplane.children import table
from tests.support.database import migrate, place_database
from tests.support.polling import eventually

ROOT = Path(__file__).resolve().parents[2]


class Scribe:
    """The writer process (a module such as tests.web.scribe), called like an object."""

    def __init__(self, environment: dict[str, str], module: str = "tests.web.scribe") -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def order(**arguments: Any) -> Any:
            self._process.stdin.write(json.dumps({"do": name} | arguments) + "\n")  # type: ignore[union-attr]
            self._process.stdin.flush()  # type: ignore[union-attr]
            answer = self._process.stdout.readline()  # type: ignore[union-attr]
            assert answer, f"the scribe died of {name}({arguments})"
            return json.loads(answer)

        return order

    def close(self) -> None:
        """End the process."""
        self._process.communicate(timeout=20)


class Site:
    """One home with its server. The listening socket stays open over a restart, so clients keep their address."""

    def __init__(self, settings: str = "tests.settings", **environment: str) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="rc-", dir="/tmp"))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.origin = f"http://127.0.0.1:{self.port}"
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ROLLCALL_")}
        self.environment = kept | {"DJANGO_SETTINGS_MODULE": settings, "ROLLCALL_HOME": str(self.home), **environment}
        if "DATABASE_URL" in environment:
            migrate(self.environment)
        else:
            place_database(self.home)
        self.scribe = Scribe(self.environment)
        self.process: subprocess.Popen[bytes] | None = None
        self.output = self.home / "web.out"

    def start(self) -> "Site":
        """Start the server and wait until it answers."""
        command = list(table(ROOT)[0].arguments)
        command[command.index("--fd") + 1] = str(self.listener.fileno())
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=self.environment | {"ROLLCALL_PROCESS": "web"},
                pass_fds=[self.listener.fileno()],
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        eventually(self._answers, 90, lambda: self.output.read_text())
        return self

    def _answers(self) -> bool:
        try:
            return self.get("/healthz")[0] == 200
        except OSError:  # a busy machine: the connection waits in the listening socket for too long
            return False

    def kill(self) -> None:
        """SIGKILL the server."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self.process = None

    def stop(self) -> None:
        """SIGTERM the server and wait for its end."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=20)
        self.process = None

    def close(self) -> None:
        """End everything that was started."""
        if self.process is not None:
            self.kill()
        self.scribe.close()
        self.listener.close()
        shutil.rmtree(self.home, ignore_errors=True)

    def cookies(self, session: str) -> dict[str, str]:
        """The cookie of a session."""
        return {f"rollcall_session_{hashlib.sha256(os.fsencode(self.home)).hexdigest()[:6]}": session}

    def get(self, path: str, session: str | None = None) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of a GET; redirects are not followed."""
        request = urllib.request.Request(self.origin + path, headers=self._headers(session))
        try:
            with _opener.open(request, timeout=20) as answer:
                return answer.status, dict(answer.headers), answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, dict(error.headers), error.read()

    def json(self, path: str, session: str) -> Any:
        """The JSON that a GET gives."""
        return json.loads(self.get(path, session)[2])

    @contextmanager
    def socket(
        self, path: str, session: str | None = None, origin: str | None = None, **options: Any
    ) -> Iterator[ClientConnection]:
        """An open websocket."""
        options = {"compression": None, "open_timeout": 20, "max_size": None} | options
        address = f"ws://127.0.0.1:{self.port}{path}"
        with connect(address, origin=origin or self.origin, additional_headers=self._headers(session), **options) as ws:
            yield ws

    def _headers(self, session: str | None) -> dict[str, str]:
        return {} if session is None else {"Cookie": "; ".join(f"{k}={v}" for k, v in self.cookies(session).items())}


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_arguments: Any, **_named: Any) -> None:
        return None


_opener = urllib.request.build_opener(_NoRedirect)


def receive(ws: ClientConnection, seconds: float = 30.0) -> dict[str, Any]:
    """The next message that is not a ping."""
    deadline = time.monotonic() + seconds
    while True:
        message: dict[str, Any] = json.loads(ws.recv(timeout=max(0.0, deadline - time.monotonic())))
        if message["type"] != "ping":
            return message


def close_code(ws: ClientConnection) -> int:
    """The code with which the socket is closed; what arrives before is dropped."""
    with pytest.raises(ConnectionClosed) as closed:
        while True:
            receive(ws)
    assert closed.value.rcvd is not None
    return closed.value.rcvd.code


def receive_events(ws: ClientConnection, last: int, seconds: float = 30.0) -> list[dict[str, Any]]:
    """All events up to the one with the id `last`."""
    found: list[dict[str, Any]] = []
    while not found or found[-1]["id"] < last:
        message = receive(ws, seconds)
        assert message["type"] == "events", message
        found += message["events"]
    return found


def follow(site: Site, session: str, ws: ClientConnection, cursor: int, last: int) -> list[dict[str, Any]]:
    """All events after `cursor` up to the one with the id `last`, read as a page reads them: from the open socket, and
    when the server closes that for the time being (1013), from a new one with the cursor of what has arrived."""
    found: list[dict[str, Any]] = []
    deadline = time.monotonic() + 40
    while not found or found[-1]["id"] < last:
        try:
            found += receive(ws, deadline - time.monotonic())["events"]
        except ConnectionClosedError as error:
            if error.rcvd is None or error.rcvd.code != 1013:
                raise
            return found + _again(site, session, found[-1]["id"] if found else cursor, last, deadline)
    return found


def _again(site: Site, session: str, cursor: int, last: int, deadline: float) -> list[dict[str, Any]]:
    try:
        with site.socket(f"/ws/feed?after={cursor}", session) as ws:
            assert receive(ws)["type"] == "hello"
            return follow(site, session, ws, cursor, last)
    except InvalidStatus as error:  # the database does not answer yet
        if error.response.status_code != 403 or time.monotonic() > deadline:
            raise
        time.sleep(0.2)  # a page waits before it tries again, too
    return _again(site, session, cursor, last, deadline)
