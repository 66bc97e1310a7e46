"""Load on a service's address while it is updated, scaled, and parts of everything are killed.

ROLLCALL_STORM_SECONDS=1800 makes it the long form; ROLLCALL_STORM_SEED plays one again.
"""

import os
import random
import signal
import time
from collections import Counter

import pytest

from tests.acceptance.scene import wait_gone
from tests.acceptance.test_gateway import Town, reaches
from tests.support.controlplane import ControlPlane
from tests.support.load import Answer, load
from tests.support.polling import eventually

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(3600)]

SECONDS = float(os.environ.get("ROLLCALL_STORM_SECONDS", "120"))
SEED = int(os.environ.get("ROLLCALL_STORM_SEED", "1"))
REPLICAS = 3
AT_ONCE = "  restart: {backoff_seconds: 0}\n"
PASSED_OVER_SECONDS = 0.3  # so long a dead replica may still cost a request
BACK_SECONDS = 1.0  # so long a killed gateway may be away, on a machine with a processor for it


class Storm:
    """What was done to the service, and when; each step is taken when its replicas are well again."""

    def __init__(self, town: Town) -> None:
        self.town = town
        self.chance = random.Random(SEED)
        self.replica_kills: list[tuple[float, float]] = []  # before the kill, and when the process was gone
        self.away: list[tuple[float, float]] = []  # from when to when a killed gateway did not answer
        self.done: Counter[str] = Counter()
        self.begun: list[tuple[float, str]] = []  # when each step began, and what it was

    def step(self) -> None:
        """One thing, taken by chance."""
        acts = [self.update] * 3 + [self.kill_replica] * 5 + [self.kill_gateway] + [self.kill_controller] + [self.scale]
        act = self.chance.choice(acts)
        self.begun.append((time.monotonic(), act.__name__))
        act()
        self.done[act.__name__] += 1
        self.town.ready(REPLICAS)
        eventually(self.town.equal, 15, self.town.told)

    def update(self) -> None:
        """A rolling update: every replica is replaced."""
        before = self.town.rows.service("web")["last_version"]
        self.town.plane.manage("restart", "web")
        eventually(lambda: self.settled(before), 90, self.town.told)

    def settled(self, before: int) -> bool:
        """Whether the version after `before` has replaced all of it."""
        versions = {row["version_number"] for row in self.town.rows.replicas("web", "READY")}
        return versions == {before + 1}

    def scale(self) -> None:
        """One fewer, then as many as before."""
        self.town.plane.manage("scale", "web", str(REPLICAS - 1))
        self.town.ready(REPLICAS - 1)
        self.town.plane.manage("scale", "web", str(REPLICAS))

    def kill_replica(self) -> None:
        victim = self.chance.choice(self.town.rows.replicas("web", "READY"))
        killed = time.monotonic()  # before: who fails at that very moment is excused too
        os.kill(victim["pid"], signal.SIGKILL)
        wait_gone(victim["pid"])
        self.replica_kills.append((killed, time.monotonic()))
        eventually(lambda: self.town.lost(victim["number"]), 15, self.town.told)

    def kill_gateway(self) -> None:
        leader = self.town.plane.children()["gateway"]
        killed = time.monotonic()
        os.kill(leader, signal.SIGKILL)
        eventually(lambda: self.back(leader), BACK_SECONDS, self.town.told)
        self.away.append((killed, max(time.monotonic(), killed + BACK_SECONDS)))

    def back(self, leader: int) -> bool:
        """Whether another gateway than this one serves."""
        return self.town.plane.children().get("gateway") not in (None, leader) and reaches(self.town.url())

    def kill_controller(self) -> None:
        leader = self.town.plane.children()["controller"]
        os.kill(leader, signal.SIGKILL)
        eventually(lambda: self.town.plane.children().get("controller") not in (None, leader), 10, self.town.told)

    def told(self, answers: list[Answer]) -> list[str]:
        """What became of requests, how long they took, and how long before them were the last kill and steps."""
        kills = [since for since, _ in self.replica_kills + self.away]
        return [
            f"{answer.body[:80]} in {answer.done - answer.sent:.3f} s, after a kill by "
            f"{min((answer.sent - at for at in kills if at < answer.done), default=-1):.3f} s, after "
            + ", ".join(f"{name} {answer.sent - at:.3f} s" for at, name in self.begun if at < answer.done)[-120:]
            for answer in answers
        ]

    def excused(self, answer: Answer) -> bool:
        """Whether a request that failed was in flight on what was killed, or came while the gateway was away."""
        passed = [(since, gone + PASSED_OVER_SECONDS) for since, gone in self.replica_kills]
        return any(answer.sent < until and answer.done > since for since, until in passed + self.away)


def test_only_what_was_in_flight_on_what_was_killed_is_lost() -> None:
    plane = ControlPlane()
    try:
        town = Town(plane.start())
        town.apply(REPLICAS, AT_ONCE)
        storm = Storm(town)
        with load(town.url(), clients=6, pause=0.02) as traffic:
            deadline = time.monotonic() + SECONDS
            while time.monotonic() < deadline:
                storm.step()
        lost = [answer for answer in traffic.failed if not storm.excused(answer)]
        assert not lost, f"{storm.done}: {len(lost)} of {len(traffic.answers)}: {storm.told(lost[-9:])}"
        assert len(traffic.answers) > 10 * SECONDS
        longest = max((until - since for since, until in storm.away), default=0.0)
        print(f"{len(traffic.answers)} answers, {dict(storm.done)}, gateway away for {longest:.2f} s at most")
        town.down("web")
    finally:
        left = plane.close()
    assert not left
