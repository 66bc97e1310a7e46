"""The script of docs/api.md, as it stands there, deploys from elsewhere and learns how that went."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.controlplane import ControlPlane
from tests.support.polling import eventually
from tests.support.receiver import Receiver

pytestmark = [pytest.mark.acceptance, pytest.mark.needs("jq"), pytest.mark.needs("curl")]
DOCS = Path(__file__).parents[2] / "docs" / "api.md"
MAKE = """
from django.contrib.auth.models import User
from replicas.actions import tokens
from replicas.core.values import Scope
print("TOKEN", tokens.make(User.objects.get(username="ci"), "CI", Scope.DEPLOY)[1])
"""
TEXT = """\
name: shop
run: {run}
service:
  readiness_probe: /
  replicas: 2
  rollout: {{min_ready_seconds: 0.2, max_failures: 1}}
  restart: {{backoff_seconds: 0.2, max_backoff_seconds: 1, max_never_ready: 1}}
"""
GOOD = 'exec python3 -m http.server "$PORT" --bind 127.0.0.1'


def script() -> str:
    """The first block of shell in the document."""
    found = re.search(r"```sh\n(.+?)```", DOCS.read_text(), re.DOTALL)
    assert found is not None
    return found[1]


def deploy(plane: ControlPlane, folder: Path, token: str, run: str) -> subprocess.CompletedProcess[str]:
    """What a job of CI does, in a directory of its own."""
    (folder / "service.yaml").write_text(TEXT.format(run=run))
    given = {"ROLLCALL_URL": plane.url, "ROLLCALL_TOKEN": token, "GIT_COMMIT": "1a2b3c"}
    return subprocess.run(
        ["sh", "-c", script()],
        cwd=folder,
        env={"PATH": os.environ["PATH"], **given},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def occasions(receiver: Receiver) -> set[tuple[str, str]]:
    """Of which services what was told."""
    return {(item["service"], item["occasion"]) for payload in receiver.payloads for item in payload["items"]}


def test_another_projects_ci_deploys_and_learns_how_it_went(control_plane: ControlPlane, tmp_path: Path) -> None:
    plane = control_plane
    plane.manage("role", "ci", "operator", "--create")
    token = plane.manage("shell", "-c", MAKE).stdout.split("TOKEN ")[1].split()[0]
    receiver = Receiver()
    plane.manage("notices", "add", "on-call", told=f"{receiver.url}\n")
    try:
        done = deploy(plane, tmp_path, token, GOOD)
        assert done.returncode == 0, done.stdout + done.stderr
        (row,) = json.loads(plane.manage("status", "shop", "--json").stdout)
        assert [replica["state"] for replica in row["replicas"]] == ["READY", "READY"]
        assert "commit 1a2b3c" in plane.manage("versions", "shop").stdout
        again = deploy(plane, tmp_path, token, GOOD)
        assert again.returncode == 0, again.stderr
        bad = deploy(plane, tmp_path, token, "exit 7")
        assert bad.returncode == 1, bad.stdout
        assert "was replaced by 3" in bad.stderr or "7" in bad.stderr
        wrong = deploy(plane, tmp_path, token, "[not, a, text]")
        assert wrong.returncode == 1
        assert '"line": 2' in wrong.stderr
        assert deploy(plane, tmp_path, "rollcall_nothing", GOOD).returncode == 1
        (row,) = json.loads(plane.manage("status", "shop", "--json").stdout)
        assert row["ready"] == 2
        eventually(lambda: ("shop", "rollout") in occasions(receiver), 60, plane.tail)
        events = plane.manage("events", "shop", "--json").stdout.splitlines()
        assert {json.loads(line)["source"] for line in events} == {"api", ""}
    finally:
        plane.manage("down", "shop", "--wait", check=False)
        plane.manage("notices", "remove", "on-call", check=False)
        receiver.close()
