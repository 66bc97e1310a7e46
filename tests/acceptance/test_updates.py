"""Updates in a row, some of them bad, while parts of the control plane are killed: nobody loses a replica that served.

ROLLCALL_UPDATES makes the row longer (20 is the long form), ROLLCALL_UPDATES_SEED plays one again.
"""

import os
import random
import re
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.acceptance import texts
from tests.acceptance.scene import PARTS, Scene
from tests.support.capacity import Capacity
from tests.support.polling import eventually
from tests.support.rows import LIVE, Row

UPDATES = int(os.environ.get("ROLLCALL_UPDATES", "6"))
SEED = int(os.environ.get("ROLLCALL_UPDATES_SEED") or random.randrange(10**6))
TARGET = 2
PATIENCE = 60.0
MIN_READY = 1.5
PORT = 'int(os.environ["PORT"])'  # how the server of these tests learns its port
TAIL = "restart: {backoff_seconds: 0.2, max_backoff_seconds: 1}"


def text(number: int, kind: str) -> str:
    """Version `number` of the service, which works or fails in its own way."""
    more: dict[str, object] = {"env": {"TEXT": str(number)}}
    mode = "blue_green" if kind == "blue_green" else "rolling"
    if kind == "setup fails":
        more["setup"] = "echo no such package; exit 3"
    elif kind == "run exits":
        more["run"] = "echo no such file; exit 7"
    elif kind == "never ready":
        more |= {"run": "exec sleep 600", "initial_delay": 2}
    elif kind == "ready, then dies":
        more["env"] = {"TEXT": str(number), "LIFE_SECONDS": "0.7"}
    elif kind == "ready, then not":
        more |= {"env": {"TEXT": str(number), "HEALTHY_SECONDS": "0.7"}, "threshold": 1}
    elif kind == "slow":
        more["env"] = {"TEXT": str(number), "START_SECONDS": "2"}
    made = texts.service(
        "moving", TARGET, tail=TAIL, drain=1, interval=0.3, surge=1, unavailable=0, min_ready=MIN_READY, **more
    )
    return made.replace("rollout: {", f"rollout: {{mode: {mode}, progress_deadline_seconds: 20, ")


GOOD = ("rolling", "blue_green", "slow", "in place")
BAD = ("setup fails", "run exits", "never ready", "ready, then dies", "ready, then not")


class Updates:
    """One service that is updated again and again, and what it is expected to come to."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.chance = random.Random(SEED)
        self.works = 0  # the version that was seen to serve last, by the number in its text
        self.hoped = 0  # the latest that works; one that was overtaken may not have proved itself
        self.number = 0
        self.diary: list[str] = []

    def first(self) -> None:
        self.scene.sampler.allow("moving", 2 * TARGET)
        self.scene.person.apply(text(0, "rolling"), "moving")
        self.scene.services.add("moving")
        self.settled()

    def update(self, kind: str) -> None:
        """Apply the next version, and be told what became of it."""
        self.number += 1
        self.diary.append(f"{self.number}: {kind}")
        if kind == "in place":
            made = text(self.works, "rolling").replace("timeout_seconds: 5", f"timeout_seconds: {5 + self.number}")
        else:
            made = text(self.number, kind)
        self.scene.sampler.allow("moving", 2 * TARGET if kind == "blue_green" else TARGET + 1)
        self.scene.person.apply(made, "moving", known=True)
        if kind in GOOD:
            self.hoped = self.works if kind == "in place" else self.number

    def settled(self) -> Row:
        """Wait until no rollout goes on and all replicas are ready; the latest rollout."""

        def look() -> Row | None:
            (latest,) = self.scene.rows.query("SELECT * FROM replicas_rollout ORDER BY id DESC LIMIT 1")
            live = self.scene.rows.replicas("moving", *LIVE)
            ready = [row["state"] for row in live] == ["READY"] * TARGET
            return latest if latest["state"] == "SUCCEEDED" and ready else None

        return eventually(look, PATIENCE, self.told)

    def told(self) -> str:
        rollouts = self.scene.rows.query("SELECT * FROM replicas_rollout ORDER BY id")
        lines = [
            f"{r['id']} {r['kind']} {r['mode']} {r['state']} v{r['from_version']} to v{r['to_version']}, good "
            f"v{r['good_version']}, best {r['best']}: {r['reason']}"
            for r in rollouts
        ]
        return "\n".join([f"seed {SEED}", *self.diary, *lines, self.scene.told("moving")])

    def check(self, kind: str) -> None:
        """What serves is the version that works; after a bad one, the last that proved itself."""
        (row,) = self.scene.rows.query(
            "SELECT text FROM replicas_serviceversion WHERE id = (SELECT version_id FROM replicas_service"
            " WHERE name = 'moving')"
        )
        (found,) = re.findall(r'TEXT: "(\d+)"', row["text"])
        assert int(found) in ({self.hoped} if kind in GOOD else {self.hoped, self.works}), self.told()
        self.works = self.hoped = int(found)

    def kill(self) -> None:
        """kill -9 of a part of the control plane, while everything goes on."""
        part = self.chance.choice(PARTS)
        with suppress(KeyError, ProcessLookupError):
            os.kill(self.scene.plane.children()[part], signal.SIGKILL)
            self.diary.append(f"kill -9 {part}")


@contextmanager
def watched(scene: Scene, floor: int) -> Iterator[Capacity]:
    """Capacity is sampled meanwhile, and was never below the floor."""
    capacity = Capacity(scene.rows, "moving", floor)
    capacity.start()
    try:
        yield capacity
    finally:
        capacity.stop()
    assert not capacity.dips, capacity.dips[:5]
    assert capacity.samples > 20


def kinds(chance: random.Random) -> list[str]:
    """A row of updates with every kind in it before one comes again."""
    made: list[str] = []
    while len(made) < UPDATES:
        every = [*GOOD, *BAD]
        chance.shuffle(every)
        made += every
    return made[:UPDATES]


def test_updates_in_a_row_never_take_capacity(
    new_scene: Callable[..., Scene], capsys: pytest.CaptureFixture[str]
) -> None:
    scene = new_scene()
    updates = Updates(scene)
    updates.first()
    with watched(scene, TARGET) as capacity:
        for kind in kinds(updates.chance):
            updates.update(kind)
            if kind in BAD or updates.chance.random() < 0.7:
                killer = threading.Timer(updates.chance.uniform(0.1, 3), updates.kill)
                killer.start()
                latest = updates.settled()
                killer.join()
                assert latest["kind"] == ("rollback" if kind in BAD else "update"), updates.told()
                updates.check(kind)
        updates.settled()
    scene.check()
    with capsys.disabled():
        print(f" [seed {SEED}: {capacity.samples} samples, at least {capacity.least} of {TARGET} served]", end="")


def test_a_run_that_names_its_port_is_updated_one_after_the_other(scene: Scene) -> None:
    """The old replica has to go before the new one can listen: there are never two."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = 20000 + probe.getsockname()[1] % 10000
    run = f"exec python3 -S -E -c '{texts.SERVER.replace(PORT, str(port))}'"

    def made(mark: str) -> str:
        env = {"MARK": mark}
        return texts.service("fixed", 1, run=run, env=env, tail=f"ports: {port}", drain=0, interval=0.3, surge=1)

    scene.deploy("fixed", made("one"), 1)
    (before,) = scene.rows.replicas("fixed", "READY")
    scene.deploy("fixed", made("two"), 1, ready=False)

    def replaced() -> bool:
        live = scene.rows.replicas("fixed", *LIVE)
        return [(row["state"], row["number"] > before["number"]) for row in live] == [("READY", True)]

    eventually(replaced, 45, lambda: scene.told("fixed"))
    (after,) = scene.rows.replicas("fixed", "READY")
    assert after["url"] == before["url"]
    scene.check()
    scene.take_down("fixed")
    scene.services.remove("fixed")
