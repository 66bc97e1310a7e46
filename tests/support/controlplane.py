"""A whole control plane as real processes, for one test, in a home of its own."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from controlplane import occupancy, processes
from tests.support.polling import eventually

BASE = Path(__file__).resolve().parents[2]
PASSWORD = "correct horse battery"
READY_SECONDS = 90.0
UID = re.compile(r"ROLLCALL_\w+_UID")


class ControlPlane:
    """`manage.py up` on a free port. `start` waits until /readyz says yes; `close` leaves nothing behind."""

    def __init__(self, **environment: str) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="rc-", dir="/tmp"))
        self.run = self.home / "run"
        self.process: subprocess.Popen[bytes] | None = None
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("ROLLCALL_") and name != "DJANGO_SETTINGS_MODULE"
        }
        self.environment |= {
            "ROLLCALL_HOME": str(self.home),
            "ROLLCALL_ADMIN_PASSWORD": PASSWORD,
            "PYTHONWARNINGS": "default",
            "ROLLCALL_GATEWAY_PORT": "0",
            **endpoint_ports(),
        } | environment
        self.url = ""

    # --- life -----------------------------------------------------------------------------------------------------

    def start(self, *arguments: str, ready: bool = True) -> "ControlPlane":
        """Start it (again, if it was stopped), and wait until every part is at work."""
        with open(self.home / "up.out", "ab") as out:
            self.process = subprocess.Popen(
                [sys.executable, str(BASE / "manage.py"), "up", "--port=0", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=self.environment,
                start_new_session=True,
            )
        occupant = eventually(self._occupant, READY_SECONDS, self.tail)
        self.url = occupant.url
        if ready:
            self.wait_ready()
        return self

    def wait_ready(self, timeout: float = READY_SECONDS) -> dict[str, Any]:
        """Wait until /readyz says yes; what it says."""

        def look() -> dict[str, Any] | None:
            said = self.readyz()
            return said if said.get("ready") else None

        return eventually(look, timeout, lambda: f"/readyz says {self.readyz()}\n{self.tail()}")

    def stop(self, timeout: float = 15.0) -> int:
        """Stop it as Ctrl-C does; its exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout)

    def kill(self) -> None:
        """SIGKILL the supervisor."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(10)

    def close(self, keep: bool = False) -> list[str]:
        """End everything that carries this home in its environment, and remove the home unless it is to be kept.

        What was still running after a stop: such as replicas, which a test should have taken down.
        """
        if self.process is not None and self.process.poll() is None:
            try:
                self.stop()
            except subprocess.TimeoutExpired:
                self.kill()
        left = [f"{pid}: {command_line(pid)}" for pid in self.everything()]
        deadline = time.monotonic() + 10
        while (found := self.everything()) and time.monotonic() < deadline:
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)
        if not keep:
            shutil.rmtree(self.home, ignore_errors=True)
        return left

    # --- looking --------------------------------------------------------------------------------------------------

    def get(self, path: str, timeout: float = 5.0) -> tuple[int, bytes]:
        """Status and body of a GET; (0, reason) when nobody answers."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=timeout) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()
        except OSError as error:
            return 0, str(error).encode()

    def readyz(self) -> dict[str, Any]:
        """What /readyz says, or {} when it does not answer."""
        status, body = self.get("/readyz")
        return json.loads(body) if status in (200, 503) else {}

    def children(self) -> dict[str, int]:
        """The pid of each child's leader, by name: web, long, short, controller."""
        assert self.process is not None
        found = {}
        for pid in processes.pids():
            status = processes.stat(pid)
            if status and int(status[1]) == self.process.pid:
                carried = processes.environment(pid)
                name = carried.get("Q_CLUSTER_NAME") or carried.get("ROLLCALL_PROCESS")
                if name and "ROLLCALL_REPLICA_UID" not in carried and int(status[3]) == pid:
                    found[name] = pid
        return found

    def everything(self) -> list[int]:
        """All running processes that carry this home in their environment: control plane, commands and replicas."""
        home = str(self.home)
        return [
            pid
            for pid in processes.pids()
            if pid != os.getpid()
            and processes.environment(pid).get("ROLLCALL_HOME") == home
            and processes.stat(pid) is not None
        ]

    def control_plane(self) -> list[int]:
        """The running processes of the control plane: all but replicas, setups and their shims, which carry a uid."""
        return [pid for pid in self.everything() if not any(map(UID.fullmatch, processes.environment(pid)))]

    def replicas(self) -> dict[str, list[int]]:
        """The running processes of each replica, by its uid."""
        found: dict[str, list[int]] = {}
        for pid in self.everything():
            uid = processes.environment(pid).get("ROLLCALL_REPLICA_UID")
            if uid:
                found.setdefault(uid, []).append(pid)
        return found

    def manage(
        self, *arguments: str, check: bool = True, timeout: float = 60.0, told: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run a management command on this home; `told` is its standard input."""
        done = subprocess.run(
            [sys.executable, str(BASE / "manage.py"), *arguments],
            env=self.environment,
            input=told,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert not check or done.returncode == 0, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    @property
    def output(self) -> str:
        """Everything that `up` has printed."""
        return (self.home / "up.out").read_text(errors="replace")

    def tail(self) -> str:
        """The last lines that `up` has printed."""
        return "\n".join(self.output.splitlines()[-40:])

    def _occupant(self) -> occupancy.Occupant | None:
        assert self.process is not None
        if self.process.poll() is not None:
            raise RuntimeError(f"`up` has ended with {self.process.returncode}:\n{self.tail()}")
        found = occupancy.occupant(self.run)
        return found if found and found.pid == self.process.pid else None


def endpoint_ports() -> dict[str, str]:
    """Ports for the addresses of services, apart from those of other test processes on this machine."""
    first = 12000 + (os.getpid() % 150) * 30
    return {"ROLLCALL_ENDPOINT_PORT_FIRST": str(first), "ROLLCALL_ENDPOINT_PORT_LAST": str(first + 29)}


def command_line(pid: int) -> str:
    """What a process runs."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")[:200]
    except OSError:
        return "?"


def children(parent: int) -> list[int]:
    """The running children of a process, the oldest first."""
    found = []
    for pid in processes.pids():
        stat = processes.stat(pid)
        if stat and int(stat[1]) == parent:
            found.append((int(stat[19]), pid))
    return [pid for _, pid in sorted(found)]
