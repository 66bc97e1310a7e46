"""The wall clock jumps an hour ahead and two hours back under a running control plane: no wrong kill, no hang."""

import json
import signal
import time
import urllib.request
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from pathlib import Path

from controlplane.vigil import SILENT_SECONDS
from tests.acceptance import texts
from tests.acceptance.scene import Scene
from tests.support.needs import needs
from tests.support.polling import eventually
from tests.support.wallclock import WallClock

pytestmark = needs("cc")


def test_the_clock_jumps_an_hour(new_scene: Callable[..., Scene], tmp_path: Path) -> None:
    clock = WallClock(tmp_path)
    scene = new_scene(**clock.environment)
    go = tmp_path / "go"
    waiting = f"while [ ! -e {go} ]; do sleep 0.1; done"
    scene.deploy("steady", texts.service("steady", 2, interval=0.5), 2)
    scene.deploy("waiting", texts.service("waiting", 1, setup=waiting), 1, ready=False)
    for seconds in (3600, -3600):
        before, children = scene.pids("steady"), scene.plane.children()
        clock.jump(seconds)
        eventually(lambda ahead=seconds: abs(told_time(scene) - time.time() - ahead) < 60, 5)  # it is felt
        nothing_happens(scene, before, children)
        victim = min(before)
        scene.strike(before[victim], number=signal.SIGKILL)
        scene.wait_state("steady", victim, "FAILED", timeout=5)
        scene.wait_ready("steady", 2, timeout=20)
    go.touch()
    scene.wait_ready("waiting", 1, timeout=20)
    scene.scale("steady", 1)
    scene.wait_ready("steady", 1, timeout=20)
    scene.check()


def told_time(scene: Scene) -> float:
    """The wall clock of the web process."""
    with urllib.request.urlopen(f"{scene.plane.url}/healthz", timeout=5) as answer:
        return parsedate_to_datetime(answer.headers["Date"]).timestamp()


def nothing_happens(scene: Scene, before: dict[int, int], children: dict[str, int]) -> None:
    """For longer than a part may be silent."""
    until = time.monotonic() + SILENT_SECONDS + 2
    while time.monotonic() < until:
        assert scene.pids("steady") == before, scene.told("steady")
        assert scene.plane.children() == children, scene.plane.tail()
        said = scene.plane.readyz()
        assert said.get("ready", True), json.dumps(said)
        time.sleep(0.5)  # a while between two looks
