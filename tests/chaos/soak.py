"""Steady work for hours: 30 services and 300 replicas, updated and killed all the time. Nothing may grow or get slow.

What is measured: memory of every part (PSS, and RSS for comparison), the database with its journal, logs, and how long
a change takes from its cause to a websocket. The constants below say how much each may grow after the warm-up.
"""

import argparse
import itertools
import os
import random
import signal
import sys
import time
import traceback
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles

from controlplane import processes
from tests.chaos.latency import Latency
from tests.support import trees
from tests.support.controlplane import ControlPlane
from tests.support.person import Person
from tests.support.reader import FeedReader
from tests.support.rows import LIVE, Rows

FAKES, FAKE_REPLICAS = 24, 12
LOCALS, LOCAL_REPLICAS = 6, 2
SAMPLE_SECONDS = 5.0
ACT_SECONDS = 1.0  # between two deaths; an update comes with every tenth
WARM = 0.4  # of the time: caches, pools and the database reach their size; what is pruned begins to go
CHANGES = 12  # deaths that are timed at either end
SERVER = Path(__file__).with_name("server.py")
SETTINGS = {
    "ROLLCALL_PRUNE_DAYS": str(60 / 86400),  # a minute of history
    "ROLLCALL_LAUNCH_RETRY_SECONDS": "1",
}
PARTS = ("supervisor", "web", "controller", "long", "short", "gateway", "shims")
MEMORY_GROWTH, MEMORY_MB = 0.05, 4.0  # after the warm-up: of its size, or so many MB, whichever is more
DISK_GROWTH, DISK_MB = 0.25, 8.0
LATENCY_RATIO, LATENCY_SECONDS = 2.0, 0.25  # or so much more, whichever is more


@dataclass
class Series:
    """Values over time, of which the part after the warm-up counts."""

    at: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def add(self, at: float, value: float) -> None:
        """Add one."""
        self.at.append(at)
        self.values.append(value)

    def warm(self) -> tuple[list[float], list[float]]:
        """Those after the warm-up."""
        begin = self.at[0] + WARM * (self.at[-1] - self.at[0])
        first = next(index for index, at in enumerate(self.at) if at >= begin)
        return self.at[first:], self.values[first:]

    def growth(self) -> float:
        """How much it grew over that time, by the line of least squares: one reading that is off does not count."""
        at, values = self.warm()
        mean, level = sum(at) / len(at), sum(values) / len(values)
        spread = sum((each - mean) ** 2 for each in at)
        slope = sum((a - mean) * (v - level) for a, v in zip(at, values, strict=True)) / spread if spread else 0.0
        return slope * (at[-1] - at[0])


class Soak:
    """`run` does the work and measures; `table` shows it, `faults` says what is out of bounds."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.plane = ControlPlane(**SETTINGS)
        self.rows = Rows(self.plane.home)
        self.person = Person(self.plane)
        self.reader = FeedReader(self.person)
        self.latency = Latency(self.plane.home, self.rows, self.reader)
        self.memory: dict[str, Series] = defaultdict(Series)
        self.resident: dict[str, float] = {}
        self.disk: dict[str, Series] = defaultdict(Series)
        self.early: list[float] = []
        self.late: list[float] = []
        self.deaths = self.updates = 0
        self.starved: dict[str, float] = {}
        self.cost: dict[str, float] = {}

    # --- the work -------------------------------------------------------------------------------------------------

    def run(self, seconds: float) -> None:
        """Deploy, work for so long, measure the latency at both ends."""
        self.plane.start()
        self.person.sign_in()
        self.reader.start()
        for name in self.names():
            self.person.apply(text(name, 0), name)
        self.wait_ready(300)
        began = time.monotonic()
        self.early = self.time_deaths("early")
        for number in itertools.count(1):
            passed = time.monotonic() - began
            if passed > seconds:
                break
            self.work(number)
            if number % round(SAMPLE_SECONDS / ACT_SECONDS) == 0:
                self.sample(time.monotonic() - began)
            time.sleep(max(0.0, ACT_SECONDS - (time.monotonic() - began - passed)))
        self.wait_ready(120)
        self.late = self.time_deaths("late")

    def time_deaths(self, when: str) -> list[float]:
        """Seconds that some deaths take to be told, divided by how much longer than its work the machine takes then.

        Also notes how much of a processor the controller took meanwhile, for each of them.
        """
        controller = self.plane.children()["controller"]
        before, found, starved = cpu_seconds(controller), [], []
        for number in range(CHANGES):
            took, factor = self.latency.of_a_death(number)
            found.append(took / factor)
            starved.append(factor)
        self.starved[when] = sum(starved) / len(starved)
        self.cost[when] = (cpu_seconds(controller) - before) / CHANGES
        return found

    def names(self) -> list[str]:
        """The services."""
        return [f"fake{number}" for number in range(FAKES)] + [f"local{number}" for number in range(LOCALS)]

    def work(self, number: int) -> None:
        """One death, of a process now and then; with every tenth an update."""
        name = self.chance.choice(self.names()[FAKES:] if number % 5 == 0 else self.names()[:FAKES])
        self.deaths += self.latency.kill(name, self.chance.random())
        if number % 10 == 0:
            name = self.chance.choice(self.names())
            self.person.apply(text(name, number), name, known=True)
            self.updates += 1

    def wait_ready(self, seconds: float) -> None:
        """Until all are ready, or nearly: somebody dies at any moment. Raises AssertionError."""
        wanted = FAKES * FAKE_REPLICAS + LOCALS * LOCAL_REPLICAS
        deadline = time.monotonic() + seconds
        while (ready := self.count("READY")) < wanted:
            assert time.monotonic() < deadline, f"{ready} of {wanted} ready\n{self.plane.tail()}"
            time.sleep(0.5)

    def count(self, *states: str) -> int:
        """Replicas in these states."""
        marks = ", ".join("?" * len(states))
        return int(
            self.rows.query(f"SELECT COUNT(*) AS n FROM replicas_replica WHERE state IN ({marks})", *states)[0]["n"]
        )

    # --- measuring ------------------------------------------------------------------------------------------------

    def sample(self, at: float) -> None:
        """Sizes of everything now."""
        memory, self.resident = sizes(self.plane)
        for part, megabytes in memory.items():
            self.memory[part].add(at, megabytes)
        home = self.plane.home
        self.disk["database"].add(at, trees.size(home / "db") / 1e6)
        self.disk["logs of operations"].add(at, trees.size(home / "logs") / 1e6)
        self.disk["replicas' directories"].add(at, trees.size(home / "replicas") / 1e6)
        self.disk["events"].add(at, self.rows.query("SELECT COUNT(*) AS n FROM replicas_event")[0]["n"] / 1000)

    def faults(self) -> list[str]:
        """What is out of bounds."""
        wrong = []
        for kind, series, part, least in (
            ("memory", self.memory, MEMORY_GROWTH, MEMORY_MB), ("disk", self.disk, DISK_GROWTH, DISK_MB),
        ):  # fmt: skip
            for name, each in series.items():
                bound = max(least, part * median(each.warm()[1]))
                if each.growth() > bound:
                    wrong.append(f"{kind} of {name} grew by {each.growth():.1f} MB, {bound:.1f} are allowed")
        allowed = max(LATENCY_RATIO * median(self.early), median(self.early) + LATENCY_SECONDS)
        if median(self.late) > allowed:
            wrong.append(f"a change takes {median(self.late):.3f} s in the end, {allowed:.3f} s are allowed")
        return wrong + self.reader.resets

    def table(self, seconds: float) -> str:
        """What was measured."""
        lines = [
            f"{FAKES + LOCALS} services, {self.count(*LIVE)} replicas, {seconds:.0f} s of work: {self.deaths} deaths,"
            f" {self.updates} updates, {len(self.reader.events)} events",
            "",
            "| what | warm | end | growth | unit |",
            "|---|---|---|---|---|",
        ]
        for name, each in [*sorted(self.memory.items()), *self.disk.items()]:
            warm = each.warm()[1]
            resident = f" (RSS {self.resident[name]:.0f})" if name in self.resident else ""
            unit = "thousand" if name == "events" else "MB PSS" + resident if name in self.memory else "MB"
            lines.append(f"| {name} | {warm[0]:.1f} | {warm[-1]:.1f} | {each.growth():+.2f} | {unit} |")
        for name, values in (("at the beginning", self.early), ("in the end", self.late)):
            p95 = quantiles(values, n=20)[-1]
            lines.append(f"| death to websocket, {name} | {median(values) * 1000:.0f} | p95 {p95 * 1000:.0f} | | ms |")
        for when, seconds_ in self.cost.items():
            starved = f"waited {self.starved[when]:.1f} times as long as it worked"
            lines.append(f"| controller for each, {when} | {seconds_ * 1000:.0f} | | | ms CPU; the machine {starved} |")
        return "\n".join(lines)

    def close(self) -> None:
        """End everything, replicas too."""
        self.reader.stop()
        self.plane.close()


def text(name: str, change: int) -> str:
    """The YAML of a service; another `change` is another version."""
    fake = name.startswith("fake")
    return "\n".join(
        [
            f"name: {name}",
            f'envs: {{CHANGE: "{change}", LINES: "20"}}',
            *(["provider: fake"] if fake else []),
            *(["fake: {launch_seconds: 0.2}"] if fake else [f"run: exec python3 -I {SERVER}"]),
            "service:",
            f"  replicas: {FAKE_REPLICAS if fake else LOCAL_REPLICAS}",
            "  drain_seconds: 1",
            "  readiness_probe: {path: /, endpoint_probe_interval_seconds: 2}",
            "  restart: {backoff_seconds: 0.2, max_backoff_seconds: 1, max_never_ready: 1000}",
            "  rollout: {max_surge: 25%, min_ready_seconds: 0.5, max_failures: 1000}",
        ]
    )


def sizes(plane: ControlPlane) -> tuple[dict[str, float], dict[str, float]]:
    """MB of each part of the control plane, all its processes together: PSS and RSS."""
    assert plane.process
    leaders = {pid: name for name, pid in plane.children().items()}
    pss: dict[str, float] = dict.fromkeys(PARTS, 0.0)
    rss: dict[str, float] = dict.fromkeys(PARTS, 0.0)
    for pid in plane.everything():
        carried, stat = processes.environment(pid), processes.stat(pid)
        part = leaders.get(int(stat[3]) if stat else 0, "supervisor" if pid == plane.process.pid else "")
        part = "shims" if "ROLLCALL_SHIM_UID" in carried else part
        if part and "ROLLCALL_REPLICA_UID" not in carried:
            proportional, resident = memory(pid)
            pss[part] += proportional
            rss[part] += resident
    return pss, rss


def memory(pid: int) -> tuple[float, float]:
    """(PSS, RSS) of a process in MB; nothing of one that has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0, 0.0
    found = {line.split(":")[0]: int(line.split()[1]) / 1024 for line in lines[1:]}
    return found.get("Pss", 0.0), found.get("Rss", 0.0)


def cpu_seconds(pid: int) -> float:
    """What a process has taken of processors."""
    stat = processes.stat(pid)
    return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK") if stat else 0.0


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what was started is ended as with Ctrl-C
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.soak", description=__doc__)
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    soak = Soak(given.seed)
    try:
        print(f"soak with seed {given.seed}, {given.hours:g} h", flush=True)
        soak.run(given.hours * 3600)
        print(soak.table(given.hours * 3600))
        faults = soak.faults()
    except AssertionError:
        faults = [traceback.format_exc()]
    finally:
        soak.close()
    print("\n".join(["", "OUT OF BOUNDS", *faults]) if faults else "\nall within bounds")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
