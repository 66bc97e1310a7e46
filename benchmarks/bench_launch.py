"""From `apply` to fifty READY replicas, held against a plain script that starts the same processes and polls them."""

import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.homes import SERVER, Plane, control_plane
from benchmarks.rows import Row, compared

REPLICAS = 50
WARMING = 8
ROUNDS = 2
MOST = 3.0
SCRIPT = Path(__file__).with_name("plain_launch.py")


class Taken:
    """What the rounds took: seconds from the start of the command, and from the commit of its row; CPU seconds."""

    def __init__(self) -> None:
        self.command: list[float] = []
        self.row: list[float] = []
        self.cpu: list[float] = []


def run() -> list[Row]:
    ours, plain = Taken(), Taken()
    with control_plane() as plane:
        launch(plane, "warm-up", WARMING, Taken())
        for turn in range(ROUNDS):
            launch_plainly(plain)
            launch(plane, f"round-{turn}", REPLICAS, ours)
    against = statistics.median(plain.command)
    return [
        compared(
            "apply to 50 READY, from the command's start", statistics.median(ours.command), against, most=MOST, unit="s"
        ),
        compared("apply to 50 READY, from the row's commit", statistics.median(ours.row), against, most=MOST, unit="s"),
        compared(
            "CPU of it all, the command included",
            statistics.median(ours.cpu),
            statistics.median(plain.cpu),
            most=None,
            unit="s",
        ),
    ]


def launch(plane: Plane, name: str, replicas: int, taken: Taken) -> None:
    """Apply, wait until all are READY, take down."""
    file = plane.service_file(name, replicas)
    spent = plane.cpu_seconds() + of_commands()
    began = time.monotonic()
    command = subprocess.Popen(
        [sys.executable, "manage.py", "apply", str(file)],
        cwd=SCRIPT.parents[1],
        env=plane.environment,
        stdout=subprocess.DEVNULL,
    )
    plane.wait(lambda: plane.count("READY") == replicas)
    taken.command.append(time.monotonic() - began)
    assert command.wait(30) == 0
    taken.cpu.append(plane.cpu_seconds() + of_commands() - spent)
    at = "SELECT (julianday(max(at)) - julianday(min(at))) * 86400 FROM replicas_event WHERE service_name = ? AND"
    (seconds,) = plane.query(f"{at} (trigger = 'version_made' OR new = 'READY' AND kind = 'replica')", name)[0]
    taken.row.append(seconds)
    plane.manage("down", name, "--wait")


def of_commands() -> float:
    """CPU seconds of the commands that this process has waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def launch_plainly(taken: Taken) -> None:
    """The same by the plain script."""
    began = time.monotonic()
    command = [sys.executable, str(SCRIPT), str(REPLICAS), *SERVER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as script:
        assert script.stdout is not None
        assert script.stdout.readline() == "ready\n"
        taken.command.append(time.monotonic() - began)
        taken.cpu.append(float(script.stdout.readline()))
