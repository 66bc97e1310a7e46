"""Runs the benchmarks (benchmarks/bench_*.py), prints their figures, and fails when one is out of its bound.

    python -m benchmarks.run [--only WORD] [--json FILE] [--list]

Each runs in a process of its own, one after the other, so that none pays for the memory or the threads of another.
"""

import argparse
import importlib
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.rows import Row

HERE = Path(__file__).parent
ROOT = HERE.parent
LONGEST = 1800  # seconds that one benchmark may take
OUTPUT = "rows: "  # begins the line on which a benchmark's process hands over its rows


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if all figures are within their bounds, 1 if one is not or a benchmark failed, 2 if none fits --only."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--only", default="", help="run the benchmark of this name, or those that have the word in theirs"
    )
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        return child(options.child)
    names = wanted(options.only)
    if not names:
        print(f"no benchmark has {options.only!r} in its name; there are: {', '.join(discovered())}", file=sys.stderr)
        return 2
    if options.list:
        print("\n".join(names))
        return 0
    return report(names, options.json)


def discovered() -> list[str]:
    """The names of the benchmarks: probe for bench_probe.py."""
    return sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))


def wanted(word: str) -> list[str]:
    """The benchmark of that very name, or else those that have the word in theirs: `scale` is no `autoscaler`."""
    return [name for name in discovered() if name == word] or [name for name in discovered() if word in name]


def report(names: Sequence[str], file: Path | None) -> int:
    """Run them in turn, print each one's figures as soon as it is done, and return the exit code."""
    figures: dict[str, Any] = {}
    broken: list[str] = []
    for name in names:
        began = time.monotonic()
        rows = measured(name)
        print(f"\n{name} ({time.monotonic() - began:.0f} s)", flush=True)
        if rows is None:
            print("  FAILED: see its output above")
            broken.append(name)
            continue
        print(table(rows), flush=True)
        figures[name] = [row.to_json() for row in rows]
        broken += [f"{name}: {row.name}" for row in rows if not row.ok]
    if file:
        file.write_text(json.dumps(figures, indent=2) + "\n")
    if broken:
        print("\nout of bounds or failed:", *broken, sep="\n  ")
    return 1 if broken else 0


def measured(name: str) -> list[Row] | None:
    """The rows of a benchmark that ran in a process of its own; None if it failed. Its other output is passed on."""
    command = [sys.executable, "-m", "benchmarks.run", "--child", name]
    try:
        ran = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=LONGEST, check=False)
    except subprocess.TimeoutExpired:
        print(f"{name} took longer than {LONGEST} s", file=sys.stderr)
        return None
    rows = None
    for line in ran.stdout.splitlines():
        if line.startswith(OUTPUT):
            rows = [Row(**row) for row in json.loads(line.removeprefix(OUTPUT))]
        else:
            print(line)
    return rows if ran.returncode == 0 else None


def child(name: str) -> int:
    """Run one benchmark here and hand its rows over."""
    rows: list[Row] = importlib.import_module(f"benchmarks.bench_{name}").run()
    print(OUTPUT + json.dumps([row.to_json() for row in rows]))
    return 0


HEADINGS = ("figure", "measured", "against", "ratio", "bound", "")


def table(rows: Sequence[Row]) -> str:
    """The rows in columns."""
    lines = [HEADINGS, *(cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    return "\n".join("  " + _line(line, widths).rstrip() for line in lines)


def _line(line: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = (
        cell.ljust(w) if n == 0 else cell.rjust(w) for n, (cell, w) in enumerate(zip(line, widths, strict=True))
    )
    return "  ".join([first, *rest])


def cells(row: Row) -> tuple[str, ...]:
    """A row as it is printed."""
    unit = f" {row.unit}" if row.unit else ""
    bound = "" if row.bound is None else f"<= {row.bound:g}{'x' if row.ratio is not None else unit}"
    return (
        row.name,
        f"{row.measured:.3g}{unit}",
        "" if row.against is None else f"{row.against:.3g}{unit}",
        "" if row.ratio is None else f"{row.ratio:.3f}x",
        bound,
        "" if row.bound is None else "ok" if row.ok else "BROKEN",
    )


if __name__ == "__main__":
    sys.exit(main())
