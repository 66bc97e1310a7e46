"""The supervisor over small children: replaces the dead and the wedged, stops in time, leaves nothing behind."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from controlplane import processes
from tests.support.controlplane import BASE
from tests.support.polling import eventually

BEATING = (
    "import os, time\nprint('up', os.getpid())\nwhile True:\n    open({beat!r}, 'w').close()\n    time.sleep(0.05)\n"
)
PLAIN = "import os, time\nprint('up', os.getpid())\ntime.sleep(600)\n"
STUBBORN = "import os, signal, time\nsignal.signal(15, signal.SIG_IGN)\nprint('up', os.getpid())\ntime.sleep(600)\n"
SLOW = """
import os, signal, sys, time
def end(*_):
    print("asked", time.monotonic())
    time.sleep({seconds})
    print("ends", time.monotonic())
    sys.exit()
signal.signal(15, end)
print("up", os.getpid())
time.sleep(600)
"""
ORPHANS = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(0.3)
    os._exit(0)
"""
FAMILY = """
import multiprocessing, os, subprocess, time
from controlplane.ties import tie_forks
tie_forks()
def deep():
    time.sleep(600)
def mid():
    multiprocessing.get_context("fork").Process(target=deep).start()
    subprocess.Popen(["sleep", "604"], start_new_session=True)
    time.sleep(600)
multiprocessing.get_context("fork").Process(target=mid).start()
print("up", os.getpid())
time.sleep(600)
"""

HOLDING = """
import fcntl, os, subprocess, sys, time
code = "import fcntl, sys, time; file = open(sys.argv[1], 'w'); fcntl.flock(file, 2); "
code += "open(sys.argv[1] + '.held', 'w'); time.sleep(600)"
subprocess.Popen([sys.executable, "-c", code, {lock!r}])
print("up", os.getpid())
time.sleep(600)
"""
NEEDING = """
import fcntl, os, time
print("up", os.getpid())
while True:
    with open({lock!r}, "w") as file:
        if os.path.exists({lock!r} + ".held"):
            fcntl.flock(file, fcntl.LOCK_EX)
    open({beat!r}, "w").close()
    time.sleep(0.05)
"""


class Stage:
    """A supervisor process over a table of children."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *children: dict[str, Any], stdout: int | str | None = None, **vigil: float) -> "Stage":
        play = {"children": children, "vigil": vigil}
        (self.directory / "table.json").write_text(json.dumps(play))
        with open(stdout or self.directory / "out", "ab") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.runtime.stage", str(self.directory)],
                cwd=BASE,
                env=os.environ | {"STAGE": str(self.directory)},
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return self

    @property
    def output(self) -> str:
        path = self.directory / "control-plane.log"
        return path.read_text() if path.exists() else ""

    def pid(self, name: str) -> int:
        """The child's pid, once it has said it; the newest one."""

        def look() -> int | None:
            said = [line.split()[-1] for line in self.output.splitlines() if f" {name:<10}| up " in line]
            return int(said[-1]) if said else None

        return eventually(look, 10, f"{name} is up")

    def next_pid(self, name: str, old: int, timeout: float = 15) -> int:
        return eventually(lambda: pid if (pid := self.pid(name)) != old else None, timeout, lambda: self.output)

    def everybody(self) -> list[int]:
        """All running processes that descend from the supervisor, and itself."""
        mark = str(self.directory)
        return [pid for pid in processes.pids() if processes.environment(pid).get("STAGE") == mark and alive(pid)]


def alive(pid: int) -> bool:
    return processes.stat(pid) is not None


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path)
    yield made
    for pid in made.everybody():
        os.kill(pid, signal.SIGKILL)
    if made.process is not None:
        made.process.wait(10)


def child(name: str, code: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "code": code, **more}


def test_a_dead_child_is_replaced_at_once_and_the_reason_is_said(stage: Stage) -> None:
    stage.start(child("a", PLAIN), child("b", PLAIN))
    first, other = stage.pid("a"), stage.pid("b")
    os.kill(first, signal.SIGKILL)
    assert stage.next_pid("a", first, timeout=5) != first
    assert f"a (process {first}) was ended by SIGKILL after" in stage.output
    assert "it is started again now" in stage.output
    assert stage.pid("b") == other


def test_a_child_that_dies_again_and_again_is_started_ever_later(stage: Stage) -> None:
    stage.start(child("a", "print('up', 1)\nraise SystemExit(7)"))
    eventually(lambda: "it is started again in 2 s" in stage.output, 15, lambda: stage.output)
    assert "exited with code 7" in stage.output
    assert "it is started again in 1 s" in stage.output
    time_of = [line.split()[0] for line in stage.output.splitlines() if "| up 1" in line]
    assert len(time_of) == 3


def test_a_silent_child_is_replaced(stage: Stage) -> None:
    beat = str(stage.directory / "beat-a")
    stage.start(child("a", BEATING.format(beat=beat), beat="beat-a"), START_SECONDS=2.0, SILENT_SECONDS=1.5)
    eventually(lambda: "ready after" in stage.output, 10)
    first = stage.pid("a")
    os.kill(first, signal.SIGSTOP)
    assert stage.next_pid("a", first) != first
    assert "no sign of life for 2 s" in stage.output
    assert not alive(first)


def test_a_child_with_a_stopped_process_is_replaced_when_others_wait_for_it(stage: Stage) -> None:
    """It holds a lock, as a stopped worker can hold the database's: to replace those who wait would help nobody."""
    lock, beat = str(stage.directory / "lock"), str(stage.directory / "beat-b")
    stage.start(
        child("a", HOLDING.format(lock=lock)),
        child("b", NEEDING.format(lock=lock, beat=beat), beat="beat-b"),
        START_SECONDS=1.0,
        LATE_SECONDS=1.0,
        SILENT_SECONDS=60.0,
    )
    first, other = stage.pid("a"), stage.pid("b")
    eventually(lambda: os.path.exists(f"{lock}.held"))
    (holder,) = (pid for pid in stage.everybody() if (processes.stat(pid) or ["", ""])[1] == str(first))
    os.kill(holder, signal.SIGSTOP)
    assert stage.next_pid("a", first) != first
    assert f"a signal had stopped process {holder} of it" in stage.output
    assert not alive(holder)
    assert stage.pid("b") == other


def test_the_rest_of_a_dead_leaders_family_is_ended_but_not_what_left_it(stage: Stage) -> None:
    """What left the session is a replica: it is adopted, not killed."""
    code = (
        "import os, subprocess, time\n"
        "subprocess.Popen(['sleep', '601'])\n"
        "subprocess.Popen(['sleep', '602'], start_new_session=True)\n" + PLAIN
    )
    stage.start(child("a", code))
    first = stage.pid("a")
    sleepers = {command(pid): pid for pid in stage.everybody() if command(pid).startswith("sleep")}
    os.kill(first, signal.SIGKILL)
    stage.next_pid("a", first)
    assert not alive(sleepers["sleep 601"])
    assert alive(sleepers["sleep 602"])
    assert "1 of its processes killed" in stage.output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_everything(stage: Stage, number: signal.Signals) -> None:
    stage.start(child("a", PLAIN), child("b", PLAIN))
    stage.pid("a"), stage.pid("b")
    assert stage.process is not None
    stage.process.send_signal(number)
    assert stage.process.wait(10) == 0
    assert stage.everybody() == []
    assert "stopped. No replica is running" in stage.output


def test_a_child_that_does_not_stop_is_killed_when_its_grace_is_over(stage: Stage) -> None:
    stage.start(child("a", STUBBORN, grace=1.0), child("b", PLAIN))
    stage.pid("a"), stage.pid("b")
    assert stage.process is not None
    began = time.monotonic()
    stage.process.terminate()
    assert stage.process.wait(8) == 0
    assert time.monotonic() - began >= 1.0
    assert stage.everybody() == []


def test_the_last_one_is_asked_to_stop_when_the_others_have_ended(stage: Stage) -> None:
    stage.start(child("a", SLOW.format(seconds=1)), child("b", SLOW.format(seconds=0), last=True))
    stage.pid("a"), stage.pid("b")
    assert stage.process is not None
    stage.process.terminate()
    assert stage.process.wait(10) == 0
    assert said(stage, "b", "asked") > said(stage, "a", "ends")
    assert "did not stop in time" not in stage.output


def said(stage: Stage, name: str, word: str) -> float:
    """The time that a child gave together with a word."""
    (line,) = [line for line in stage.output.splitlines() if f" {name:<10}| {word} " in line]
    return float(line.split()[-1])


def test_the_last_one_has_its_own_grace(stage: Stage) -> None:
    stage.start(child("a", STUBBORN, grace=1.0), child("b", STUBBORN, grace=0.5, last=True))
    stage.pid("a"), stage.pid("b")
    assert stage.process is not None
    began = time.monotonic()
    stage.process.terminate()
    assert stage.process.wait(10) == 0
    assert time.monotonic() - began >= 1.5
    assert stage.everybody() == []


def test_the_second_signal_kills_those_too_that_were_not_asked_yet(stage: Stage) -> None:
    stage.start(child("a", STUBBORN, grace=60.0), child("b", PLAIN, last=True))
    pids = [stage.pid("a"), stage.pid("b")]
    assert stage.process is not None
    stage.process.terminate()
    eventually(lambda: "stopping; once more kills at once" in stage.output)
    assert all(alive(pid) for pid in pids)
    stage.process.terminate()
    assert stage.process.wait(10) == 0
    assert stage.everybody() == []


def test_the_second_signal_kills_at_once(stage: Stage) -> None:
    stage.start(child("a", STUBBORN, grace=60.0))
    stage.pid("a")
    assert stage.process is not None
    stage.process.send_signal(signal.SIGINT)
    eventually(lambda: "stopping; once more kills at once" in stage.output)
    stage.process.send_signal(signal.SIGINT)
    assert stage.process.wait(5) == 0
    assert stage.everybody() == []


def test_kill_9_of_the_supervisor_ends_its_family_and_spares_what_left_it(stage: Stage) -> None:
    stage.start(child("a", FAMILY), child("b", PLAIN))
    stage.pid("a"), stage.pid("b")
    names = eventually(
        lambda: found if len(found := stage.everybody()) == 6 else None, 10, lambda: str(stage.everybody())
    )
    assert len(names) == 6
    assert stage.process is not None
    stage.process.kill()
    stage.process.wait()
    left = eventually(lambda: found if len(found := stage.everybody()) == 1 else None, 5)
    assert command(left[0]) == "sleep 604"


def test_kill_9_of_a_leader_ends_what_it_forked_at_once(stage: Stage) -> None:
    """The kernel does it, before the supervisor has even noticed."""
    stage.start(child("a", FAMILY))
    first = stage.pid("a")
    eventually(lambda: len(stage.everybody()) == 5)
    before = set(stage.everybody())
    assert stage.process is not None
    os.kill(stage.process.pid, signal.SIGSTOP)
    os.kill(first, signal.SIGKILL)
    own = {stage.process.pid, first}
    eventually(lambda: [command(pid) for pid in before - own if alive(pid)] == ["sleep 604"], 5)
    os.kill(stage.process.pid, signal.SIGCONT)
    assert stage.next_pid("a", first) != first


def test_orphans_are_reaped(stage: Stage) -> None:
    stage.start(child("a", ORPHANS + PLAIN))
    stage.pid("a")
    assert stage.process is not None
    parent = stage.process.pid
    eventually(lambda: zombies(parent) == [] and len(stage.everybody()) == 2, 5, lambda: str(zombies(parent)))


def test_a_stopped_supervisor_does_not_blame_its_children_when_it_goes_on(stage: Stage) -> None:
    beat = str(stage.directory / "beat-a")
    code = BEATING.format(beat=beat)
    stage.start(child("a", code, beat="beat-a"), START_SECONDS=1.0, SILENT_SECONDS=1.0)
    first = stage.pid("a")
    assert stage.process is not None
    os.kill(stage.process.pid, signal.SIGSTOP)
    os.kill(first, signal.SIGSTOP)
    time.sleep(3.0)  # the very thing: time passes in which nobody could have beaten
    os.kill(first, signal.SIGCONT)
    os.kill(stage.process.pid, signal.SIGCONT)
    os.kill(stage.process.pid, 0)
    eventually(lambda: "ready after" in stage.output)
    assert stage.pid("a") == first
    assert "no sign of life" not in stage.output


@pytest.mark.parametrize("how", ["nobody reads", "broken pipe", "full"])
def test_it_works_without_anybody_listening(stage: Stage, how: str) -> None:
    chatty = PLAIN.replace(
        "time.sleep(600)", "\nfor n in range(20000): print('x' * 80)\nprint('done')\ntime.sleep(600)"
    )
    if how == "full":
        stage.start(child("a", chatty), stdout="/dev/full")
    else:
        reader, writer = os.pipe()
        stage.start(child("a", chatty), stdout=writer)
        if how == "broken pipe":
            os.close(reader)
    eventually(lambda: "| done" in stage.output, 20)
    assert stage.process is not None
    stage.process.terminate()
    assert stage.process.wait(10) == 0
    assert stage.everybody() == []


def command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    except OSError:
        return ""


def zombies(parent: int) -> list[int]:
    found = []
    for pid in processes.pids():
        try:
            text = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            continue
        fields = text[text.rindex(")") + 2 :].split()
        if fields[0] == "Z" and int(fields[1]) == parent:
            found.append(pid)
    return found
