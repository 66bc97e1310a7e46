"""scripts/install on machines that lack something, and the demo that cleans up after itself."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from controlplane import processes
from tests.support.controlplane import BASE
from tests.support.polling import eventually

INSTALL = BASE / "scripts" / "install"
PYTHON = sys._base_executable  # type: ignore[attr-defined]  # the one with pip: a virtual environment may have none
SERVICE = """
name: steady
run: exec python3 -m http.server --bind 127.0.0.1 $PORT
service: {readiness_probe: {path: /, initial_delay_seconds: 30}, replicas: 1}
"""


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A PATH of our own, with the few programs that the script needs."""
    directory = tmp_path / "bin"
    directory.mkdir()
    for name in ("rm", "mkdir", "touch"):
        found = shutil.which(name)
        assert found is not None
        (directory / name).symlink_to(found)
    return directory


def program(path: Path, text: str) -> None:
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)


def install(tools: Path, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    (tmp_path / "requirements.txt").write_text("# nothing\n")
    return subprocess.run(
        [str(INSTALL), str(tmp_path / ".venv"), str(tmp_path / "requirements.txt")],
        env={"PATH": str(tools), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_old_python_is_named_with_what_is_needed(tools: Path, tmp_path: Path) -> None:
    program(tools / "python3", '[ "$1" = --version ] && echo "Python 3.9.2"\nexit 1\n')
    done = install(tools, tmp_path)
    assert done.returncode != 0
    assert "needs Python 3.11 or newer; found: Python 3.9.2" in done.stderr
    assert not (tmp_path / ".venv").exists()


def test_no_python_at_all(tools: Path, tmp_path: Path) -> None:
    done = install(tools, tmp_path)
    assert done.returncode != 0
    assert "needs Python 3.11 or newer" in done.stderr


def test_a_python_without_ensurepip_still_installs(tools: Path, tmp_path: Path) -> None:
    """Debian's python3 without python3-venv: `-m venv` fails, and leaves half an environment behind."""
    broken = 'mkdir -p "$3/bin"; touch "$3/bin/python"; exit 1'
    whole = f'exec {PYTHON} "$@"'
    program(tools / "python3", f'if [ "$1" = -m ] && [ "$2" = venv ] && [ $# = 3 ]; then {broken}; fi\n{whole}\n')
    done = install(tools, tmp_path)
    assert done.returncode == 0, done.stderr
    assert subprocess.run([str(tmp_path / ".venv/bin/python"), "-c", "pass"], check=False).returncode == 0
    assert not (tmp_path / ".venv/bin/pip").exists()


def test_neither_ensurepip_nor_pip(tools: Path, tmp_path: Path) -> None:
    program(tools / "python3", f'[ "$1" = -m ] && exit 1\nexec {PYTHON} "$@"\n')
    done = install(tools, tmp_path)
    assert done.returncode != 0
    assert "neither ensurepip nor pip" in done.stderr
    assert "apt install python3-venv" in done.stderr


def test_make_installs_once_and_again_when_the_requirements_change(tmp_path: Path) -> None:
    shutil.copy(BASE / "Makefile", tmp_path)
    (tmp_path / "scripts").mkdir()
    program(tmp_path / "scripts" / "install", 'mkdir -p "$1"; echo "$2" >> calls\n')
    for name in ("requirements.txt", "requirements-dev.txt"):
        (tmp_path / name).write_text("")

    def make(target: str) -> list[str]:
        subprocess.run(["make", "-s", target], cwd=tmp_path, check=True)
        return (tmp_path / "calls").read_text().split()

    assert make("install") == ["requirements.txt"]
    assert make("install") == ["requirements.txt"]
    assert make("install-dev") == ["requirements.txt", "requirements-dev.txt"]
    later = (tmp_path / ".venv" / ".requirements").stat().st_mtime + 10
    os.utime(tmp_path / "requirements.txt", (later, later))
    assert make("install") == ["requirements.txt", "requirements-dev.txt", "requirements.txt"]


def test_an_installation_that_failed_is_not_taken_for_done(tmp_path: Path) -> None:
    shutil.copy(BASE / "Makefile", tmp_path)
    (tmp_path / "scripts").mkdir()
    program(tmp_path / "scripts" / "install", 'mkdir -p "$1/bin"; touch "$1/bin/python"; exit 1\n')
    (tmp_path / "requirements.txt").write_text("")
    for _ in range(2):
        assert subprocess.run(["make", "-s", "install"], cwd=tmp_path, capture_output=True, check=False).returncode == 2


@pytest.mark.acceptance
def test_the_demo_takes_everything_away(tmp_path: Path) -> None:
    spec = tmp_path / "steady.yaml"
    spec.write_text(SERVICE)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ROLLCALL_")}
    environment |= {"TMPDIR": str(tmp_path)}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    said = tmp_path / "said"
    with open(said, "wb") as out:
        demo = subprocess.Popen(
            [sys.executable, str(BASE / "scripts" / "demo"), "--port=0", str(spec)],
            env=environment,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    eventually(lambda: "the demo runs at http://127.0.0.1:" in said.read_text(), 120, said.read_text)
    (home,) = tmp_path.glob("rollcall-demo-*")
    eventually(lambda: processes.running_replicas(home), 60)
    demo.send_signal(signal.SIGINT)
    assert demo.wait(90) == 0
    assert "everything is gone" in said.read_text()
    assert not home.exists()
    left = [pid for pid in processes.pids() if processes.environment(pid).get("ROLLCALL_HOME") == str(home)]
    assert not left
