"""`manage.py up` and `stop` as a person meets them, with every part for real."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.parse
from collections.abc import Callable, Iterator

import pytest

from controlplane import occupancy, processes
from tests.support import trees
from tests.support.controlplane import BASE, PASSWORD, ControlPlane
from tests.support.patience import within
from tests.support.polling import eventually

pytestmark = pytest.mark.acceptance

SERVICE = """
name: steady
run: exec python3 -m http.server --bind 127.0.0.1 $PORT
service:
  readiness_probe: {path: /, initial_delay_seconds: 30, endpoint_probe_interval_seconds: 1, timeout_seconds: 5}
  replicas: 2
"""
PARTS = {"web", "gateway", "long", "short", "controller"}
Maker = Callable[..., ControlPlane]


def apply_steady(plane: ControlPlane) -> dict[str, list[int]]:
    """Two replicas, ready; the processes of each."""
    spec = plane.home / "steady.yaml"
    spec.write_text(SERVICE)
    plane.manage("apply", str(spec), "--wait", "--timeout", "90", timeout=120)
    found = plane.replicas()
    assert len(found) == 2
    return found


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """One control plane for the tests that leave it whole."""
    shared = ControlPlane()
    try:
        yield shared.start()
    finally:
        shared.close()


def all_children(plane: ControlPlane) -> dict[str, int]:
    """The pid of each child, once all are there; in the middle of an exec a process shows no environment."""
    return eventually(lambda: found if set(found := plane.children()) == PARTS else None, 20, plane.tail)


def test_everything_comes_up_and_goes_down(new_control_plane: Maker) -> None:
    plane = new_control_plane()
    plane.start()
    assert set(plane.children()) == PARTS
    parts = plane.readyz()["parts"]
    assert {"database", "pool long", "pool short", "controller", "gateway", "feed"} == set(parts)
    assert all(part["ok"] for part in parts.values())
    assert plane.get("/healthz") == (200, b"ok\n")
    assert f"Rollcall: {plane.url}" in plane.output
    assert PASSWORD not in plane.output
    with within(10):
        assert plane.stop() == 0
    assert plane.everything() == []
    assert occupancy.occupant(plane.run) is None


def test_the_first_admin_logs_in_with_the_password_that_is_shown_once(new_control_plane: Maker) -> None:
    plane = new_control_plane(ROLLCALL_ADMIN_PASSWORD="", ROLLCALL_ADMIN_USER="ann")
    plane.start()
    shown = re.search(r"first user is made: ann, password (\S+) \(shown this once\)", plane.output)
    assert shown is not None
    assert log_in(plane.url, "ann", shown.group(1)) == 302
    assert log_in(plane.url, "ann", "wrong") == 200
    password = shown.group(1).encode()
    assert not [path for path, content in trees.contents(plane.home / "logs") if password in content]
    plane.stop()
    plane.start()
    assert plane.output.count("first user is made") == 1


def test_a_second_one_on_the_same_home_says_which_and_what_to_do(plane: ControlPlane) -> None:
    assert plane.process is not None
    second = plane.manage("up", "--port=0", check=False)
    assert second.returncode == 1
    assert f"process {plane.process.pid}, {plane.url}" in second.stderr
    assert "manage.py stop" in second.stderr
    assert plane.readyz()["ready"]


def test_a_port_in_use_is_named_before_anything_is_touched(new_control_plane: Maker) -> None:
    plane = new_control_plane()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        tried = plane.manage("up", f"--port={port}", check=False)
    assert tried.returncode == 1
    assert f"Port {port} on 127.0.0.1 is in use" in tried.stderr
    assert "--port" in tried.stderr
    assert not list((plane.home / "db").iterdir())
    assert plane.everything() == []


def test_an_address_of_another_machine_is_refused(new_control_plane: Maker) -> None:
    tried = new_control_plane().manage("up", "--host=192.0.2.1", "--port=0", check=False)
    assert tried.returncode == 1
    assert "Cannot listen on 192.0.2.1" in tried.stderr


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("ROLLCALL_MAX_LAUNCHES", "many", "ROLLCALL_MAX_LAUNCHES='many' is not a whole number."),
        ("DATABASE_URL", "mysql://x", "DATABASE_URL"),
        ("ROLLCALL_HOME", "/proc/none", "The home /proc/none cannot be used"),
    ],
)
def test_a_wrong_setting_is_one_sentence_and_no_traceback(
    new_control_plane: Maker, name: str, value: str, says: str
) -> None:
    plane = new_control_plane(**{name: value})
    tried = plane.manage("up", "--port=0", check=False)
    assert tried.returncode == 1
    assert says in tried.stderr
    assert "Traceback" not in tried.stderr


def test_stop_from_elsewhere(new_control_plane: Maker) -> None:
    plane = new_control_plane()
    assert "No control plane runs" in plane.manage("stop").stdout
    plane.start()
    assert plane.process is not None
    said = plane.manage("stop").stdout
    assert f"(process {plane.process.pid}) has stopped" in said
    assert plane.process.wait(1) == 0


def test_secrets_are_private_and_stay(new_control_plane: Maker) -> None:
    plane = new_control_plane()
    plane.start()
    key = plane.home / "secret_key"
    before = key.read_text()
    assert key.stat().st_mode & 0o777 == 0o600
    assert plane.home.stat().st_mode & 0o777 == 0o700
    plane.stop()
    plane.start()
    assert key.read_text() == before


def test_the_admin_password_reaches_no_other_process(plane: ControlPlane) -> None:
    for pid in plane.control_plane():
        assert "ROLLCALL_ADMIN_PASSWORD" not in processes.environment(pid), pid


def test_a_killed_child_is_replaced_and_all_is_well_again(plane: ControlPlane) -> None:
    for name in ("web", "long", "short", "controller"):
        before = all_children(plane)
        family = processes.session_members(before[name])
        os.kill(before[name], signal.SIGKILL)
        eventually(lambda: plane.children().get(name, before[name]) != before[name], 10, plane.tail)  # noqa: B023
        eventually(lambda: not [pid for pid in family if processes.stat(pid)], 5)  # noqa: B023
        plane.wait_ready(45)
        assert f"{name} (process {before[name]}) was ended by SIGKILL" in plane.output
        after = all_children(plane)
        del before[name], after[name]
        assert after == before


def test_wedged_children_are_replaced(plane: ControlPlane) -> None:
    before = all_children(plane)
    for name in ("web", "long"):
        for pid in processes.session_members(before[name]):
            os.kill(pid, signal.SIGSTOP)
    for name in ("web", "long"):
        eventually(lambda: plane.children().get(name, before[name]) != before[name], 45, plane.tail)  # noqa: B023
        assert re.search(rf"{name} \(process {before[name]}\) (no sign of life|was held up)", plane.output)
    plane.wait_ready(45)
    os.kill(before["controller"], signal.SIGSTOP)
    eventually(lambda: plane.children().get("controller", before["controller"]) != before["controller"], 45, plane.tail)
    plane.wait_ready(45)
    assert re.search(rf"controller \(process {before['controller']}\) (no sign of life|was held up)", plane.output)


def test_a_pool_that_lost_an_idle_worker_works_again_within_half_a_minute(plane: ControlPlane) -> None:
    """An idle worker that is killed takes the lock of the queue with it: the pool hangs without a word."""
    leader = plane.children()["long"]
    workers = [pid for pid in processes.session_members(leader) if pid != leader]
    sentinel = next(pid for pid in workers if int(fields[1]) == leader) if (fields := processes.stat(workers[0])) else 0
    spec = plane.home / "steady.yaml"
    spec.write_text(SERVICE)
    for pid in workers:
        if pid != sentinel:
            os.kill(pid, signal.SIGKILL)
    with within(60):
        plane.manage("apply", str(spec), "--wait", "--timeout", "150", timeout=200)
    plane.manage("down", "--all", "--wait")


def test_web_keeps_its_address_while_it_is_replaced(plane: ControlPlane) -> None:
    """The socket is the supervisor's: a connection made in between waits and is answered."""
    before = plane.children()["web"]
    os.kill(before, signal.SIGKILL)
    status, _ = plane.get("/healthz", timeout=20)
    assert status == 200
    assert plane.children()["web"] != before


def test_kill_9_of_the_supervisor_leaves_replicas_and_nothing_else(new_control_plane: Maker) -> None:
    plane = new_control_plane()
    plane.start()
    before = apply_steady(plane)
    plane.kill()
    eventually(lambda: plane.control_plane() == [], 5, lambda: str(plane.control_plane()))
    assert plane.replicas() == before
    plane.start()
    assert plane.replicas() == before
    said = json.loads(plane.manage("status", "--json").stdout)
    assert said[0]["ready"] == 2
    plane.manage("down", "--all", "--wait")
    assert plane.replicas() == {}


def test_stop_says_what_goes_on_and_down_takes_it_away_without_a_control_plane(new_control_plane: Maker) -> None:
    plane = new_control_plane()
    plane.start()
    before = apply_steady(plane)
    plane.stop()
    assert "2 replicas go on running; the next start adopts them" in plane.output
    assert plane.replicas() == before
    assert plane.control_plane() == []
    said = plane.manage("stop", "--services", timeout=120).stdout
    assert "one is started to take the services down" in said
    assert plane.everything() == []
    assert "No control plane runs" in plane.manage("stop", "--services").stdout


def test_a_home_with_a_long_path_works(new_control_plane: Maker) -> None:
    plane = new_control_plane()
    deep = plane.home / ("d" * 100)
    plane.environment["ROLLCALL_HOME"] = str(deep)
    try:
        process = subprocess.Popen(
            [sys.executable, str(BASE / "manage.py"), "up", "--port=0"],
            env=plane.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert process.stdout is not None
        for line in process.stdout:
            if "ready after" in line:
                break
        process.terminate()
        rest = process.communicate(timeout=15)[0]
        assert "stopped. No replica is running" in rest
        assert (deep / "run").is_symlink()
    finally:
        for path in [(deep / "run").resolve()]:
            assert path.name.startswith("rollcall-")
            subprocess.run(["rm", "-rf", str(path)], check=True)


def test_a_websocket_from_another_port_of_this_host_is_refused_before_it_is_accepted(
    plane: ControlPlane,
) -> None:
    host = urllib.parse.urlsplit(plane.url).netloc
    assert handshake(host, origin="http://127.0.0.1:20001") == 403
    assert handshake(host, origin=None) == 403
    assert handshake(host, origin="http://evil.example") == 403


def test_pages_carry_a_strict_policy_and_private_cookies(plane: ControlPlane) -> None:
    host = urllib.parse.urlsplit(plane.url).netloc
    connection = http.client.HTTPConnection(host, timeout=10)
    connection.request("GET", "/login")
    answer = connection.getresponse()
    answer.read()
    policy = answer.headers["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert "default-src 'self'" in policy
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite" in cookie
    connection.request("GET", "/login", headers={"Host": "evil.example"})
    answer = connection.getresponse()
    answer.read()
    assert answer.status == 400
    connection.close()


def handshake(host: str, origin: str | None) -> int:
    """The status that a websocket handshake gets."""
    connection = http.client.HTTPConnection(host, timeout=10)
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    connection.request("GET", "/ws/feed", headers=headers | ({"Origin": origin} if origin else {}))
    status = connection.getresponse().status
    connection.close()
    return status


def log_in(url: str, name: str, password: str) -> int:
    """The status that a log-in gets: 302 when it works, 200 (the form again) when it does not."""
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=10)
    connection.request("GET", "/login")
    answer = connection.getresponse()
    page = answer.read().decode()
    cookie = answer.headers["Set-Cookie"].split(";")[0]
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    assert token is not None
    form = urllib.parse.urlencode({"csrfmiddlewaretoken": token.group(1), "username": name, "password": password})
    headers = {"Cookie": cookie, "Content-Type": "application/x-www-form-urlencoded", "Origin": url}
    connection.request("POST", "/login", body=form, headers=headers)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status
