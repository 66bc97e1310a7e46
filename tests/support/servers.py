"""Servers of a test's own: PostgreSQL on a unix socket in a directory of its own, Redis on a free port."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import quote

from tests.support.polling import eventually


class PostgreSQL:
    """A cluster with an empty database. It refuses to run as root, who runs it as the user `postgres`."""

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="rc-pg-", dir="/tmp"))
        self._programs = Path(shutil.which("postgres") or "").resolve().parent
        self._as: dict[str, int] = {}
        if os.getuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self.directory, user.pw_uid, user.pw_gid)
            self._as = {"user": user.pw_uid, "group": user.pw_gid}
        self._data = self.directory / "data"
        self._run("initdb", "-D", self._data, "-A", "trust", "-U", "rollcall", "--no-sync")
        self.url = f"postgres://rollcall@{quote(str(self.directory), safe='')}/rollcall"
        self._server: subprocess.Popen[bytes] | None = None
        self.start()
        self._run("createdb", "-h", self.directory, "-U", "rollcall", "rollcall")

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = ["-c", "listen_addresses=", "-c", "fsync=off", "-c", f"unix_socket_directories={self.directory}"]
        self._server = subprocess.Popen(
            [self._programs / "postgres", "-D", self._data, *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            **self._as,  # type: ignore[call-overload]
        )
        ready = [self._programs / "pg_isready", "-h", self.directory, "-q"]
        eventually(lambda: subprocess.run(ready, check=False).returncode == 0, 60, "PostgreSQL answers")

    def stop(self) -> None:
        """Stop it at once, as a crash would."""
        assert self._server is not None
        self._server.terminate()
        self._server.send_signal(3)  # SIGQUIT: immediate shutdown
        self._server.wait(20)

    def close(self) -> None:
        """Stop it and remove all that it wrote."""
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _run(self, program: str, *arguments: str | Path) -> None:
        command = [self._programs / program, *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/", **self._as)  # type: ignore[call-overload]


class Redis:
    """An empty Redis that keeps everything in memory."""

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="rc-redis-", dir="/tmp"))
        self._server: subprocess.Popen[bytes] | None = None
        eventually(self._find_port, 30, "Redis answers")

    def _find_port(self) -> bool:
        """True once it answers. Another program may take the port before it does; then there is a next one."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self._port}/0"
        return self.start()

    def start(self) -> bool:
        """Start it (again, with nothing in it); False when it could not be started."""
        options = ["--bind", "127.0.0.1", "--port", str(self._port), "--save", "", "--dir", str(self.directory)]
        self._server = subprocess.Popen(
            ["redis-server", *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/"
        )
        eventually(lambda: self._answers() or self._ended(), 20)
        return not self._ended()

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self._port), 1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(64) == b"+PONG\r\n"
        except OSError:
            return False

    def _ended(self) -> bool:
        assert self._server is not None
        return self._server.poll() is not None

    def stop(self) -> None:
        """Kill it, as a crash would: what was in it is gone."""
        assert self._server is not None
        self._server.kill()
        self._server.wait(20)

    def close(self) -> None:
        """Stop it and remove its directory."""
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)
