"""What the control plane takes while ten replicas are READY and nothing happens: memory and CPU, of all processes."""

import time
from collections import Counter
from pathlib import Path

from benchmarks.homes import Plane, control_plane, spent
from benchmarks.rows import Row, limited
from controlplane import processes

REPLICAS = 10
SETTLE_SECONDS = 5.0
WINDOW_SECONDS = 30.0
MOST_MEGABYTES = 350.0
MOST_SHARE = 5.0  # per cent of one core


def run() -> list[Row]:
    with control_plane() as plane:
        plane.manage("apply", str(plane.service_file("idle", REPLICAS)))
        plane.wait(lambda: plane.count("READY") == REPLICAS)
        time.sleep(SETTLE_SECONDS)
        before, began = cpu_seconds(plane), time.monotonic()
        time.sleep(WINDOW_SECONDS)
        after, took = cpu_seconds(plane), time.monotonic() - began
        memory = megabytes(plane)
    share = {name: 100 * (after[name] - before[name]) / took for name in after}
    return [
        limited("memory (PSS) of all processes", sum(memory.values()), most=MOST_MEGABYTES, unit="MB"),
        *(limited(f"- of it {name}", memory[name], most=None, unit="MB") for name in sorted(memory)),
        limited("CPU of all processes", sum(share.values()), most=MOST_SHARE, unit="% of a core"),
        *(limited(f"- of it {name}", share[name], most=None, unit="% of a core") for name in sorted(share)),
    ]


def part(pid: int) -> str:
    """Which part of the control plane a process belongs to."""
    carried = processes.environment(pid)
    return carried.get("Q_CLUSTER_NAME") or carried.get("ROLLCALL_PROCESS") or "supervisor"


def cpu_seconds(plane: Plane) -> Counter[str]:
    """CPU seconds so far, by part; processes that have ended are counted with who waited for them."""
    found: Counter[str] = Counter()
    for pid in plane.control_plane():
        found[part(pid)] += sum(spent(pid))
    return found


def megabytes(plane: Plane) -> Counter[str]:
    """Memory by part; what processes share is divided among them (PSS)."""
    found: Counter[str] = Counter()
    for pid in plane.control_plane():
        found[part(pid)] += proportional_bytes(pid) / 1e6
    return found


def proportional_bytes(pid: int) -> int:
    """The proportional set size of a process."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return next(1024 * int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
