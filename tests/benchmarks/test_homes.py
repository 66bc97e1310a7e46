"""What benchmarks of a whole control plane stand on: the plain script, and what processes have taken."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.bench_idle import proportional_bytes
from benchmarks.homes import SERVER, Plane, spent
from benchmarks.plain_launch import answers, free_ports
from replicas.core.spec import parse

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "plain_launch.py"


def test_the_plain_script_says_when_all_answer_and_leaves_nothing():
    command = [sys.executable, str(SCRIPT), "2", *SERVER]
    marked = os.environ | {"MARK": f"plain-{os.getpid()}"}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, env=marked)
    ready, cpu = ran.stdout.split()
    assert ready == "ready"
    assert float(cpu) > 0
    environments = [path for path in Path("/proc").glob("[0-9]*/environ") if carries(path, marked["MARK"])]
    assert not environments


def carries(path: Path, mark: str) -> bool:
    try:
        return f"MARK={mark}".encode() in path.read_bytes()
    except OSError:
        return False


def test_ports_are_different_and_nobody_answers_there():
    ports = free_ports(5)
    assert len(set(ports)) == 5
    assert not answers(ports[0])


def test_what_this_process_has_spent():
    before = sum(spent(os.getpid()))
    until = time.process_time() + 0.1
    while time.process_time() < until:
        pass
    assert sum(spent(os.getpid())) - before == pytest.approx(0.1, abs=0.08)


def test_nothing_is_spent_by_nobody():
    assert spent(2**22 + 1) == (0.0, 0.0)


def test_memory_of_this_process_is_in_bytes():
    assert 10e6 < proportional_bytes(os.getpid()) < 2e9


def test_the_service_of_trivial_servers_is_a_right_one():
    plane = Plane()
    try:
        text = plane.service_file("web", 3, "  restart: {backoff_seconds: 0}\n").read_text()
    finally:
        plane.close()
    spec = parse(text).spec
    assert (spec.target, spec.service.restart.backoff_seconds) == (3, 0)
