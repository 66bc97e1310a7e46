"""A home of its own for each test, and commands run as the shell would run them, but in this process."""

import io
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, load_command_class

from replicas import clock
from replicas.config import Config
from replicas.management import following
from replicas.models import Lease

TRIVIAL = """\
name: web
run: exec python3 -m http.server "$PORT"
service:
  readiness_probe: /
  replicas: 2
"""


@dataclass(frozen=True)
class Result:
    """What a command left: its exit code and its output."""

    code: int
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture
def config(settings: Any, home: Path, db: None) -> Config:
    """The settings of the test's own home."""
    found: Config = settings.ROLLCALL
    return found


@pytest.fixture
def run(config: Config) -> Run:
    """Runs `manage.py NAME ARGS...`."""

    def runs(name: str, *args: object) -> Result:
        out, err = io.StringIO(), io.StringIO()
        command = load_command_class("replicas", name)
        command._called_from_command_line = True
        code = 0
        try:
            options = vars(command.create_parser("manage.py", name).parse_args([str(each) for each in args]))
            command.execute(*options.pop("args", ()), stdout=out, stderr=err, **options)
        except CommandError as error:
            code = error.returncode
            err.write(f"{error.__class__.__name__}: {error}\n")
        except SystemExit as left:
            code = int(left.code or 0)
        return Result(code, out.getvalue(), err.getvalue())

    return runs


@pytest.fixture
def controller(config: Config) -> Lease:
    """The lease of a controller that is at work."""
    until = clock.now() + timedelta(minutes=5)
    return Lease.objects.create(name=following.CONTROLLER, holder="test", fence=1, expires_at=until)


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let things happen while a command waits for news: one of the given steps for each time that it waits.

    When they are used up, the wait ends as by Ctrl-C, so that no test hangs.
    """

    def plan(*steps: Callable[[], Any]) -> None:
        left = list(steps)

        def wait(*_: Any, **__: Any) -> bool:
            if not left:
                raise KeyboardInterrupt
            left.pop(0)()
            return True

        monkeypatch.setattr(following.News, "wait", wait)

    return plan


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def yaml(folder: Path) -> Path:
    """A file with a trivial service called web, of two replicas."""
    path = folder / "web.yaml"
    path.write_text(TRIVIAL)
    return path
