"""A launch is cancelled in each phase: then nothing of it is alive, and the operation says CANCELLED."""

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from controlplane import processes
from tests.acceptance import texts
from tests.acceptance.blocking import BlockedLogs
from tests.acceptance.scene import Scene
from tests.support.polling import eventually
from tests.support.rows import Row

SLOW_SETUP = "echo setup has begun; setsid sleep 300 & trap '' TERM; sleep 301"


@contextmanager
def deployed(scene: Scene, name: str, text: str, replicas: int) -> Iterator[None]:
    """The service, until the end of the test."""
    scene.deploy(name, text, replicas, ready=False)
    try:
        yield
    finally:
        scene.take_down(name)
        scene.check()


def launch_of(scene: Scene, name: str, status: str, saying: str = "") -> Row:
    """Wait for a launch of the service with that status and reason."""

    def look() -> Row | None:
        rows = scene.rows.operations(name, "LAUNCH")
        return next((row for row in rows if row["status"] == status and saying in row["waits_for"]), None)

    return eventually(look, 30, lambda: scene.told(name))


def cancel(scene: Scene, operation: Row) -> None:
    """Cancel, and wait until it has come true. In its place the controller may launch another."""
    assert scene.person.cancel(operation["id"])
    wait_cancelled(scene, operation)


def wait_cancelled(scene: Scene, operation: Row) -> None:
    def look() -> bool:
        return scene.rows.operation(operation["id"])["status"] == "CANCELLED"

    eventually(look, 30, lambda: scene.told(operation["service"]))
    row = scene.rows.replica(operation["service"], operation["number"])
    assert (row["state"], row["outcome"]) == ("TERMINATED", "TERMINATED")
    assert "cancelled by admin" in row["reason"]
    assert operation["uid"] not in scene.plane.replicas()
    folder = scene.plane.home / "replicas" / operation["uid"]
    assert not [each for each in ("home", "control", "setup", "venv") if (folder / each).exists()]


def test_while_it_is_queued(scene: Scene) -> None:
    text = texts.service("waits", 2, setup=SLOW_SETUP, tail="max_launches: 1")
    with deployed(scene, "waits", text, 2):
        launch_of(scene, "waits", "WAITING", "setup to be done")
        queued = launch_of(scene, "waits", "QUEUED", "1 of 1 launches of this service in flight")
        cancel(scene, queued)
        assert scene.rows.operation(queued["id"])["started_at"] is None


def test_while_setup_runs(scene: Scene) -> None:
    with deployed(scene, "setup", texts.service("setup", 1, setup=SLOW_SETUP), 1):
        launch = launch_of(scene, "setup", "WAITING", "setup to be done")
        eventually(lambda: "setup has begun" in scene.log_of(launch), 30, lambda: scene.told("setup"))
        before = setups(scene)
        assert len(before) >= 2
        scene.person.cancel(launch["id"])
        scene.person.down("setup")
        wait_cancelled(scene, launch)
        assert not [pid for pid in before if processes.stat(pid)]
        assert setups(scene) == []


def setups(scene: Scene) -> list[int]:
    """Processes of any setup."""
    return [pid for pid in scene.plane.everything() if "ROLLCALL_SETUP_VERSION" in processes.environment(pid)]


def test_while_a_setup_of_its_own_runs(scene: Scene) -> None:
    text = texts.service("ownsetup", 1, setup=SLOW_SETUP, head="setup_scope: replica")
    with deployed(scene, "ownsetup", text, 1):
        launch = launch_of(scene, "ownsetup", "WAITING", "setup to be done")
        eventually(lambda: "setup has begun" in scene.log_of(launch), 30, lambda: scene.told("ownsetup"))
        assert len(scene.plane.replicas()[launch["uid"]]) >= 2
        cancel(scene, launch)


def test_while_its_process_runs_and_the_step_has_not_ended(scene: Scene) -> None:
    blocked = BlockedLogs(scene)
    try:
        with deployed(scene, "midstep", texts.service("midstep", 1), 1):
            (launch,) = blocked.wait_at_work(scene, 1)
            assert scene.plane.replicas().get(launch["uid"])
            assert scene.person.cancel(launch["id"])
            scene.person.down("midstep")
            event = eventually(lambda: [e for e in scene.rows.events() if e["trigger"] == "cancel_requested"])[-1]
            assert (event["object_id"], event["data"]["status"]) == (launch["id"], "CANCELLING")
            blocked.release()
            wait_cancelled(scene, launch)
    finally:
        blocked.close()


def test_when_the_worker_is_killed_while_it_is_being_cancelled(scene: Scene) -> None:
    blocked = BlockedLogs(scene)
    try:
        with deployed(scene, "orphan", texts.service("orphan", 1), 1):
            (launch,) = blocked.wait_at_work(scene, 1)
            assert scene.person.cancel(launch["id"])
            scene.person.down("orphan")
            blocked.release()
            os.kill(launch["owner_pid"], signal.SIGKILL)
            wait_cancelled(scene, launch)
    finally:
        blocked.close()


def test_when_it_runs_and_is_not_ready_the_launch_is_over_and_terminate_ends_it(scene: Scene) -> None:
    with deployed(scene, "starting", texts.service("starting", 1, env={"START_SECONDS": "300"}), 1):
        row = scene.wait_state("starting", 1, "STARTING")
        launch = launch_of(scene, "starting", "SUCCEEDED")
        assert not scene.person.cancel(launch["id"])
        scene.scale("starting", 0)
        scene.wait_state("starting", 1, "TERMINATED")
        assert row["uid"] not in scene.plane.replicas()


def test_while_it_waits_for_its_next_attempt(scene: Scene) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        run = f"exec python3 -m http.server --bind 127.0.0.1 {port}"
        with deployed(scene, "retry", texts.service("retry", 1, run=run, tail=f"ports: {port}"), 1):
            launch = launch_of(scene, "retry", "WAITING", "the next one comes in")
            assert f"Port {port}" in launch["waits_for"]
            assert launch["attempts"] == 2
            cancel(scene, launch)


def test_many_at_once(scene: Scene) -> None:
    """Whatever phase each is in."""
    text = texts.service("many", 8, env={"START_SECONDS": "300"}, tail="max_launches: 4")
    with deployed(scene, "many", text, 8):
        eventually(lambda: scene.rows.replicas("many", "STARTING", "PROVISIONING"), 30)
        cancelled = [row for row in scene.rows.operations("many", "LAUNCH") if scene.person.cancel(row["id"])]
        scene.scale("many", 0)
        eventually(lambda: not scene.sampler.live("many") and not live(scene), 30, lambda: scene.told("many"))
        assert {scene.rows.operation(row["id"])["status"] for row in cancelled} <= {"CANCELLED", "SUCCEEDED"}
        assert Path(scene.plane.home).exists()


def live(scene: Scene) -> list[Row]:
    return [row for row in scene.rows.operations("many") if row["ended_at"] is None]
