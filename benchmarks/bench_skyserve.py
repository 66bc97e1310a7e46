"""Beside SkyServe's published rules (benchmarks/skyserve_world.py), in one run, with the same servers.

How soon a service serves, how soon a killed replica is replaced and serves again, and what a sweep of probes costs.

The rules' times are spans between the moments at which they look, so they are nearly the same on each machine; ours are
work, and get longer on a busy one.
"""

import os
import random
import signal
import tempfile
import time
import urllib.error
import urllib.request
from datetime import datetime
from pathlib import Path

from benchmarks.bench_probe import UsualLoop, sweep_cpu_seconds
from benchmarks.endpoints import endpoints, more_files
from benchmarks.homes import SERVER, Plane, control_plane
from benchmarks.rows import Row, alternating, compared, percentile
from benchmarks.skyserve_world import SkyServe

REPLICAS = 4
DEATHS = 3
SEED = 7
LONGEST = 150.0  # seconds: more than all of the rules' spans together
AT_ONCE = "  restart: {backoff_seconds: 0}\n"  # as the rules have it: the next decision launches again
Times = tuple[float, float, float]  # launch to traffic; death to replacement's launch; death to all serving again


def run() -> list[Row]:
    """The ratios; the rules wait most of the time, so this takes some minutes."""
    ours, rules = with_rollcall(), with_rules()
    names = (
        "from the wish to traffic on all four",
        "SIGKILL to the replacement's launch, median of 3",
        "SIGKILL to traffic on all four again, median of 3",
    )
    rows = [compared(name, *pair, most=0.5, unit="s") for name, *pair in zip(names, ours, rules, strict=True)]
    return [*rows, sweep()]


def sweep() -> Row:
    """CPU seconds of one sweep over 1,000 replicas, by the rules with a row written for each."""
    more_files()
    with tempfile.TemporaryDirectory(prefix="bench-sky-") as directory, endpoints(1000) as ports:
        usual = UsualLoop(Path(directory) / "rows.sqlite3")
        theirs, ours = alternating(3, lambda: usual.cpu_seconds(ports, 200), lambda: sweep_cpu_seconds(ports, 200))
    return compared("sweep of probes over 1,000 replicas: CPU", ours, theirs, most=0.5, unit="s")


def with_rules() -> Times:
    """What the rules take."""
    chance = random.Random(SEED)
    began = time.monotonic()
    world = SkyServe(REPLICAS, SERVER)
    try:
        world.run_until(lambda: len(world.serving()) == REPLICAS, LONGEST)
        launch = time.monotonic() - began
        replaced, whole = [], []
        for _ in range(DEATHS):
            pause = time.monotonic() + chance.uniform(0, 20)
            world.run_until(lambda pause=pause: time.monotonic() > pause, 30)  # type: ignore[misc]
            before, killed = len(world.replicas), time.monotonic()
            world.kill_one(chance)
            world.run_until(lambda before=before: len(world.replicas) > before, LONGEST)  # type: ignore[misc]
            replaced.append(world.replicas[-1].launched - killed)
            world.run_until(lambda: len(world.serving()) == REPLICAS, LONGEST)
            whole.append(time.monotonic() - killed)
    finally:
        world.close()
    return launch, percentile(replaced, 0.5), percentile(whole, 0.5)


def with_rollcall() -> Times:
    """What Rollcall takes, through the address of the service."""
    with control_plane() as plane:
        plane.manage("apply", str(plane.service_file("web", REPLICAS, AT_ONCE)))
        url = plane.wait(lambda: plane.query("SELECT endpoint FROM replicas_service")[0][0])
        plane.wait(lambda: who_answers(url) >= set(numbers(plane)) and len(numbers(plane)) == REPLICAS)
        launch = time.time() - moment(plane, "SELECT min(at) FROM replicas_event WHERE trigger = 'version_made'")
        replaced, whole = [], []
        for _ in range(DEATHS):
            time.sleep(1.0)  # the death before it is over
            number, pid = plane.query("SELECT number, pid FROM replicas_replica WHERE state = 'READY' ORDER BY id")[0]
            killed = time.time()
            os.kill(pid, signal.SIGKILL)
            heir = f"SELECT provisioning_at FROM replicas_replica WHERE replaces = {number}"
            plane.wait(lambda heir=heir: any(row[0] for row in plane.query(heir)))  # type: ignore[misc]
            replaced.append(max(0.0, moment(plane, heir) - killed))
            plane.wait(lambda: len(numbers(plane)) == REPLICAS and who_answers(url) >= set(numbers(plane)))
            whole.append(time.time() - killed)
    return launch, percentile(replaced, 0.5), percentile(whole, 0.5)


def moment(plane: Plane, sql: str) -> float:
    """The seconds since 1970 that a query for one moment gives."""
    return datetime.fromisoformat(f"{plane.query(sql)[0][0]}+00:00").timestamp()


def numbers(plane: Plane) -> list[int]:
    """The replicas that are ready."""
    return [row[0] for row in plane.query("SELECT number FROM replicas_replica WHERE state = 'READY'")]


def who_answers(url: str) -> set[int]:
    """The numbers of the replicas that answer some requests through the address."""
    found = set()
    for _ in range(3 * REPLICAS):
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                found.add(int(answer.read().split(b"replica ")[1].split(b",")[0]))
        except (urllib.error.URLError, OSError):
            continue
    return found
