"""The control plane goes and comes back, in every way; replicas go on and are taken over as they are."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import pytest

from controlplane import processes
from tests.acceptance import texts
from tests.acceptance.scene import Scene, wait_gone
from tests.support.controlplane import BASE
from tests.support.polling import eventually
from tests.support.rows import Row

STUBBORN = "trap '' TERM; echo stubborn; while true; do sleep 0.2; done"


@pytest.fixture(scope="module", autouse=True)
def steady(scene: Scene) -> Iterator[None]:
    """Three replicas at version 3, which nothing here may touch."""
    text = texts.service("version3", 3)
    scene.deploy("version3", text, 3)
    for number in (4, 5):
        scene.deploy("version3", text.replace("drain_seconds: 2", f"drain_seconds: {number}"), 3)
    yield
    scene.take_down("version3")


@pytest.fixture(autouse=True)
def untouched(scene: Scene) -> Iterator[None]:
    """The same processes before and after, and nothing launched or taken down beside them."""
    before, operations = scene.pids("version3"), scene.rows.operations("version3")
    assert len(before) == 3
    assert scene.rows.service("version3")["active"] == 3
    yield
    assert scene.pids("version3") == before
    assert scene.rows.operations("version3") == operations
    flaps = [e for e in scene.rows.events() if e["trigger"] == "probe_failed" and e["service_name"] == "version3"]
    assert flaps == []
    scene.check()


def away(scene: Scene) -> None:
    """Nothing of the control plane is left, and the replicas go on."""
    eventually(lambda: scene.plane.control_plane() == [], 5, lambda: str(scene.plane.control_plane()))
    assert len(scene.sampler.live("version3")) == 3


def test_a_stop_leaves_replicas_running_and_the_next_start_adopts_them(scene: Scene) -> None:
    scene.deploy("adopted", texts.service("adopted", 2), 2)
    before = scene.pids("adopted")
    assert scene.plane.process is not None
    scene.plane.process.terminate()
    assert scene.plane.process.wait(15) == 0
    assert "replicas go on running; the next start adopts them" in scene.plane.tail()
    away(scene)
    scene.plane.start()
    scene.wait_ready("adopted", 2)
    assert scene.pids("adopted") == before
    scene.scale("adopted", 3)
    scene.wait_ready("adopted", 3)
    assert sorted(scene.pids("adopted")) == [1, 2, 3]
    scene.take_down("adopted")


@dataclass
class Before:
    """What there was when the control plane was killed."""

    adopted: dict[int, int]
    stranger: "subprocess.Popen[bytes]"


@pytest.fixture(scope="module")
def came_back(scene: Scene, steady: None) -> Iterator[Before]:
    """The control plane is killed, what it supervises meets its fate, and it starts again."""
    names = ("numbers", "stubborn", "mortal", "reborn")
    scene.deploy("stubborn", texts.service("stubborn", 1, run=STUBBORN, drain=60), 1, ready=False)
    for name in ("numbers", "mortal", "reborn"):
        scene.deploy(name, texts.service(name, 1), 1)
    scene.wait_state("stubborn", 1, "STARTING")
    scene.scale("stubborn", 0)
    going = scene.wait_state("stubborn", 1, "SHUTTING_DOWN")
    adopted = scene.pids("numbers")
    (mortal,), (reborn,) = scene.rows.replicas("mortal"), scene.rows.replicas("reborn")
    scene.plane.kill()
    away(scene)
    for row in (going, reborn):
        kill_wholly(scene, row)
    os.kill(mortal["pid"], signal.SIGSEGV)
    wait_gone(mortal["handle"]["shim_pid"])
    stranger = subprocess.Popen(["sleep", "300"], start_new_session=True)
    handle = reborn["handle"] | {"pid": stranger.pid, "shim_pid": stranger.pid}
    with closing(sqlite3.connect(scene.rows.path)) as connection, connection:
        connection.execute("UPDATE replicas_replica SET handle = ? WHERE id = ?", (json.dumps(handle), reborn["id"]))
    leave_traces(scene)
    scene.plane.start()
    yield Before(adopted, stranger)
    for name in names:
        scene.take_down(name)
    stranger.kill()
    stranger.wait()


def kill_wholly(scene: Scene, row: Row) -> None:
    """Nothing of the replica is left, and nobody has seen it go."""
    for pid in [row["handle"]["shim_pid"], *scene.plane.replicas()[row["uid"]]]:
        os.kill(pid, signal.SIGKILL)
        wait_gone(pid)


def leave_traces(scene: Scene) -> None:
    """A lock file, and the note of a process whose pid a stranger has by now."""
    assert (scene.plane.run / "up.lock").exists()
    started = processes.start_ticks(os.getpid())
    assert started is not None
    (scene.plane.run / "up.pid").write_text(f"{os.getpid()}\n{started - 1}\nhttp://127.0.0.1:1\n")


def test_after_kill_9_replicas_are_adopted_and_numbers_go_on(scene: Scene, came_back: Before) -> None:
    scene.wait_ready("numbers", 1)
    assert scene.pids("numbers") == came_back.adopted
    scene.scale("numbers", 2)
    scene.wait_ready("numbers", 2)
    assert sorted(scene.pids("numbers")) == [1, 2]


def test_what_was_going_down_and_is_gone_meanwhile_is_finished(scene: Scene, came_back: Before) -> None:
    assert scene.wait_state("stubborn", 1, "TERMINATED")["outcome"] == "TERMINATED"


def test_what_ended_meanwhile_is_found_with_its_cause(scene: Scene, came_back: Before) -> None:
    assert "ended by signal 11 (SIGSEGV)" in scene.wait_state("mortal", 1, "FAILED")["reason"]
    scene.wait_ready("mortal", 1)


def test_a_stored_pid_that_belongs_to_a_stranger_by_now(scene: Scene, came_back: Before) -> None:
    """Identity is pid and start time: a stranger is neither taken for the replica nor signalled."""
    scene.wait_state("reborn", 1, "FAILED")
    scene.wait_ready("reborn", 1)
    assert came_back.stranger.poll() is None


def test_a_second_up_is_refused_and_the_first_goes_on(scene: Scene) -> None:
    children = scene.plane.children()
    second = scene.plane.manage("up", "--port=0", check=False)
    assert second.returncode == 1
    assert scene.plane.process is not None
    for part in (
        "already runs",
        str(scene.plane.home),
        str(scene.plane.process.pid),
        scene.plane.url,
        "manage.py stop",
    ):
        assert part in second.stderr
    assert "Traceback" not in second.stderr
    assert scene.plane.children() == children


def test_two_controllers_never_act_both(scene: Scene) -> None:
    """One that was stopped for 15 s finds that another took over, and waits."""
    scene.deploy("contested", texts.service("contested", 1), 1)
    with open(scene.plane.home / "second.out", "wb") as out:
        second = subprocess.Popen(
            [sys.executable, str(BASE / "manage.py"), "controller", "--skip-checks"],
            env=scene.plane.environment | {"ROLLCALL_PROCESS": "controller"},
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        eventually(lambda: "controller" in scene.beats() and (scene.plane.home / "second.out").exists())
        first = scene.plane.children()["controller"]
        eventually(lambda: holds_bell(scene, second.pid), 30)  # it has started, and waits for the lease
        os.kill(first, signal.SIGKILL)
        eventually(lambda: holder(scene)["pid"] == second.pid, 15, lambda: str(holder(scene)))
        fence = holder(scene)["fence"]
        scene.scale("contested", 2)
        second.send_signal(signal.SIGSTOP)
        stopped = time.monotonic()
        successor = eventually(lambda: taken_over(scene, second.pid), scene.limit, lambda: str(holder(scene)))
        assert successor["fence"] > fence
        scene.wait_ready("contested", 2, timeout=scene.limit)
        time.sleep(max(0.0, stopped + 15 - time.monotonic()))  # the very thing: it is stopped for so long
        scene.scale("contested", 4)
        second.send_signal(signal.SIGCONT)
        eventually(lambda: "no longer ours" in (scene.plane.home / "second.out").read_text(), 15)
        scene.wait_ready("contested", 4)
        scene.scale("contested", 1)
        scene.wait_ready("contested", 1)
        assert [row["number"] for row in scene.rows.replicas("contested")] == [1, 2, 3, 4]
        assert holder(scene)["pid"] == successor["pid"]
        scene.take_down("contested")
    finally:
        second.kill()
        second.wait()


def holder(scene: Scene) -> Row:
    """The lease of the controller."""
    (row,) = scene.rows.query("SELECT * FROM replicas_lease WHERE name = 'controller'")
    return row


def taken_over(scene: Scene, before: int) -> Row | None:
    """The lease, once another than the process `before` holds it."""
    row = holder(scene)
    return row if row["holder"] and row["pid"] != before else None


def holds_bell(scene: Scene, pid: int) -> bool:
    """Whether the process listens for events, as a controller does from its beginning."""
    return any(path.name.startswith(f"{pid}-") for path in (scene.plane.run / "bells" / "events").iterdir())
