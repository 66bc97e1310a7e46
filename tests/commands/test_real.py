"""The commands against a running control plane: the way that the documentation describes, once, from apply to prune."""

import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.support.controlplane import BASE, ControlPlane

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(900)]

SERVICE = """\
name: web
setup: echo this is said by setup
run: |
  echo "replica $SKYPILOT_SERVE_REPLICA_ID listens on $PORT"
  exec python3 -m http.server "$PORT" --bind 127.0.0.1
service:
  readiness_probe:
    path: /
    endpoint_probe_interval_seconds: 1
    initial_delay_seconds: 60
  replicas: 2
"""
BROKEN = """\
name: broken
run: |
  echo these are its last words
  exit 7
service:
  readiness_probe: /
  restart:
    max_never_ready: 1
"""


def status(plane: ControlPlane, *arguments: str) -> Any:
    return json.loads(plane.manage("status", "--json", *arguments).stdout)


def test_a_service_from_apply_to_prune(control_plane: ControlPlane, tmp_path: Path) -> None:
    plane = control_plane
    file = tmp_path / "web.yaml"
    file.write_text(SERVICE)

    applied = plane.manage("apply", str(file), "--wait", "--timeout", "120", timeout=150)
    assert applied.stderr == ""
    assert "web version 1 is ready: 2 of 2 replicas" in applied.stdout.splitlines()[-1]
    (row,) = status(plane)
    assert (row["ready"], row["target"], row["version"]) == (2, 2, 1)
    assert {replica["state"] for replica in row["replicas"]} == {"READY"}
    for replica in row["replicas"]:
        with urllib.request.urlopen(replica["url"], timeout=10) as answer:
            assert answer.status == 200

    for number in ("1", "2"):
        said = plane.manage("logs", "web", number).stdout
        assert said.startswith(f"replica {number} listens on ")
        assert "this is said by setup" in plane.manage("logs", "web", number, "--launch").stdout

    following = subprocess.Popen(
        [sys.executable, str(BASE / "manage.py"), "logs", "web", "2", "--follow"],
        env=plane.environment,
        stdout=subprocess.PIPE,
    )
    plane.manage("scale", "web", "1")
    assert following.wait(60) == 0, "it ends when the replica has ended"
    assert following.stdout is not None
    with following.stdout:
        assert following.stdout.read().startswith(b"replica 2 listens on ")

    plane.manage("terminate", "web", "1")
    file.write_text(SERVICE.replace("replicas: 2", "replicas: 1"))
    waited = plane.manage("apply", str(file), "--wait", "--timeout", "120", timeout=150)
    assert "In place: 1 replica is adopted by version 2" in waited.stdout
    (row,) = status(plane, "web")
    assert row["version"] == 2
    assert [replica["state"] for replica in row["replicas"] if replica["number"] > 2] == ["READY"]

    down = plane.manage("down", "web", "--wait", "--timeout", "60", timeout=90)
    assert down.stdout.endswith("Nothing of it is left.\n")
    assert plane.replicas() == {}
    assert status(plane) == []
    assert plane.manage("prune", "--days", "0").stdout.startswith("Removed ")
    assert list((plane.home / "replicas").iterdir()) == []
    assert list((plane.home / "versions").iterdir()) == []
    assert list((plane.home / "logs" / "operations").iterdir()) == []
    plane.manage("down", "--all", "--purge", "--wait", "--timeout", "60", timeout=90)
    assert status(plane, "--all") == []


def test_a_service_that_cannot_work_fails_with_what_it_said(control_plane: ControlPlane, tmp_path: Path) -> None:
    plane = control_plane
    file = tmp_path / "broken.yaml"
    file.write_text(BROKEN)
    applied = plane.manage("apply", str(file), "--wait", "--timeout", "120", check=False, timeout=150)
    assert applied.returncode == 1
    assert "broken version 1 has failed" in applied.stderr
    assert "exited with code 7" in applied.stderr
    assert "  | these are its last words" in applied.stderr
    (row,) = status(plane)
    assert (row["status"], row["ready"]) == ("FAILED", 0)
    assert [(replica["state"], replica["outcome"]) for replica in row["replicas"]] == [("FAILED", "FAILED")]
    plane.manage("down", "--all", "--wait", "--timeout", "60", timeout=90)


def test_a_real_model_answers_a_real_file(control_plane: ControlPlane) -> None:
    plane = control_plane
    plane.manage("apply", "examples/magika.yaml", "--wait", "--timeout", "600", timeout=650)
    (row,) = status(plane)
    assert row["ready"] == 2
    for replica in row["replicas"]:
        request = urllib.request.Request(replica["url"], data=Path(__file__).read_bytes())
        with urllib.request.urlopen(request, timeout=60) as answer:
            said = json.load(answer)
        assert (said["label"], said["replica"]) == ("python", str(replica["number"]))
        assert "Successfully installed" in plane.manage("logs", "magika", str(replica["number"]), "--launch").stdout
    plane.manage("down", "magika", "--purge", "--wait", "--timeout", "60", timeout=90)
