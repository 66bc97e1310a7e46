"""How replicas of the local provider end: each in the right state, with its cause and its last lines, and wholly."""

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from controlplane import processes
from tests.acceptance import texts
from tests.acceptance.conftest import HOSTILE
from tests.acceptance.scene import Scene
from tests.support.controlplane import PASSWORD
from tests.support.disk import LARGE
from tests.support.polling import eventually
from tests.support.rows import Row

ONCE = "restart: {max_never_ready: 1}"  # after the first failure nothing more is launched
STAYS = "sleep 1000 & disown; setsid sleep 1001 & disown; (setsid nohup sleep 1002 > /dev/null 2>&1 &)"
ENDS = {
    "exit-0": texts.service("exit-0", 1, run="echo first; echo all done", tail=ONCE),
    "exit-7": texts.service("exit-7", 1, run="echo no database >&2; exit 7", tail=ONCE),
    "signalled": texts.service("signalled", 1, run="echo about to fall; kill -SEGV $$", tail=ONCE),
    "leaves-some": texts.service("leaves-some", 1, run=f"{STAYS}; sleep 0.3; echo gone; exit 4", tail=ONCE),
    "no-command": texts.service("no-command", 1, run="exec no-such-program --port $PORT", tail=ONCE),
    "setup-fails": texts.service(
        "setup-fails", 1, setup="echo looking for it; echo no such package >&2; exit 3", tail=ONCE
    ),
    "never-ready": texts.service(
        "never-ready", 1, env={"START_SECONDS": "100"}, initial_delay=1, tail=ONCE, drain=1, interval=0.5
    ),
}


@pytest.fixture(scope="module")
def ended(scene: Scene) -> Iterator[Callable[[str], Row]]:
    """All of ENDS, applied at once. Gives the first replica of one, once it has ended and nothing of it is left."""
    for name, text in ENDS.items():
        scene.deploy(name, text, 1, ready=False)

    def wait(name: str) -> Row:
        def look() -> Row | None:
            rows = scene.rows.replicas(name)
            return rows[0] if rows and rows[0]["ended_at"] and scene.rows.service(name)["status"] == "FAILED" else None

        row = eventually(look, 60, lambda: scene.told(name))
        assert len(scene.rows.replicas(name)) == 1
        assert_nothing_left(scene, row)
        return row

    yield wait
    for name in ENDS:
        scene.person.down(name)
    for name in ENDS:
        scene.take_down(name)
    scene.check()


def assert_nothing_left(scene: Scene, row: Row) -> None:
    """No process, no lock of a port, no file but the log and what tells of it."""
    marked = [pid for pid in scene.plane.everything() if row["uid"] in processes.environment(pid).values()]
    assert marked == []
    left = {path.name for path in (scene.plane.home / "replicas" / row["uid"]).iterdir()}
    assert left <= {"lock", "run.log", "run.log.times", "setup.log"}


@pytest.mark.parametrize(
    ("name", "state", "cause", "last"),
    [
        ("exit-0", "FAILED", "exited with code 0", "all done"),
        ("exit-7", "FAILED", "exited with code 7", "no database"),
        ("signalled", "FAILED", "signal 11", "about to fall"),
        ("leaves-some", "FAILED", "exited with code 4", "gone"),
        ("no-command", "FAILED", "exited with code 127", "no-such-program: not found"),
        ("setup-fails", "FAILED", "setup exited with code 3", "no such package"),
        ("never-ready", "FAILED_INITIAL_DELAY", "never ready within 1 s", ""),
    ],
)
def test_an_end_says_its_cause_and_the_last_lines(
    scene: Scene, ended: Callable[[str], Row], name: str, state: str, cause: str, last: str
) -> None:
    row = ended(name)
    assert (row["state"], row["outcome"]) == (state, state)
    assert cause in row["reason"]
    assert not last or last in row["last_lines"][-1]
    service = scene.rows.service(name)
    assert cause in service["reason"]
    assert "Launches have stopped" in service["reason"]


def test_a_workdir_that_is_missing_is_refused_when_it_is_applied(scene: Scene, tmp_path: Path) -> None:
    text = texts.service("homeless", 1, head=f"workdir: {tmp_path / 'nowhere'}")
    answer = scene.person.post("/new", text=text)
    assert answer.status_code == 422
    assert str(tmp_path / "nowhere") in answer.text
    assert "does not exist" in answer.text
    assert scene.rows.query("SELECT id FROM replicas_service WHERE name = 'homeless'") == []


def test_a_workdir_that_goes_after_it_was_applied_is_not_missed(scene: Scene, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "greeting").write_text("kept")
    run = f"cat greeting\nexec python3 -S -E -c '{texts.SERVER}'"
    scene.deploy("rehomed", texts.service("rehomed", 1, run=run, head=f"workdir: {folder}"), 1)
    (folder / "greeting").unlink()
    folder.rmdir()
    scene.scale("rehomed", 2)
    scene.wait_ready("rehomed", 2)
    for row in scene.rows.replicas("rehomed", "READY"):
        assert Path(row["log"]).read_text().startswith("kept")
    scene.take_down("rehomed")


def test_a_port_that_is_taken_is_waited_for(scene: Scene) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        server = texts.SERVER.replace('int(os.environ["PORT"])', str(port)).replace("os.environ", "{}")
        run = f"echo port {port}; exec python3 -S -E -c '{server}'"
        scene.deploy("fixed", texts.service("fixed", 1, run=run, tail=f"ports: {port}"), 1, ready=False)
        eventually(
            lambda: any(f"Port {port}" in row["waits_for"] for row in scene.rows.operations("fixed")),
            20,
            lambda: scene.told("fixed"),
        )
    scene.wait_ready("fixed", 1)
    (launch,) = scene.rows.operations("fixed", "LAUNCH")
    assert launch["status"] == "SUCCEEDED"
    assert launch["attempts"] >= 2
    scene.take_down("fixed")


def test_every_replica_gets_a_port_that_nobody_has(scene: Scene) -> None:
    scene.deploy("ports", texts.service("ports", 4), 4)
    ports = [row["handle"]["port"] for row in scene.rows.replicas("ports", "READY")]
    assert len(set(ports)) == 4
    assert all(20000 <= port <= 32000 for port in ports)
    scene.take_down("ports")


def test_one_that_ignores_sigterm_is_killed_after_its_grace(scene: Scene) -> None:
    run = f"trap '' TERM; {STAYS}; python3 -S -E -c '{texts.SERVER}'; while true; do sleep 0.2; done"
    scene.deploy("deaf", texts.service("deaf", 1, run=run, drain=1), 1)
    (row,) = scene.rows.replicas("deaf", "READY")
    scene.scale("deaf", 0)
    ended = scene.wait_state("deaf", 1, "TERMINATED")
    assert_nothing_left(scene, ended)
    (down,) = scene.rows.operations("deaf", "DOWN")
    assert "did not end within its grace" in down["reason"] + scene.log_of(down)
    assert not [pid for pid in (row["pid"], row["handle"]["shim_pid"]) if processes.stat(pid)]
    scene.take_down("deaf")


def test_grandchildren_go_with_it_even_when_its_shim_was_killed(scene: Scene) -> None:
    run = f"{STAYS}; exec python3 -S -E -c '{texts.SERVER}'"
    scene.deploy("family", texts.service("family", 1, run=run), 1)
    (row,) = scene.rows.replicas("family", "READY")
    assert len(scene.plane.replicas()[row["uid"]]) >= 4
    os.kill(row["handle"]["shim_pid"], 9)
    ended = scene.wait_state("family", 1, "FAILED")
    assert_nothing_left(scene, ended)
    scene.wait_ready("family", 1)
    scene.take_down("family")


def test_nothing_of_the_control_planes_environment_is_in_a_replicas(scene: Scene) -> None:
    text = texts.service("clean", 1, setup="env > setup-environment", run=f"exec python3 -S -E -c '{texts.SERVER}'")
    scene.deploy("clean", text, 1)
    (row,) = scene.rows.replicas("clean", "READY")
    found = [processes.environment(pid) for pid in scene.plane.replicas()[row["uid"]]]
    home = scene.plane.home / "replicas" / row["uid"] / "home" / "sky_workdir"
    lines = (home / "setup-environment").read_text().splitlines()
    found.append(dict(line.split("=", 1) for line in lines if "=" in line))
    for carried in [*found, processes.environment(row["handle"]["shim_pid"])]:
        # With a setup there is a virtual environment: the version's own.
        assert not {*HOSTILE, "ROLLCALL_ADMIN_PASSWORD", "ROLLCALL_PROCESS"} & carried.keys() - {"VIRTUAL_ENV"}
        values = " ".join(carried.values())
        assert not [word for word in ("not-for-replicas", "/not/for/replicas", PASSWORD) if word in values]
    assert all(each["ROLLCALL_HOME"] == str(scene.plane.home) for each in found)
    assert found[0]["ROLLCALL_REPLICA_UID"] == row["uid"]
    assert found[0]["PORT"] == str(row["handle"]["port"])
    scene.take_down("clean")


def test_a_full_disk_is_named_and_waited_for(scene: Scene, tmp_path: Path) -> None:
    assert scene.disk is not None
    if scene.disk.problem:
        pytest.skip(f"a small disk cannot be mounted here: {scene.disk.problem}")
    (tmp_path / "weights").write_bytes(os.urandom(3 << 20))
    scene.disk.leave(4 << 20)
    try:
        scene.deploy("large", texts.service("large", 2, head=f"workdir: {tmp_path}"), 2, ready=False)
        full = eventually(
            lambda: [row for row in scene.rows.operations("large") if "disk is full" in row["waits_for"]],
            30,
            lambda: scene.told("large"),
        )[0]
        assert "free some space" in full["waits_for"]
        eventually(lambda: len(scene.rows.replicas("large", "READY")) == 1, 20, lambda: scene.told("large"))
    finally:
        scene.disk.leave(LARGE)
    scene.wait_ready("large", 2)  # as it says: it is tried again
    scene.take_down("large")
    scene.check()
