"""`manage.py doctor`: finds what is wrong and says the next step."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command

from controlplane import occupancy
from replicas import checks, clock
from replicas.checks import Level
from replicas.config import Config
from replicas.models import Heartbeat

pytestmark = pytest.mark.django_db


def beat(name: str, seconds_ago: float) -> None:
    Heartbeat.objects.update_or_create(name=name, defaults={"at": clock.now() - timedelta(seconds=seconds_ago)})


@pytest.fixture
def stranger(home: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that looks like a replica of this home."""
    environment = os.environ | {"ROLLCALL_HOME": str(home), "ROLLCALL_REPLICA_UID": "feedfacefeedface"}
    process = subprocess.Popen(["sleep", "300"], env=environment)
    yield process
    process.kill()
    process.wait()


def test_a_sound_installation_that_does_not_run_is_no_fault(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("doctor")
    said = capsys.readouterr().out
    assert "wrong" not in said
    assert "control plane: does not run" in said
    assert "make up" in said


def test_json_is_a_list_of_findings(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("doctor", "--json")
    found = json.loads(capsys.readouterr().out)
    assert {"level", "name", "detail", "step"} == set(found[0])
    assert "python" in [finding["name"] for finding in found]


def test_a_part_that_is_silent_while_others_work_is_wrong(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("web", "controller", "short"):
        beat(name, 0.5)
    beat("long", 60)
    with pytest.raises(SystemExit) as exit:
        call_command("doctor")
    assert exit.value.code == 1
    said = capsys.readouterr().out
    assert re.search(r"wrong  long: last heard of 6\d s ago", said)
    assert "ok     short" in said


def test_that_its_supervisor_has_ended_is_known_before_its_parts_fall_silent(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = settings.ROLLCALL.run
    for name in checks.PARTS:
        beat(name, 0.5)
    os.close(occupancy.occupy(home, run))  # as a kill leaves it: the file stays, nobody holds it
    try:
        call_command("doctor")
        assert "control plane: does not run" in capsys.readouterr().out
        held = occupancy.occupy(home, run)
        call_command("doctor")
        os.close(held)
        assert "does not run" not in capsys.readouterr().out
    finally:
        (run / "up.lock").unlink()


def test_who_looks_for_the_supervisor_keeps_none_from_starting(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the very moment of the look another one takes the lock."""
    run = settings.ROLLCALL.run
    os.close(occupancy.occupy(home, run))
    read, held = Path.read_text, []

    def meanwhile(path: Path, *how: object) -> str:
        held.append(occupancy.occupy(home, run))
        return read(path, *how)

    assert checks.holder(run) is False
    monkeypatch.setattr(Path, "read_text", meanwhile)
    assert checks.holder(run) is True
    os.close(*held)
    (run / "up.lock").unlink()
    assert checks.holder(run) is None


def test_a_misspelt_variable_is_wrong(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ROLLCALL_MAX_LAUNCH", "3")
    with pytest.raises(SystemExit):
        call_command("doctor")
    assert "Did you mean ROLLCALL_MAX_LAUNCHES?" in capsys.readouterr().out


def test_processes_that_belong_to_no_live_replica_are_found(home: Path, stranger: subprocess.Popen[bytes]) -> None:
    (found,) = [finding for finding in checks.strays(home) if finding.level is Level.WRONG]
    assert "feedfacefeedface" in found.detail
    assert str(stranger.pid) in found.step


def test_a_home_that_is_open_to_others_is_wrong(home: Path) -> None:
    home.chmod(0o755)
    assert checks.home(home).level is Level.WRONG
    assert "chmod 700" in checks.home(home).step


@pytest.mark.parametrize(
    ("free", "level"), [(100 * 1024**2, Level.WRONG), (1024**3, Level.NOTE), (50 * 1024**3, Level.FINE)]
)
def test_space_is_wrong_before_it_is_gone(tmp_path: Path, free: int, level: Level) -> None:
    assert checks.space(tmp_path, free).level is level


def test_old_programs_are_wrong() -> None:
    assert checks.python((3, 10, 12)).level is Level.WRONG
    assert checks.sqlite((3, 34, 1)).level is Level.WRONG
    assert checks.bash(lambda _name: None).level is Level.WRONG


def test_ports_that_connections_get_are_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "ephemeral_range", lambda: (30000, 60999))
    found = list(checks.ports(Config(Path("/x"), replica_port_first=20000, replica_port_last=32000)))
    assert found[0].level is Level.WRONG
    assert "ROLLCALL_REPLICA_PORT_LAST=29999" in found[0].step
