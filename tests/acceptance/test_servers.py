"""A service's life on a whole control plane whose rows are on PostgreSQL, or whose jobs are rung for through Redis."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.acceptance import texts
from tests.support.controlplane import ControlPlane
from tests.support.needs import needs
from tests.support.polling import eventually
from tests.support.servers import PostgreSQL, Redis
from tests.web.site import Scribe

Maker = Callable[..., ControlPlane]
Row = dict[str, Any]


class Onlooker:
    """Looks into the database of a control plane, from a process that stays: a command takes a second to start."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.scribe = Scribe(plane.environment | {"DJANGO_SETTINGS_MODULE": "tests.settings"})

    def wait_ready(self, number: int, without: str = "", version: int = 1) -> list[Row]:
        """Wait until exactly so many replicas of the version live and all are ready, none of them `without`."""

        def look() -> list[Row] | None:
            rows: list[Row] = self.scribe.look(name="web")
            calm = [(row["state"], row["version_number"]) for row in rows] == [("READY", version)] * number
            return rows if calm and without not in {row["uid"] for row in rows} else None

        return eventually(look, 30, self.plane.tail)


@pytest.fixture
def onlooker() -> Iterator[Callable[[ControlPlane], Onlooker]]:
    """Makes onlookers."""
    made: list[Onlooker] = []

    def make(plane: ControlPlane) -> Onlooker:
        made.append(Onlooker(plane))
        return made[-1]

    yield make
    for each in made:
        each.scribe.close()


Looking = Callable[[ControlPlane], Onlooker]


@pytest.fixture
def postgresql() -> Iterator[PostgreSQL]:
    """A server with an empty database."""
    made = PostgreSQL()
    yield made
    made.close()


@pytest.fixture
def redis() -> Iterator[Redis]:
    """An empty server."""
    made = Redis()
    yield made
    made.close()


@needs("postgres")
def test_a_life_on_postgresql(postgresql: PostgreSQL, new_control_plane: Maker, onlooker: Looking) -> None:
    plane = new_control_plane(DATABASE_URL=postgresql.url).start()
    assert plane.readyz()["parts"]["database"]["detail"] == "postgresql"
    live(plane, onlooker(plane))
    assert not list((plane.home / "db").iterdir())


@needs("redis-server")
def test_a_life_with_redis(redis: Redis, new_control_plane: Maker, onlooker: Looking) -> None:
    plane = new_control_plane(REDIS_URL=redis.url).start()
    assert plane.readyz()["parts"]["database"]["detail"] == "sqlite"
    live(plane, onlooker(plane))


@needs("redis-server")
def test_redis_goes_away_and_comes_back_empty(redis: Redis, new_control_plane: Maker, onlooker: Looking) -> None:
    """Messages are lost with it, rows are not: the same processes go on, and what nobody took up is offered again."""
    plane = new_control_plane(REDIS_URL=redis.url).start()
    apply(plane, texts.service("web", 1, interval=0.5))
    seen = onlooker(plane)
    before, children = seen.wait_ready(1), plane.children()
    redis.stop()
    plane.manage("scale", "web", "2")
    eventually(lambda: "job queue" in plane.output, 20, plane.tail)
    time.sleep(3)  # that long it is away
    assert redis.start()
    after = seen.wait_ready(2)
    assert before[0]["pid"] in {row["pid"] for row in after}
    plane.wait_ready()
    assert plane.children() == children
    plane.manage("down", "web", "--wait", "--timeout", "30")
    assert plane.stop() == 0


def live(plane: ControlPlane, seen: Onlooker) -> None:
    """Deploy, lose a replica, update, scale, take down, stop: each has its effect, and nothing is left over."""
    apply(plane, texts.service("web", 2, interval=0.5))
    first = seen.wait_ready(2)
    os.kill(first[0]["pid"], signal.SIGKILL)
    healed = seen.wait_ready(2, without=first[0]["uid"])
    assert first[1]["uid"] in {row["uid"] for row in healed}
    apply(plane, texts.service("web", 2, interval=0.5, env={"V": "2"}))
    updated = seen.wait_ready(2, version=2)
    plane.manage("scale", "web", "3")
    assert {row["uid"] for row in updated} < {row["uid"] for row in seen.wait_ready(3, version=2)}
    plane.manage("down", "web", "--wait", "--timeout", "30")
    assert plane.replicas() == {}
    (service,) = json.loads(plane.manage("status", "--json", "--all").stdout)
    assert (service["status"], seen.scribe.look(name="web")) == ("DOWN", [])
    told = [json.loads(line) for line in plane.manage("events", "web", "--json").stdout.splitlines()]
    assert len({event["id"] for event in told}) == len(told)
    assert plane.stop() == 0
    assert plane.everything() == [seen.scribe.pid]
    assert "Traceback" not in plane.output


def apply(plane: ControlPlane, text: str) -> None:
    """Apply the text and wait until it is true."""
    file = plane.home / "web.yaml"
    file.write_text(text)
    plane.manage("apply", str(file), "--wait", "--timeout", "60", timeout=90)
