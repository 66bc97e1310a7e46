"""Identity of processes, and signals that reach only the right one."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from replicas.providers import procs
from tests.providers.cast import eventually


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    """A process of another's, with a mark in its environment."""
    process = subprocess.Popen(["/bin/sleep", "1000"], env={"MARK": f"procs-{os.getpid()}", "OTHER": "x"})
    yield process
    process.kill()
    process.wait()


def test_identity_is_pid_and_start_time(sleeper: "subprocess.Popen[bytes]") -> None:
    process = procs.identify(sleeper.pid)
    assert process is not None
    assert procs.alive(*process)
    assert not procs.alive(process.pid, process.start - 1)
    assert process.start <= time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK")


def test_a_signal_reaches_the_process(sleeper: "subprocess.Popen[bytes]") -> None:
    process = procs.identify(sleeper.pid)
    assert process is not None
    assert procs.send(*process, signal.SIGTERM)
    assert sleeper.wait(10) == -signal.SIGTERM
    assert not procs.send(*process, signal.SIGTERM)


def test_a_stranger_with_a_recycled_pid_is_never_signalled(sleeper: "subprocess.Popen[bytes]") -> None:
    process = procs.identify(sleeper.pid)
    assert process is not None
    assert not procs.send(process.pid, process.start - 1, signal.SIGKILL)
    assert procs.wait(process.pid, process.start - 1, 10), "the one that was meant is gone"
    assert procs.alive(*process)


def test_nobody_is_not_signalled() -> None:
    assert not procs.send(2**22 + 1, 1, signal.SIGKILL)
    assert procs.wait(2**22 + 1, 1, 10)
    assert procs.identify(2**22 + 1) is None


def test_a_zombie_counts_as_ended(sleeper: "subprocess.Popen[bytes]") -> None:
    process = procs.identify(sleeper.pid)
    assert process is not None
    sleeper.kill()
    assert procs.wait(*process, 10)
    eventually(lambda: not procs.alive(*process))
    assert procs.stat(process.pid) is not None, "it is not reaped yet"


def test_waiting_ends_with_the_process_or_in_time(sleeper: "subprocess.Popen[bytes]") -> None:
    process = procs.identify(sleeper.pid)
    assert process is not None
    assert not procs.wait(*process, 0.05)
    sleeper.kill()
    assert procs.wait(*process, 10)


def test_processes_are_found_by_their_environment(sleeper: "subprocess.Popen[bytes]") -> None:
    mark = f"procs-{os.getpid()}"
    process = procs.identify(sleeper.pid)
    assert eventually(lambda: procs.carrying({"MARK": mark})) == [process]
    assert procs.carrying({"MARK": mark, "OTHER": "x"}) == [process]
    assert procs.carrying({"MARK": mark, "OTHER": "y"}) == []
    assert procs.carrying({"ARK": mark}) == [], "a part of a name is another name"
    assert procs.carrying({"MARK": mark[:-1]}) == [], "a part of a value is another value"


def test_descendants_are_found_through_the_generations() -> None:
    script = "sh -c 'sleep 1000 & wait' & sleep 1000 & wait"
    process = subprocess.Popen(["/bin/sh", "-c", script], start_new_session=True)
    try:
        found = eventually(lambda: len(seen := procs.descendants(process.pid)) == 3 and seen)
        assert all(procs.alive(*each) for each in found)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_names_with_brackets_and_blanks_are_read_right(tmp_path: os.PathLike[str]) -> None:
    program = os.path.join(tmp_path, "a) S 1 (b")
    os.symlink("/bin/sleep", program)
    process = subprocess.Popen([program, "1000"])
    try:
        seen = eventually(lambda: (found := procs.stat(process.pid)) and found.parent == os.getpid() and found)
        assert seen.state in "SRD"
    finally:
        process.kill()
        process.wait()


def test_as_many_files_as_the_host_allows() -> None:
    code = "import resource; from replicas.providers import procs; procs.more_files();"
    code += " print(*resource.getrlimit(resource.RLIMIT_NOFILE))"
    command = ["/bin/bash", "-c", 'ulimit -Sn 64 && exec "$@"', "bash", sys.executable, "-c", code]
    soft, most = subprocess.run(command, capture_output=True, check=True, cwd=Path(__file__).parents[2]).stdout.split()
    assert soft == most != b"64"
