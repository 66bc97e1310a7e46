"""The harness of the benchmarks: what it runs, what it prints, and when it fails."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.rows import alternating, compared, limited, percentile
from benchmarks.run import ROOT, table

GOOD = """
from benchmarks.rows import compared, limited
def run():
    print("warming up")
    return [compared("ratio", 1.0, 8.0, most=0.25, unit="s"), limited("told", 5.0, most=None, unit="MB")]
"""
BROKEN = """
from benchmarks.rows import limited
def run():
    return [limited("too slow", 2.0, most=1.0, unit="s"), limited("fast", 0.5, most=1.0, unit="s")]
"""
FAILING = "def run():\n    raise SystemExit('no database')\n"


@pytest.fixture
def bench(tmp_path: Path):
    """The harness in a tree of its own, with the benchmarks that a test gives it."""
    package = tmp_path / "benchmarks"
    package.mkdir()
    for name in ("__init__.py", "run.py", "rows.py"):
        shutil.copy(ROOT / "benchmarks" / name, package)

    def run(*arguments: str, **modules: str) -> subprocess.CompletedProcess[str]:
        for name, code in modules.items():
            (package / f"bench_{name}.py").write_text(code)
        command = [sys.executable, "-m", "benchmarks.run", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)

    return run


def test_all_within_bounds(bench):
    ran = bench(good=GOOD)
    assert ran.returncode == 0
    assert "warming up" in ran.stdout
    lines = [line.split() for line in ran.stdout.splitlines()]
    assert ["ratio", "1", "s", "8", "s", "0.125x", "<=", "0.25x", "ok"] in lines
    assert ["told", "5", "MB"] in lines


def test_one_out_of_bounds(bench):
    ran = bench(good=GOOD, broken=BROKEN)
    assert ran.returncode == 1
    assert ran.stdout.endswith("out of bounds or failed:\n  broken: too slow\n")


def test_one_that_fails_does_not_stop_the_others(bench):
    ran = bench(failing=FAILING, good=GOOD)
    assert ran.returncode == 1
    assert "no database" in ran.stderr
    assert "0.125x" in ran.stdout
    assert ran.stdout.endswith("out of bounds or failed:\n  failing\n")


def test_only_those_with_the_word(bench):
    ran = bench("--only", "goo", good=GOOD, broken=BROKEN)
    assert ran.returncode == 0
    assert "broken" not in ran.stdout
    named = bench("--only", "goo", goo=GOOD)  # a name that others have in theirs means itself
    assert [line.split()[0] for line in named.stdout.splitlines() if " s)" in line] == ["goo"]


def test_a_word_that_fits_none_is_told_what_there_is(bench):
    ran = bench("--only", "probing", good=GOOD, broken=BROKEN)
    assert ran.returncode == 2
    assert ran.stderr == "no benchmark has 'probing' in its name; there are: broken, good\n"


def test_figures_go_to_a_file(bench, tmp_path: Path):
    file = tmp_path / "figures.json"
    assert bench("--json", str(file), good=GOOD).returncode == 0
    first = json.loads(file.read_text())["good"][0]
    assert first == {
        "name": "ratio",
        "measured": 1.0,
        "against": 8.0,
        "ratio": 0.125,
        "bound": 0.25,
        "unit": "s",
        "ok": True,
    }


def test_bounds_count_as_met_when_they_are_reached():
    assert compared("x", 1, 4, most=0.25, unit="s").ok
    assert not compared("x", 1.01, 4, most=0.25, unit="s").ok
    assert limited("x", 1, most=1, unit="s").ok
    assert not limited("x", 1.01, most=1, unit="s").ok
    assert limited("x", 1e9, most=None, unit="s").ok


def test_a_broken_bound_is_seen_in_the_table():
    assert table([limited("slow", 2, most=1, unit="s")]).splitlines()[1].split() == [
        "slow",
        "2",
        "s",
        "<=",
        "1",
        "s",
        "BROKEN",
    ]


@pytest.mark.parametrize(("share", "value"), [(0.0, 1), (0.5, 50), (0.99, 99), (1.0, 100)])
def test_percentile(share: float, value: int):
    assert percentile(list(range(100, 0, -1)), share) == value


def test_percentile_of_one_value():
    assert percentile([7.0], 0.99) == 7.0


def test_alternating_takes_turns_and_forgets_the_first():
    calls = []
    values = {"a": iter([100, 1, 3, 2]), "b": iter([100, 10, 30, 20])}

    def work(name: str) -> float:
        calls.append(name)
        return next(values[name])

    assert alternating(3, lambda: work("a"), lambda: work("b")) == [2, 20]
    assert calls == ["a", "b"] * 4
