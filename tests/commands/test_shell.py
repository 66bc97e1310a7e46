"""The commands as processes: exit codes, pipes, signals, and the doorbell between processes."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.commands.conftest import TRIVIAL
from tests.support.database import place_database

ROOT = Path(__file__).parents[2]
Eventually = Callable[..., Any]


class Shell:
    """Runs `manage.py` in processes of their own, on a home and a database of their own."""

    def __init__(self, home: Path, folder: Path) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ROLLCALL_")}
        self.environment = kept | {"ROLLCALL_HOME": str(home), "DJANGO_SETTINGS_MODULE": "controlplane.settings"}
        self.environment.pop("DATABASE_URL", None)
        self.environment["PYTHONFAULTHANDLER"] = "1"  # one that hangs tells where, see `ending`
        self.folder = folder

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        """A running command."""
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL} | options
        command = [sys.executable, str(ROOT / "manage.py"), *arguments]
        return subprocess.Popen(command, env=self.environment, cwd=self.folder, **options)

    def __call__(self, *arguments: str, text: bytes = b"") -> tuple[int, str, str]:
        """Exit code, output and errors of a command."""
        process = self.start(*arguments, stdin=subprocess.PIPE)
        out, err = process.communicate(text, timeout=120)
        return process.returncode, out.decode(), err.decode()

    def applied(self) -> None:
        """Apply a trivial service called web."""
        code, out, err = self("apply", "-", text=TRIVIAL.encode())
        assert (code, out.splitlines()[-1:]) == (0, ["web created: version 1 is active."]), err


@pytest.fixture
def shell(home: Path, tmp_path: Path) -> Shell:
    """A shell on a migrated home."""
    place_database(home)
    return Shell(home, tmp_path)


def test_from_an_empty_home_to_a_service_that_is_going_down(home: Path, tmp_path: Path) -> None:
    shell = Shell(home, tmp_path)
    code, out, err = shell("status")
    assert (code, out) == (1, "")
    assert err == (
        f"Error: The database of {home} is empty."
        " Run `manage.py up` or `manage.py migrate` with this ROLLCALL_HOME first.\n"
    )
    assert shell("migrate", "-v0", "--skip-checks")[0] == 0
    code, out, err = shell("apply", "-", text=TRIVIAL.encode())
    assert (code, out.splitlines()[-1]) == (0, "web created: version 1 is active.")
    assert err.startswith("warning: The control plane is not running")
    code, out, _ = shell("status", "--json")
    assert json.loads(out)[0]["name"] == "web"
    assert shell("scale", "web", "x")[0] == 2
    code, _, err = shell("bogus")
    assert (code, "Unknown command: 'bogus'" in err) == (2, True)
    assert shell("scale", "bew", "1")[0] == 4
    assert shell("down", "web", "--wait")[0] == 5


def test_ctrl_c_is_quiet(shell: Shell, eventually: Eventually, home: Path) -> None:
    process = shell.start("events", "--follow")
    bells = home / "run" / "bells" / "events"
    eventually(lambda: bells.is_dir() and any(bells.iterdir()), 60, "it listens")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, b"", b"")
    assert list(bells.iterdir()) == [], "no doorbell is left behind"


def ending(process: subprocess.Popen[bytes]) -> tuple[int, bytes]:
    """Exit code and errors of a command that is about to end; where it hangs, if it does not."""
    try:
        _, err = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
        _, err = process.communicate(timeout=30)
    return process.returncode, err


def test_a_closed_pipe_is_quiet(shell: Shell) -> None:
    shell.applied()
    process = shell.start("events", "--follow", "--limit", "1")
    assert process.stdout is not None
    assert process.stdout.readline()
    process.stdout.close()
    assert shell("scale", "web", "7")[0] == 0
    assert ending(process) == (141, b"")


def test_what_one_process_writes_another_prints_at_once(shell: Shell, eventually: Eventually) -> None:
    shell.applied()
    process = shell.start("events", "--follow", "--json", "--limit", "1")
    assert process.stdout is not None
    try:
        assert json.loads(process.stdout.readline())["trigger"] == "created"
        assert shell("scale", "web", "7")[0] == 0
        assert json.loads(process.stdout.readline())["reason"].startswith("scaled from 2 to 7 by ")
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


def test_logs_pass_byte_for_byte(shell: Shell, home: Path) -> None:
    shell.applied()
    script = (
        "from tests.commands import acts; from replicas.models import Replica;"
        "r = acts.starting(acts.service());"
        f"Replica.objects.filter(pk=r.pk).update(log={str(home / 'run.log')!r})"
    )
    shell.environment["PYTHONPATH"] = str(ROOT)
    code, _, err = shell("shell", "-v0", "-c", script)
    assert code == 0, err
    content = b"\x1b[31mred\x1b[0m\r\xff\xfe\x00 50%\r100%\r\n\xc7\x80 no end"
    (home / "run.log").write_bytes(content)
    process = shell.start("logs", "web", "1")
    assert process.communicate(timeout=60) == (content, b"")


def test_a_database_that_cannot_be_reached(shell: Shell) -> None:
    shell.environment["DATABASE_URL"] = "postgres://nobody@127.0.0.1:1/none?connect_timeout=2"
    code, _, err = shell("status")
    assert code == 1
    assert err.startswith("Error: The database cannot be used (")
    assert "DATABASE_URL" in err
    assert "Traceback" not in err
