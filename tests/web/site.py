"""A real server for tests: uvicorn in a process of its own on a socket that the test holds, with a home of its own."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from websockets.sync.client import ClientConnection, connect

ROOT = Path(__file__).resolve().parents[2]
T = TypeVar("T")


def eventually(condition: Callable[[], T], seconds: float = 10.0, what: str = "") -> T:
    """The first true value of `condition`, asked again and again. Fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"not within {seconds} s: {what or condition}"
        time.sleep(0.02)


class Scribe:
    """The writer process (tests.web.scribe), called like an object."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.web.scribe"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def order(**arguments: Any) -> Any:
            assert self._process.stdin is not None and self._process.stdout is not None
            self._process.stdin.write(json.dumps({"do": name} | arguments) + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
            assert answer, f"the scribe died of {name}({arguments})"
            return json.loads(answer)

        return order

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=20)
        self._process.stdout.close()


class Site:
    """One home with its server. The listening socket stays open over a restart, so clients keep their address."""

    def __init__(self, home: Path, **environment: str) -> None:
        self.home = home
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.origin = f"http://127.0.0.1:{self.port}"
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ROLLCALL_")}
        self.environment = kept | {
            "DJANGO_SETTINGS_MODULE": "controlplane.settings",
            "ROLLCALL_HOME": str(home),
            "ROLLCALL_DEBUG": "1",
            "PYTHONUNBUFFERED": "1",
            **environment,
        }
        subprocess.run(
            [sys.executable, "manage.py", "migrate", "-v0", "--skip-checks"],
            cwd=ROOT,
            env=self.environment,
            check=True,
            timeout=60,
        )
        self.scribe = Scribe(self.environment)
        self.process: subprocess.Popen[bytes] | None = None
        self.output = home / "web.out"

    def start(self) -> None:
        """Start the server and wait until it answers."""
        command = ["uvicorn", "controlplane.asgi:application", "--fd", str(self.listener.fileno()), "--no-access-log"]
        command += ["--ws-ping-interval", "10", "--ws-ping-timeout", "10", "--timeout-graceful-shutdown", "5"]
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *command],
                cwd=ROOT,
                env=self.environment | {"ROLLCALL_PROCESS": "web"},
                pass_fds=[self.listener.fileno()],
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        eventually(lambda: self.get("/healthz")[0] == 200, 30, "the server answers")

    def kill(self) -> None:
        """SIGKILL the server."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self.process = None

    def stop(self) -> int:
        """SIGTERM the server; its exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=20)
        self.process = None
        return code

    def close(self) -> None:
        """End everything that was started."""
        if self.process is not None:
            self.kill()
        self.scribe.close()
        self.listener.close()

    def cookie(self, session: str) -> str:
        """The Cookie header of a session."""
        import hashlib

        digest = hashlib.sha256(os.fsencode(self.home)).hexdigest()
        return f"rollcall_session_{digest[:6]}={session}"

    def get(self, path: str, session: str | None = None) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of a GET; redirects are not followed."""
        request = urllib.request.Request(self.origin + path)
        if session is not None:
            request.add_header("Cookie", self.cookie(session))
        try:
            with _opener.open(request, timeout=20) as answer:
                return answer.status, dict(answer.headers), answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, dict(error.headers), error.read()

    @contextmanager
    def socket(
        self, path: str, session: str | None = None, origin: str | None = None, **options: Any
    ) -> Iterator[ClientConnection]:
        """An open websocket."""
        headers = {} if session is None else {"Cookie": self.cookie(session)}
        address = f"ws://127.0.0.1:{self.port}{path}"
        options = {"compression": None, "open_timeout": 20, "max_size": None} | options
        with connect(address, origin=origin or self.origin, additional_headers=headers, **options) as opened:
            yield opened


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_arguments: Any, **_named: Any) -> None:
        return None


_opener = urllib.request.build_opener(_NoRedirect)


def receive(opened: ClientConnection, seconds: float = 10.0) -> dict[str, Any]:
    """The next message that is not a ping."""
    deadline = time.monotonic() + seconds
    while True:
        message: dict[str, Any] = json.loads(opened.recv(timeout=max(0.0, deadline - time.monotonic())))
        if message["type"] != "ping":
            return message
