"""The local provider after the worst: shims, workers and directories that are gone in the middle of things."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from replicas.providers import procs
from replicas.providers.local_clear import kill_tree
from tests.providers.cast import Cast, again, eventually

# A worker as a process of its own, which kills itself at the named place.
DOOMED = """
import os, sys
from pathlib import Path
from tests.providers.cast import Cast
from replicas.providers import control
from replicas.providers.local import LocalProvider
home, logs, place, run = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4]
def die(*_, **__): os.kill(os.getpid(), 9)
if place == "before the order":
    control._converse = die
elif place == "before the shim is up":
    def converse(process, order):
        process.stdin.write(order); process.stdin.close(); die()
    control._converse = converse
elif place == "after the start":
    control._running = die
cast = Cast(LocalProvider(home), home, logs)
cast.launch(cast.order(run=run))
"""


def test_a_killed_shim_takes_the_replica_along_and_is_told(local: Cast) -> None:
    order = local.order(run="exec sleep 1000")
    launched = local.launch(order)
    procs.send(*local.provider.watch(launched.handle), signal.SIGKILL)
    procs.wait(launched.handle["pid"], launched.handle["start"], 20)
    seen = local.exited(launched.handle)
    assert seen.kind == "gone"
    assert "was killed" in seen.detail
    assert local.down(order, launched.handle).detail == "already gone"


def test_what_a_killed_shim_left_behind_is_found_by_its_environment(local: Cast) -> None:
    order = local.order(run="setsid sleep 1001 & (setsid sleep 1002 &) ; echo up; wait; sleep 1000")
    launched = local.launch(order)
    local.printed(launched.handle, b"up")
    shim = local.provider.watch(launched.handle)
    below = eventually(lambda: len(seen := procs.descendants(shim[0])) >= 3 and seen)
    procs.send(*shim, signal.SIGKILL)
    procs.wait(*shim, 20)
    assert any(procs.alive(*process) for process in below), "otherwise this tests nothing"
    local.down(order, launched.handle)
    assert not [process for process in below if procs.alive(*process)]
    assert local.everyone() == []


def test_what_has_neither_shim_nor_environment_is_found_by_its_cgroup(local: Cast) -> None:
    order = local.order(run="setsid env -i /bin/sleep 1003 & echo up; sleep 1000")
    launched = local.launch(order)
    local.printed(launched.handle, b"up")
    groups = (local.home / "replicas" / "r1" / "control" / "cgroups").read_text().split()
    if not groups:
        local.down(order, launched.handle)
        pytest.skip("this machine lets us make no cgroups")
    shim = local.provider.watch(launched.handle)
    below = eventually(lambda: len(seen := procs.descendants(shim[0])) >= 2 and seen)
    procs.send(*shim, signal.SIGKILL)
    procs.wait(*shim, 20)
    local.down(order, launched.handle)
    assert not [process for process in below if procs.alive(*process)]
    assert not Path(groups[0]).exists()


def test_a_stopped_shim_is_overruled(local: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("replicas.providers.local.OVERDUE_SECONDS", 0.2)
    order = local.order(run="setsid sleep 1004 & sleep 1000")
    launched = local.launch(order)
    shim = local.provider.watch(launched.handle)
    procs.send(*shim, signal.SIGSTOP)
    assert local.provider.inspect(launched.handle).kind == "running"
    local.down(order, launched.handle, grace=0.1)
    assert local.everyone() == []


def test_what_is_forked_while_a_stopped_shim_is_overruled_goes_as_well(local: Cast) -> None:
    seconds = f"1004{os.getpid()}"  # by which they are known
    order = local.order(run=f"for n in $(seq 2000); do setsid env -i /bin/sleep {seconds} & done; sleep 1000")
    launched = local.launch(order)
    shim = procs.Proc(*local.provider.watch(launched.handle))
    eventually(lambda: sleepers(seconds))
    procs.send(*shim, signal.SIGSTOP)
    kill_tree(shim)
    procs.wait(*shim, 20)
    assert sleepers(seconds) == []
    local.down(order, launched.handle)


def sleepers(seconds: str) -> list[int]:
    """Living processes that sleep for so long."""
    wanted = f"/bin/sleep\0{seconds}\0".encode()
    return [pid for pid in procs.everyone() if procs.identify(pid) and _command_line(pid) == wanted]


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_a_replica_whose_directory_was_removed_is_still_known_and_taken_down(local: Cast) -> None:
    order = local.order()
    launched = local.launch(order)
    shutil.rmtree(local.home / "replicas" / "r1")
    assert local.provider.inspect(launched.handle).kind == "running"
    local.down(order, launched.handle)
    assert local.provider.inspect(launched.handle).kind == "gone"
    assert local.everyone() == []


@pytest.mark.parametrize("place", ["before the order", "before the shim is up", "after the start"])
def test_a_worker_killed_in_the_middle_of_a_launch_leaves_one_replica_or_none(local: Cast, place: str) -> None:
    command = [sys.executable, "-c", DOOMED, str(local.home), str(local.logs), place, "exec sleep 1000"]
    assert subprocess.run(command, timeout=60).returncode == -signal.SIGKILL
    order = local.order(run="exec sleep 1000")
    launched = local.launch(order)
    assert local.provider.find("r1") == launched.handle
    mine = {"ROLLCALL_HOME": str(local.home), "ROLLCALL_REPLICA_UID": "r1"}
    assert [process.pid for process in procs.carrying(mine)] == [launched.pid]
    local.down(order, launched.handle)
    assert local.everyone() == []


@pytest.mark.parametrize("place", ["before the order", "before the shim is up", "after the start"])
def test_a_down_after_a_worker_was_killed_in_the_middle_of_a_launch_leaves_nothing(local: Cast, place: str) -> None:
    command = [sys.executable, "-c", DOOMED, str(local.home), str(local.logs), place, "exec sleep 1000"]
    assert subprocess.run(command, timeout=60).returncode == -signal.SIGKILL
    local.down(local.order(), None)
    assert local.everyone() == [], "also no shim that was still to come"
    assert local.provider.find("r1") is None


def test_the_same_launch_in_four_processes_makes_one_replica(local: Cast) -> None:
    code = DOOMED.replace("cast.launch(cast.order(run=run))", "print(cast.launch(cast.order(run=run)).pid)")
    command = [sys.executable, "-c", code, str(local.home), str(local.logs), "nowhere", "exec sleep 1000"]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    pids = {worker.communicate(timeout=60)[0] for worker in workers}
    assert len(pids) == 1
    assert len(procs.carrying({"ROLLCALL_HOME": str(local.home), "ROLLCALL_REPLICA_UID": "r1"})) == 1


def test_a_lost_replica_is_launched_anew_by_the_next_attempt_only(local: Cast) -> None:
    order = local.order(run="exec sleep 1000")
    first = local.launch(order)
    procs.send(*local.provider.watch(first.handle), signal.SIGKILL)
    procs.wait(first.handle["pid"], first.handle["start"], 20)
    assert local.launch(order).handle == first.handle
    assert local.provider.inspect(first.handle).kind == "gone"
    second = local.launch(again(order, attempt=2))
    assert second.handle != first.handle
    assert local.provider.inspect(second.handle).kind == "running"
