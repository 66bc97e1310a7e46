"""Faults that others have met in public: each must not happen here, on a real control plane."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance import texts
from tests.acceptance.scene import Scene
from tests.support.person import Person
from tests.support.polling import eventually
from tests.support.rows import LIVE

# Answers with what the file ANSWER says: a status, or `hang` to accept nothing any more.
OBEDIENT = """\
import os, socket, time
server = socket.create_server(("127.0.0.1", int(os.environ["PORT"])), backlog=64)
number = int(os.environ["SKYPILOT_SERVE_REPLICA_ID"])
time.sleep(float(os.environ.get("START_SECONDS", "0")) * (number > int(os.environ.get("QUICK", "1000"))))
while number <= int(os.environ.get("HANGING", "0")):
    time.sleep(1000)
while True:
    connection, _ = server.accept()
    with connection:
        try:
            words = connection.recv(4096).split()
        except OSError:
            continue
        if not words:
            continue
        path = words[1].decode()
        sick = os.path.exists(os.environ.get("SICK", "") + "/" + str(number))
        good = not sick and path == os.environ.get("RIGHT", path)
        head = b"HTTP/1.1 %d X\\r\\nContent-Length: 0\\r\\nConnection: close\\r\\n\\r\\n"
        try:
            connection.sendall(head % (200 if good else 503))
        except OSError:
            pass
"""
RUN = f"exec python3 -S -E -c '{OBEDIENT}'"


@pytest.fixture(autouse=True)
def all_is_well(scene: Scene) -> Iterator[None]:
    """After each test: nothing of its services is left, and nothing was wrong on the way."""
    before = set(scene.services)
    yield
    for name in sorted(scene.services - before):
        scene.take_down(name)
        scene.services.remove(name)
    scene.check()


def test_ten_replicas_hang_and_the_others_are_still_probed_on_time(scene: Scene, tmp_path: Path) -> None:
    """Here 5 of 40, which take the connection and never answer."""
    env = {"HANGING": "5", "SICK": str(tmp_path)}
    text = texts.service("hanging", 40, run=RUN, env=env, interval=0.5, initial_delay=120)
    scene.deploy("hanging", text, 40, ready=False)
    eventually(lambda: len(scene.rows.replicas("hanging", "READY")) == 35, 90, lambda: scene.told("hanging"))
    # Each hanging one is in the middle of a probe of five seconds, at any time.
    for number in (6, 20, 40):
        (tmp_path / str(number)).touch()
        scene.wait_state("hanging", number, "NOT_READY", timeout=2.5)  # less than half of what a hanging one takes
        (tmp_path / str(number)).unlink()
        scene.wait_state("hanging", number, "READY", timeout=2.5)
    assert [row["number"] for row in scene.rows.replicas("hanging", "STARTING")] == [1, 2, 3, 4, 5]


def test_the_controller_restarts_and_healthy_replicas_do_not_flap(scene: Scene) -> None:
    scene.deploy("calm", texts.service("calm", 3, interval=0.5), 3)
    scene.wait_told("calm", 3)
    before, cursor = scene.rows.replicas("calm"), scene.rows.events()[-1]["id"]
    for name in ("controller", "short"):
        scene.strike(scene.plane.children()[name])
        scene.wait_whole()
    after = scene.rows.replicas("calm")
    assert [(row["state"], row["pid"], row["state_since"]) for row in after] == [
        (row["state"], row["pid"], row["state_since"]) for row in before
    ]
    of_it = [event for event in scene.rows.events() if event["service_name"] == "calm"]
    told = [event for event in of_it if event["id"] > cursor]
    assert not told, "\n".join(map(str, [event for event in of_it if event["id"] <= cursor][-2:] + told))


def test_scaling_down_with_two_ready_and_two_starting_takes_the_starting_ones(scene: Scene) -> None:
    text = texts.service("half", 4, run=RUN, env={"START_SECONDS": "300", "QUICK": "2"}, initial_delay=600)
    scene.deploy("half", text, 4, ready=False)
    eventually(lambda: len(scene.rows.replicas("half", "READY")) == 2, 30, lambda: scene.told("half"))
    eventually(lambda: len(scene.rows.replicas("half", "STARTING")) == 2, 30, lambda: scene.told("half"))
    before = scene.pids("half")
    scene.scale("half", 2)
    scene.wait_ready("half", 2)
    assert scene.pids("half") == before


def test_two_deploys_at_once_leave_no_old_replica_over(scene: Scene) -> None:
    scene.deploy("twice", texts.service("twice", 2), 2)
    threads = []
    for place in range(2):
        text = texts.service("twice", 2, env={"V": str(place)})
        person = Person(scene.plane).sign_in()
        threads.append(threading.Thread(target=person.apply, args=(text, "twice"), kwargs={"known": True}))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert scene.rows.service("twice")["active"] == 3

    def settled() -> bool:
        rows = scene.rows.replicas("twice", *LIVE)
        return [(row["state"], row["version_number"]) for row in rows] == [("READY", 3)] * 2

    eventually(settled, 45, lambda: scene.told("twice"))


def test_a_corrected_probe_applies_to_replicas_that_are_starting(scene: Scene) -> None:
    text = texts.service("probed", 2, run=RUN, env={"RIGHT": "/right"}, initial_delay=600)
    scene.deploy("probed", text, 2, ready=False)
    eventually(lambda: len(scene.rows.replicas("probed", "STARTING")) == 2, 30, lambda: scene.told("probed"))
    before = {row["number"]: row["pid"] for row in scene.rows.replicas("probed", "STARTING")}
    scene.person.apply(text.replace("path: /\n", "path: /right\n"), "probed", known=True)
    scene.wait_ready("probed", 2)
    assert scene.pids("probed") == before
    assert {row["version_number"] for row in scene.rows.replicas("probed")} == {2}


def test_a_second_tick_while_replicas_are_pending_never_exceeds_the_surge(scene: Scene) -> None:
    """The sampler counts: at most 4 + 1 while version 2 takes over from version 1."""
    text = texts.service("surging", 4, env={"START_SECONDS": "1"}, surge=1, unavailable=0)
    scene.deploy("surging", text, 4)
    scene.wait_told("surging", 4)
    scene.sampler.allow("surging", 5)
    scene.person.apply(text.replace('"1"', '"1.1"'), "surging", known=True)

    def taken_over() -> bool:
        rows = scene.rows.replicas("surging", *LIVE)
        return [(row["state"], row["version_number"]) for row in rows] == [("READY", 2)] * 4

    eventually(taken_over, 60, lambda: scene.told("surging"))
    ready = [event["data"]["ready"] for event in scene.rows.events() if event["service_name"] == "surging"
             and event["kind"] == "service" and event["data"]["version"] == 2 and event["data"]["live"]]  # fmt: skip
    assert min(ready) >= 3  # one may be seen going before its successor is counted


def test_nothing_is_in_progress_for_ever_when_every_worker_is_killed(scene: Scene) -> None:
    """Each launch goes on, whoever began it."""
    scene.deploy("killed", texts.service("killed", 6), 6, ready=False)
    deadline = time.monotonic() + 3
    while time.monotonic() < deadline:
        for row in scene.rows.operations("killed"):
            if row["status"] == "RUNNING" and row["owner_pid"]:
                try:
                    os.kill(row["owner_pid"], signal.SIGKILL)
                except ProcessLookupError:
                    continue
    scene.wait_ready("killed", 6, timeout=scene.limit)
    assert len(scene.rows.replicas("killed")) == 6


def test_names_that_differ_in_a_sign_or_in_case_share_nothing(scene: Scene) -> None:
    """No directory, no log, no address, no end: each has its own setup's file at home, and goes alone."""
    names = ("a-b", "a_b", "A-b")
    run = f"cat ~/mine; exec python3 -S -E -c '{texts.SERVER}'"
    for name in names:
        text = texts.service(name, 1, setup='echo "this is $ROLLCALL_SERVICE" >> ~/mine', run=run)
        scene.deploy(name, text, 1, ready=False)
    for name in names:
        scene.wait_ready(name, 1)
        (row,) = scene.rows.replicas(name)
        log = Path(row["log"]).read_text().splitlines()
        assert [line for line in log if line.startswith("this is")] == [f"this is {name}"]
    assert len({scene.rows.service(name)["endpoint_port"] for name in names}) == len(names)
    before = [scene.pids(name) for name in names]
    scene.take_down("a-b")
    assert [scene.pids(name) for name in names] == [{}, *before[1:]]
    assert [scene.rows.service(name)["desired"] for name in names] == ["DOWN", "UP", "UP"]
