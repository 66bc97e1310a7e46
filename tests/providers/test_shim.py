"""The shim at work on real processes: trees ended whole, exit records, output, and what it costs."""

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

from replicas.providers import logs, procs
from replicas.providers.base import ProviderError
from replicas.providers.control import PYTHON, SHIM, Command, Control, Record, Running, encode
from tests.providers.cast import eventually, owner_is_root
from tests.support import trees
from tests.support.patience import within


class Bench:
    """A control directory, and commands run in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mark = {"ROLLCALL_HOME": str(folder)}
        self.control = Control(folder / "control")
        self.log = folder / "run.log"

    def start(self, script: str, **fields: Any) -> Running:
        command = Command(
            argv=("/bin/bash", "-c", script),
            cwd=self.folder,
            env={"PATH": "/usr/bin:/bin", **self.mark},
            log=self.log,
            **fields,
        )
        return self.control.start(command, self.mark)

    def ended(self, running: Running) -> Record:
        """The exit record, once the shim is gone."""
        assert procs.wait(*running.shim, 30)
        record = self.control.record()
        assert record is not None
        return record

    def printed(self, text: bytes) -> bytes:
        return eventually(lambda: self.log.exists() and text in (seen := self.log.read_bytes()) and seen)

    def everyone(self) -> list[procs.Proc]:
        return procs.carrying(self.mark)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    while left := made.everyone():
        for process in left:
            procs.send(*process, signal.SIGKILL)
            procs.wait(*process, 1)


@pytest.mark.parametrize(
    ("script", "code", "number"),
    [("exit 0", 0, 0), ("exit 7", 7, 0), ("kill -TERM $$", 143, 15), ("kill -KILL $$", 137, 9), ("no-such", 127, 0)],
)
def test_the_exit_code_is_recorded(bench: Bench, script: str, code: int, number: int) -> None:
    record = bench.ended(bench.start(script))
    assert (record.code, record.signal) == (code, number)
    assert not record.stopped
    assert not record.forced
    assert record.complete
    assert abs(record.ended - time.time()) < 60


def test_a_program_that_is_not_there_says_so_in_the_log(bench: Bench) -> None:
    command = Command(argv=("/no/such/program",), cwd=bench.folder, env={}, log=bench.log)
    record = bench.ended(bench.control.start(command, bench.mark))
    assert record.code == 127
    assert b"cannot start" in bench.log.read_bytes()
    assert b"/no/such/program" in bench.log.read_bytes()


def test_output_and_errors_come_in_order_and_whole(bench: Bench) -> None:
    bench.ended(bench.start("echo one; echo two >&2; printf '\\xc7\\x80 three'"))
    assert bench.log.read_bytes() == b"one\ntwo\n\xc7\x80 three"


def test_the_last_output_before_the_exit_is_not_lost(bench: Bench) -> None:
    bench.ended(bench.start("head -c 1000000 /dev/zero | tr '\\0' x; echo; echo end"))
    assert bench.log.read_bytes().endswith(b"\nend\n")
    assert bench.log.read_bytes().count(b"x") == 1_000_000


def test_a_progress_bar_is_seen_while_it_runs(bench: Bench) -> None:
    bench.start("printf ' 10 %%\\r'; sleep 1000")
    assert bench.printed(b" 10 %\r") == b" 10 %\r"


def test_a_secret_split_over_two_writes_never_touches_the_disk(bench: Bench) -> None:
    running = bench.start(
        "printf 'key is s3cr3t-'; sleep 0.2; printf 'v4lue, done\\n'; sleep 0.1", secrets=("s3cr3t-v4lue",)
    )
    seen = bench.printed(b"key is ")
    assert b"s3cr3t" not in seen
    bench.ended(running)
    assert bench.log.read_bytes() == b"key is ******, done\n"


def test_secrets_are_in_no_file_and_no_argument(bench: Bench) -> None:
    running = bench.start("sleep 1000", secrets=("s3cr3t-v4lue",))
    assert not [path for path, content in trees.contents(bench.folder) if b"s3cr3t-v4lue" in content]
    for name in ("environ", "cmdline"):
        assert b"s3cr3t" not in Path(f"/proc/{running.shim.pid}/{name}").read_bytes()


def test_the_log_rotates(bench: Bench) -> None:
    running = bench.start("for i in $(seq 20000); do echo line $i; done", segment_bytes=20_000, segments=3)
    bench.ended(running)
    segments = sorted(each.name for each in bench.folder.iterdir() if each.name.startswith("run.log"))
    segments = [name for name in segments if not name.endswith(".times")]
    assert len(segments) == 3, segments
    assert logs.end(bench.log) == sum(len(f"line {i}\n") for i in range(1, 20001))
    assert logs.tail(bench.log, 1) == ("line 20000",)


def test_sigterm_and_a_clean_end_within_the_grace(bench: Bench) -> None:
    running = bench.start("trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.05; done")
    bench.printed(b"up")
    assert bench.control.stop(20)
    record = bench.ended(running)
    assert (record.code, record.stopped, record.forced) == (5, True, False)
    assert b"bye" in bench.log.read_bytes()


def test_who_ignores_sigterm_is_killed_after_the_grace_and_that_is_no_success(bench: Bench) -> None:
    running = bench.start("trap '' TERM; echo up; while :; do sleep 0.05; done")
    bench.printed(b"up")
    began = time.monotonic()
    with within(10):
        bench.control.stop(0.5)
        record = bench.ended(running)
    assert time.monotonic() - began > 0.4
    assert (record.code, record.stopped, record.forced) == (137, True, True)
    assert bench.everyone() == []


def test_an_end_with_code_0_that_left_something_to_kill_is_no_success(bench: Bench) -> None:
    script = "trap 'exit 0' TERM; (trap '' TERM; echo up; while :; do sleep 0.05; done) & while :; do sleep 0.05; done"
    running = bench.start(script)
    bench.printed(b"up")
    bench.control.stop(0.5)
    record = bench.ended(running)
    assert (record.code, record.forced) == (137, True)


def test_a_repeated_stop_makes_the_grace_shorter_and_never_longer(bench: Bench) -> None:
    running = bench.start("trap '' TERM; echo up; while :; do sleep 0.05; done")
    bench.printed(b"up")
    for grace in (1000, 2000, 0.3, 1000):
        assert bench.control.stop(grace)
        time.sleep(0.05)
    assert procs.wait(*running.shim, 20)
    assert bench.ended(running).forced
    assert not bench.control.stop(0)


def test_what_escaped_with_setsid_or_two_forks_is_ended_too(bench: Bench) -> None:
    script = (
        "setsid sleep 1001 & (setsid sh -c 'sleep 1002 & sleep 1003 & wait' &) ; "
        "setsid env -i /bin/sleep 1004 & echo up; while :; do sleep 0.05; done"
    )
    running = bench.start(script)
    bench.printed(b"up")
    below = eventually(lambda: len(seen := procs.descendants(running.shim.pid)) >= 7 and seen)
    bench.control.stop(5)
    bench.ended(running)
    assert not [process for process in below if procs.alive(*process)]


def test_what_ignores_sigterm_far_down_the_tree_is_killed(bench: Bench) -> None:
    running = bench.start("setsid sh -c 'trap \"\" TERM; echo deaf; while :; do sleep 0.05; done' & sleep 1000")
    bench.printed(b"deaf")
    bench.control.stop(0.3)
    assert bench.ended(running).forced
    assert bench.everyone() == []


def test_what_the_command_left_behind_is_killed_before_the_record(bench: Bench) -> None:
    record = bench.ended(bench.start("setsid sleep 1000 & (setsid sleep 1000 &) ; exit 3"))
    assert (record.code, record.forced) == (3, False)
    assert record.killed >= 1
    assert bench.everyone() == []


def test_the_command_dies_with_its_shim(bench: Bench) -> None:
    running = bench.start("exec sleep 1000")
    procs.send(*running.shim, signal.SIGKILL)
    assert procs.wait(*running.command, 20)
    assert bench.control.running() is None
    assert bench.control.record() is None
    assert bench.control.last() == running


def test_a_kill_0_of_the_command_does_not_reach_the_shim(bench: Bench) -> None:
    assert bench.ended(bench.start("kill -TERM 0; sleep 1000")).code == 143


def test_the_command_gets_the_signals_that_python_ignores(bench: Bench) -> None:
    bench.ended(bench.start("grep SigIgn /proc/self/status; grep SigBlk /proc/self/status"))
    words = bench.log.read_text().split()
    # 32 and 33 are the C library's own, which no program can set; some versions of make leave them ignored.
    own = 0b11 << 31
    assert [int(word, 16) & ~own for word in words[1::2]] == [0, 0]


def test_the_command_inherits_no_descriptor(bench: Bench) -> None:
    read, write = os.pipe()
    try:
        os.set_inheritable(write, True)
        running = bench.start("ls -l /proc/self/fd; cat", keep=(write,))
        bench.ended(running)
    finally:
        os.close(read)
        os.close(write)
    opened = [line.split()[8] for line in bench.log.read_text().splitlines() if "->" in line]
    assert opened == ["0", "1", "2", "3"], "its own three, and the directory that ls reads"


def test_a_second_shim_for_the_same_directory_refuses(bench: Bench) -> None:
    running = bench.start("sleep 1000")
    order = encode(Command(argv=("/bin/echo", "second"), cwd=bench.folder, env={}, log=bench.log), None)
    seen = subprocess.run([PYTHON, "-ISE", SHIM, bench.control.directory], input=order, capture_output=True, timeout=30)
    assert seen.stdout == b""
    assert bench.control.running() == running
    assert b"second" not in bench.log.read_bytes()


@pytest.mark.parametrize("content", [b"", b"arg=/bin/sh\0", b"end", b"\0", b"arg=/bin/touch\0arg=/tmp/x\0en"])
def test_an_order_that_is_cut_off_starts_nothing(bench: Bench, content: bytes) -> None:
    bench.control.directory.mkdir()
    command = [PYTHON, "-ISE", SHIM, bench.control.directory]
    seen = subprocess.run(command, input=content, capture_output=True, timeout=30)
    assert seen.stdout == b""
    assert b"cut off" in seen.stderr
    assert not any(bench.control.directory.iterdir())


def test_a_launcher_that_dies_while_it_writes_the_order_leaves_nothing(bench: Bench) -> None:
    bench.control.directory.mkdir()
    order = encode(Command(argv=("/bin/sleep", "1000"), cwd=bench.folder, env=bench.mark, log=bench.log), None)
    code = (
        "import os, subprocess, sys\n"
        f"p = subprocess.Popen([{PYTHON!r}, '-ISE', {str(SHIM)!r}, {str(bench.control.directory)!r}],"
        " stdin=subprocess.PIPE, start_new_session=True, env=dict(ROLLCALL_HOME=os.environ['ROLLCALL_HOME']))\n"
        f"p.stdin.write({order[:-5]!r}); p.stdin.flush(); os.kill(os.getpid(), 9)"
    )
    subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **bench.mark}, timeout=30, stderr=subprocess.DEVNULL
    )
    eventually(lambda: bench.everyone() == [])
    assert bench.control.last() is None


def test_a_directory_that_cannot_be_written_is_an_error_with_its_cause(bench: Bench) -> None:
    bench.log = bench.folder / "missing" / "run.log"
    with pytest.raises(ProviderError, match="No such file or directory") as caught:
        bench.start("echo")
    assert caught.value.retryable
    assert bench.everyone() == []


@pytest.mark.parametrize("text", ["echo \0", "echo \ud800"])
def test_what_no_process_can_be_given_is_refused(bench: Bench, text: str) -> None:
    with pytest.raises(ProviderError, match="'arg' holds a character that no process can be given") as caught:
        bench.start(text)
    assert not caught.value.retryable
    assert bench.everyone() == []


def test_a_record_that_somebody_else_wrote_is_none(bench: Bench) -> None:
    bench.control.directory.mkdir()
    for content in ("", "nonsense", "[]", "{}", '{"code": 1, "unknown": 2}', '{"code": "x"'):
        (bench.control.directory / "exit").write_text(content)
        assert bench.control.record() is None


def test_a_pid_file_without_the_lock_leads_to_nobody(bench: Bench) -> None:
    bench.control.directory.mkdir()
    stranger = subprocess.Popen(["/bin/sleep", "1000"])
    try:
        process = procs.identify(stranger.pid)
        assert process is not None
        line = f"{process.pid} {process.start} {process.pid} {process.start}\n"
        (bench.control.directory / "shim").write_text(line)
        (bench.control.directory / "lock").touch()
        assert bench.control.running() is None
        assert not bench.control.stop(0)
        time.sleep(0.05)  # a signal would have had its effect by now
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_the_shim_holds_no_tie_to_its_launcher(bench: Bench) -> None:
    running = bench.start("sleep 1000")
    status = Path(f"/proc/{running.shim.pid}/stat").read_text().rpartition(")")[2].split()
    parent, _, session = (int(each) for each in status[1:4])
    assert parent != os.getpid()
    assert session != os.getsid(0)
    for name in ("0", "1"):
        link = Path(f"/proc/{running.shim.pid}/fd/{name}")
        eventually(lambda link=link: link.readlink() == Path("/dev/null"))
    assert Path(f"/proc/{running.shim.pid}/cwd").readlink() == Path("/")


def test_a_full_disk_does_not_hold_the_command_up(bench: Bench) -> None:
    if not owner_is_root():
        pytest.skip("a small file system can only be mounted by root")
    disk = bench.folder / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("this machine mounts no tmpfs")
    try:
        bench.control, bench.log = Control(disk / "control"), disk / "run.log"
        running = bench.start("head -c 3000000 /dev/zero | tr '\\0' x; touch done; read x < go; echo; echo later")
        os.mkfifo(bench.folder / "go")
        eventually((bench.folder / "done").exists)
        assert bench.log.stat().st_size < 256 << 10
        os.truncate(bench.log, 0)
        (bench.folder / "go").write_text("\n")
        record = bench.ended(running)
        assert record.code == 0
        assert 2_400_000 < record.lost_bytes < 3_000_000
        shown = bench.log.read_bytes()
        assert b"[rollcall: %d bytes of output are lost: no room on the disk]" % record.lost_bytes in shown
        assert shown.endswith(b"later\n")
    finally:
        for process in bench.everyone():
            procs.send(*process, signal.SIGKILL)
            procs.wait(*process, 5)
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_an_idle_shim_costs_no_cpu_and_little_memory(bench: Bench) -> None:
    running = bench.start("exec sleep 1000")

    def ticks() -> int:
        fields = Path(f"/proc/{running.shim.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    def idle() -> bool:
        before = ticks()
        time.sleep(0.5)  # the time in which an idle shim must use no CPU
        return ticks() == before

    eventually(idle)  # its start may still be counted at first
    rollup = Path(f"/proc/{running.shim.pid}/smaps_rollup").read_text()
    pss = next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
    assert pss < 9 << 10


def test_the_shim_loads_little(bench: Bench) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import replicas.providers.shim_run;"
        " import json; print(json.dumps(sorted(sys.modules)))"
    )
    root = SHIM.parents[2]
    seen = subprocess.run([PYTHON, "-ISE", "-c", code.replace("import json; ", ""), root], capture_output=True)
    assert b"json" in seen.stderr, "json is not loaded by the shim"
    loaded = set(json.loads(subprocess.run([PYTHON, "-ISE", "-c", code, root], capture_output=True).stdout))
    ours = {name for name in loaded if name.startswith("replicas")}
    parts = {f"replicas.providers.shim_{each}" for each in ("run", "tree", "output")}
    assert ours == {"replicas", "replicas.providers", *parts}
    assert not loaded & {"subprocess", "typing", "signal", "threading", "logging", "django"}


def test_from_the_exit_to_the_end_of_the_shim_it_is_milliseconds(bench: Bench) -> None:
    """The best of many goes, as the machine may be busy with other things in any of them."""

    def took() -> float:
        running = bench.start("sleep 0.2")
        assert procs.wait(*running.command, 20)
        began = time.monotonic()
        assert procs.wait(*running.shim, 20)
        return time.monotonic() - began

    assert any(took() < 0.05 for _ in range(30))
