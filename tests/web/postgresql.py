"""A PostgreSQL server of a test's own, on a unix socket in a directory of its own."""

import os
import pwd
import shutil
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
