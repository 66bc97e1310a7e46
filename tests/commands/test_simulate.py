"""`simulate`: a load replayed through the autoscaler of a YAML."""

import json
from pathlib import Path

import pytest

from tests.commands.conftest import Run

SPEC = """
name: sim
run: python3 server.py
service:
  readiness_probe: /
  replica_policy: {min_replicas: 0, max_replicas: 10, target_qps_per_replica: 2}
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "service.yaml"
    path.write_text(SPEC)
    return path


def trace(tmp_path: Path, text: str) -> str:
    path = tmp_path / "trace.csv"
    path.write_text(text)
    return str(path)


def test_steps_are_replayed(run: Run, spec: Path, tmp_path: Path) -> None:
    done = run("simulate", str(spec), "--trace", trace(tmp_path, "0,0\n60,10  # a burst\n600,0\n2400,0\n"))
    assert "0:01:00  from 0 to 2 replicas: requests came while there was none" in done.out
    assert "2400 s, 5400 requests" in done.out
    assert "held, refused       310, 0" in done.out


def test_a_relative_workdir_is_taken_from_the_directory_of_the_text(run: Run, spec: Path, tmp_path: Path) -> None:
    spec.write_text(SPEC + "workdir: examples/http\n")
    done = run("simulate", str(spec), "--trace", trace(tmp_path, "1\n" * 5))
    assert (done.code, done.err) == (0, "")


def test_the_figures_come_as_json(run: Run, spec: Path, tmp_path: Path) -> None:
    done = run("simulate", str(spec), "--trace", trace(tmp_path, "1\n" * 120), "--launch-seconds", "5", "--json")
    figures = json.loads(done.out)
    assert (figures["seconds"], figures["requests"], figures["most_replicas"]) == (120, 120, 1)
    assert figures["decisions"] == [
        {"second": 0, "target": 1, "reason": "from 0 to 1 replica: requests came while there was none"}
    ]
    assert figures["replica_hours"] == pytest.approx(120 / 3600, abs=0.001)


def test_requests_wait_for_the_first_replica_and_are_refused_after_too_long(
    run: Run, spec: Path, tmp_path: Path
) -> None:
    options = ("--launch-seconds", "30", "--hold-seconds", "10", "--json")
    figures = json.loads(run("simulate", str(spec), "--trace", trace(tmp_path, "1\n" * 60), *options).out)
    assert (figures["held"], figures["refused"]) == (31, 20)
    spec.write_text(SPEC + "  load_balancer: {hold_seconds: 20}\n")
    figures = json.loads(run("simulate", str(spec), "--trace", trace(tmp_path, "1\n" * 60), "--json").out)
    assert (figures["held"], figures["refused"]) == (31, 10)
    spec.write_text(SPEC + "  load_balancer: {hold_seconds: 0}\n")
    figures = json.loads(run("simulate", str(spec), "--trace", trace(tmp_path, "1\n" * 60), "--json").out)
    assert (figures["held"], figures["refused"], figures["most_replicas"]) == (0, 31, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\nmany\n", "line 2: 'many' is no number from 0 up"),
        ("-1\n", "line 1: '-1' is no number from 0 up"),
        ("nan\n", "line 1: 'nan' is no number from 0 up"),
        ("1\n2,3\n", "line 2: has 2 numbers, line 1 has 1"),
        ("0,1\n5,1\n5,2\n", "line 3: second 5 comes after 5"),
        ("# nothing\n", "has no numbers in it"),
        ("0,1\n9999999999,1\n", "line 2: '9999999999,1' is no number"),
        ("0,1\n99999999,1\n", "is longer than 1209600 seconds"),
    ],
)
def test_a_trace_that_is_none_is_named_with_its_line(
    run: Run, spec: Path, tmp_path: Path, text: str, message: str
) -> None:
    done = run("simulate", str(spec), "--trace", trace(tmp_path, text))
    assert done.code == 1
    assert message in done.err


def test_a_fixed_number_cannot_be_simulated(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "fixed.yaml"
    path.write_text("name: web\nrun: exec server\nservice: {readiness_probe: /, replicas: 2}\n")
    done = run("simulate", str(path), "--trace", trace(tmp_path, "1\n"))
    assert done.code == 1
    assert "has no replica_policy, so its number of replicas is fixed" in done.err


def test_a_file_that_is_not_there_is_named(run: Run, spec: Path) -> None:
    done = run("simulate", str(spec), "--trace", "/nowhere")
    assert done.code == 1
    assert "/nowhere cannot be read" in done.err
