"""What 100, 1,000 and 10,000 replicas of the provider `fake` cost: CPU, queries, memory, and whether that is linear.

Each size runs in a process of its own (benchmarks/scale_size.py). A figure's ratio is its CPU for each replica to that
at a tenth of the size: 1 is linear, less is better. What does not depend on the number of replicas is not divided.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.rows import Row, compared, limited

SIZES = (100, 1000, 10_000)
MOST = 1.3  # of the cost for each replica at a tenth of the size: linear, with some room for noise
TIMED = "tick at rest with all that is due by time"
BY_REPLICA = ("tick at rest", TIMED, "probe sweep")
ALONE = ("apply", "launch step", "tick after 20 ends", "event to socket", "services page", "service page")
COLUMNS = ("figure", *(f"{size:,}" for size in SIZES))
SAME_QUERIES = ("tick at rest", TIMED, "probe sweep", "event to socket", "services page", "service page")


def run() -> list[Row]:
    """A table of all figures, and the ratios with their bounds."""
    found = [measured(size) for size in SIZES]
    print(table(found))
    rows = []
    for few, many, size in zip(found, found[1:], SIZES[1:], strict=False):
        rows += [by_replica(name, few[name]["cpu"], many[name]["cpu"], size) for name in BY_REPLICA]
        rows += [
            limited(
                f"{name} over {size:,}: queries more than over {size // 10:,}",
                many[name]["queries"] - few[name]["queries"],
                most=0,
                unit="",
            )
            for name in SAME_QUERIES
        ]
    return rows


def measured(size: int) -> dict[str, dict[str, float]]:
    """The figures at one size."""
    command = [sys.executable, "-m", "benchmarks.scale_size", str(size)]
    ran = subprocess.run(command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, dict[str, float]] = json.loads(ran.stdout.splitlines()[-1])
    return found


def by_replica(name: str, few: float, many: float, size: int) -> Row:
    """CPU for each replica, in microseconds, at a size and at a tenth of it."""
    micros = 1e6 * many / size, 1e6 * few / (size // 10)
    return compared(f"{name} over {size:,}: CPU for each", *micros, most=MOST, unit="us")


def table(found: Sequence[dict[str, dict[str, float]]]) -> str:
    """Cost against size: CPU milliseconds, queries, and of pages kilobytes."""
    lines = [COLUMNS, *((name, *(cell(each[name]) for each in found)) for name in (*BY_REPLICA, *ALONE, "peak"))]
    widths = [max(len(line[n]) for line in lines) for n in range(len(COLUMNS))]
    return "\n".join("  " + "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)) for line in lines)


def cell(cost: dict[str, Any]) -> str:
    """One cost in few words."""
    if "megabytes" in cost:
        return f"{cost['megabytes']:.0f} MB"
    size = f", {cost['bytes'] / 1000:,.0f} KB" if "bytes" in cost else ""
    return f"{1000 * cost['cpu']:,.0f} ms, {cost['queries']:,.0f} q{size}"
