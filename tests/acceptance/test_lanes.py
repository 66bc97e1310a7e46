"""The long lane and the short lane never wait for each other, and a busy pool is not taken for a wedged one."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from controlplane.vigil import SILENT_SECONDS
from tests.acceptance import texts
from tests.acceptance.blocking import BlockedLogs
from tests.acceptance.scene import Scene
from tests.support.patience import within
from tests.support.polling import eventually

MARGIN_SECONDS = 4.0
TOGGLED = texts.SERVER.replace("healthy = ", 'healthy = not os.path.exists(os.environ["SICK"]) and ')
assert TOGGLED != texts.SERVER


@pytest.fixture
def busy(new_scene: Callable[..., Scene]) -> Scene:
    """Two long workers, so that two steps keep all of them."""
    return new_scene(ROLLCALL_LONG_WORKERS="2")


def test_while_all_long_workers_are_at_work_probes_beats_and_logs_go_on(busy: Scene, tmp_path: Path) -> None:
    scene, sick = busy, tmp_path / "sick"
    run = f"exec python3 -S -E -c '{TOGGLED}'"
    scene.deploy("steady", texts.service("steady", 1, run=run, env={"SICK": str(sick)}, interval=0.5), 1)
    pools = {name: pid for name, pid in scene.plane.children().items() if name in ("long", "short")}
    blocked = BlockedLogs(scene, 3)
    try:
        scene.deploy("blocked", texts.service("blocked", 3), 3, ready=False)
        blocked.wait_at_work(scene, 2)
        held = time.monotonic()
        sick.touch()
        scene.wait_state("steady", 1, "NOT_READY", timeout=15)
        sick.unlink()
        scene.wait_state("steady", 1, "READY", timeout=15)
        (row,) = scene.rows.replicas("steady")
        with within(5):
            answer = scene.person.session.get(f"{scene.plane.url}/logs/replica/{row['id']}/run/download", timeout=30)
        assert answer.text.startswith("listening\n")
        # For so long that a pool without a heartbeat would have been replaced.
        until = held + SILENT_SECONDS + MARGIN_SECONDS
        while time.monotonic() < until:
            children = scene.plane.children()
            assert {name: children.get(name) for name in pools} == pools, scene.plane.tail()
            assert scene.plane.readyz().get("ready", True), scene.plane.readyz()
            time.sleep(0.5)
        assert len(blocked.wait_at_work(scene, 2)) == 2
        # One that waits has not been given up, and is begun as soon as there is a worker.
        blocked.release()
        scene.wait_ready("blocked", 3)
    finally:
        blocked.close()
    assert {row["orphaned"] for row in scene.rows.operations("blocked")} == {0}
    assert [event for event in scene.rows.events() if event["trigger"] == "orphaned"] == []
    scene.check()


def test_setups_of_many_services_hold_no_worker(scene: Scene) -> None:
    """More setups run at a time than there are workers, and another service is launched beside them."""
    names = [f"setup-{number}" for number in range(6)]
    for name in names:
        scene.deploy(name, texts.service(name, 1, setup="sleep 120"), 1, ready=False)
    try:
        eventually(lambda: [row for name in names for row in waiting(scene, name)][5:], 60)
        scene.deploy("quick", texts.service("quick", 1), 1)
        assert len([row for name in names for row in waiting(scene, name)]) == len(names)
    finally:
        for name in [*names, "quick"]:
            if name in scene.services:
                scene.person.down(name)
        for name in [*names, "quick"]:
            if name in scene.services:
                scene.take_down(name)
    scene.check()


def waiting(scene: Scene, name: str) -> list[dict[str, object]]:
    """Launches that wait for their setup."""
    return [row for row in scene.rows.operations(name, "LAUNCH") if "setup to be done" in row["waits_for"]]
