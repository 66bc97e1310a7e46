"""From nothing to many and back: the number of replicas follows the requests that arrive at a service's address."""

import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.acceptance import texts
from tests.support.controlplane import ControlPlane
from tests.support.polling import eventually
from tests.support.rows import LIVE, Rows

pytestmark = pytest.mark.acceptance

POLICY = """\
replica_policy:
  min_replicas: 0
  max_replicas: 3
  target_qps_per_replica: 10
  upscale_delay_seconds: 5
  downscale_delay_seconds: 10
"""


class Crowd:
    """Clients that ask, a given number of times a second, until they are told to stop."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.rate = 0.0
        self.answers: list[int] = []
        self.stopping = False

    def run(self) -> None:
        while not self.stopping:
            if self.rate:
                self.answers.append(ask(self.url))
            time.sleep(1 / self.rate if self.rate else 0.05)  # a rate is what this is about


def ask(url: str) -> int:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return int(answer.status)


@pytest.fixture
def crowd(control_plane: ControlPlane, tmp_path: Path) -> Iterator[Crowd]:
    """A service that nobody has asked for anything yet, and its clients."""
    path = tmp_path / "crowd.yaml"
    text = texts.service("crowd", 1, tail=POLICY).replace("  replicas: 1\n", "")
    path.write_text(text)
    control_plane.manage("apply", str(path))
    rows = Rows(control_plane.home)
    crowd = Crowd(eventually(lambda: rows.service("crowd")["endpoint"], 30, control_plane.tail))
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(crowd.run)
        yield crowd
        crowd.stopping = True
        done.result(70)
    control_plane.manage("down", "crowd", "--wait", timeout=60)


def test_from_nothing_to_many_and_back(control_plane: ControlPlane, crowd: Crowd) -> None:
    rows = Rows(control_plane.home)

    def live(count: int) -> bool:
        return len(rows.replicas("crowd", *LIVE)) == count

    def told() -> str:
        return control_plane.manage("events", "crowd").stdout[-4000:] + control_plane.tail()

    assert rows.service("crowd")["target"] == 0
    assert ask(crowd.url) == 200
    assert live(1), "the first request is held until a replica answers it"

    crowd.rate = 60
    eventually(lambda: live(3), 30, told)
    crowd.rate = 0
    eventually(lambda: live(0), 120, told)
    assert set(crowd.answers) == {200}, "what was asked while replicas came and went was answered"

    told_of = [event["reason"] for event in rows.events() if event["kind"] == "decision"]
    assert told_of[0] == "from 0 to 1 replica: requests came while there was none"
    assert any("a burst" in reason or "asked for more" in reason for reason in told_of)
    assert told_of[-1].startswith("from ")
    assert "to 0 replicas: the load asked for fewer" in told_of[-1]
