"""The address of a service under a whole control plane: it holds while replicas, HAProxy and the controller do not."""

import json
import os
import signal
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from replicas.gateway import runtime
from tests.acceptance.scene import wait_gone
from tests.support.controlplane import BASE, ControlPlane
from tests.support.load import load
from tests.support.patience import Patience
from tests.support.polling import eventually
from tests.support.rows import LIVE, Rows

pytestmark = pytest.mark.acceptance

TEXT = """
name: {name}
run: exec {python} -m tests.gateway.origin $PORT "$SKYPILOT_SERVE_REPLICA_ID"
envs: {{PYTHONPATH: {base}}}
service:
  readiness_probe: /
  replicas: {replicas}
  drain_seconds: {drain}
  rollout: {{min_ready_seconds: 0}}
{more}"""


def written(name: str, replicas: int, more: str = "", drain: int = 20) -> str:
    """The YAML of a service."""
    python = os.environ.get("PY", "python3")
    return TEXT.format(name=name, replicas=replicas, more=more, drain=drain, base=BASE, python=python)


class Town:
    """A control plane with the service `web` and what a test asks of it."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.rows = Rows(plane.home)

    def apply(
        self, replicas: int, more: str = "", name: str = "web", check: bool = True, wait: bool = True, drain: int = 20
    ) -> str:
        """Apply a service; what the command says."""
        text = written(name, replicas, more, drain)
        path = self.plane.home / f"{name}.yaml"
        path.write_text(text)
        done = self.plane.manage("apply", str(path), *(["--wait"] if wait else []), check=check, timeout=90)
        return done.stdout + done.stderr

    def url(self, name: str = "web") -> str:
        """The service's address, once it is served."""
        return str(eventually(lambda: self.rows.service(name)["endpoint"], 20, lambda: self.told(name)))

    def told(self, name: str = "web") -> str:
        return f"{self.rows.service(name)}\n{self.rows.replicas(name)}\n{self.plane.tail()}"

    def ready(self, count: int, name: str = "web") -> None:
        """Wait until exactly so many replicas live, all of them ready, and no rollout is about to replace them."""
        moving = "SELECT id FROM replicas_rollout WHERE service_id = ? AND state = 'PROGRESSING'"

        def look() -> bool:
            states = [row["state"] for row in self.rows.replicas(name, *LIVE)]
            return states == ["READY"] * count and not self.rows.query(moving, self.rows.service(name)["id"])

        eventually(look, 60, lambda: self.told(name))

    def members(self, name: str = "web") -> set[str]:
        """The replicas that HAProxy gives traffic to, by what it says itself."""
        try:
            said = runtime.ask(self.plane.run / "haproxy.sock", f"show servers state b{self.rows.service(name)['id']}")
        except runtime.Unreachable:
            return set()
        rows = [line.split() for line in said.splitlines() if line[:1].isdigit() and len(line.split()) > 20]
        return {row[3] for row in rows if not int(row[6]) & 1}

    def lost(self, number: int, name: str = "web") -> bool:
        """Whether it is known that the replica has failed."""
        return bool(self.rows.replica(name, number)["state"] == "FAILED")

    def equal(self, name: str = "web") -> bool:
        """Whether HAProxy has the very replicas that are READY."""
        return self.members(name) == {f"r{row['number']}" for row in self.rows.replicas(name, "READY")}

    def down(self, *names: str) -> None:
        self.plane.manage("down", *names, "--wait", timeout=90)


@pytest.fixture(scope="module")
def shared_town() -> Iterator[Town]:
    plane = ControlPlane()
    try:
        plane.start()
        yield Town(plane)
    finally:
        left = plane.close()
    assert not left


@pytest.fixture
def town(shared_town: Town) -> Iterator[Town]:
    """A town in which `web` is taken down after the test."""
    yield shared_town
    shared_town.down("web")


def get(url: str, timeout: float = 10) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(url, timeout=timeout) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def test_no_request_fails_while_replicas_are_replaced_and_taken_away(town: Town) -> None:
    town.apply(3)
    with load(town.url()) as traffic:
        for _ in range(2):
            version = town.rows.service("web")["last_version"]
            town.plane.manage("restart", "web")
            eventually(lambda version=version: town.rows.service("web")["last_version"] > version, 10)
            town.ready(3)
        town.plane.manage("scale", "web", "1")
        town.ready(1)
        town.plane.manage("scale", "web", "3")
        town.ready(3)
        eventually(lambda: len(traffic.answers) > 200, 60)
    assert not traffic.failed


def test_an_update_in_place_changes_the_policy_and_breaks_nothing(town: Town) -> None:
    town.apply(2)
    url = town.url()
    pids = {row["pid"] for row in town.rows.replicas("web", "READY")}
    with load(url) as traffic:
        town.apply(2, "  load_balancing_policy: round_robin\n")
        cfg = town.plane.home / "gateway" / "haproxy.cfg"
        eventually(lambda: "balance roundrobin" in cfg.read_text(), 10)
        time.sleep(0.5)  # so long the load goes on over the reload
    assert not traffic.failed
    assert town.url() == url
    assert {row["pid"] for row in town.rows.replicas("web", "READY")} == pids


def test_a_killed_replica_costs_only_what_it_had_in_flight(town: Town) -> None:
    town.apply(3)
    with load(town.url(), clients=8) as traffic:
        eventually(lambda: len(traffic.answers) > 100, 20)
        victim = town.rows.replicas("web", "READY")[0]
        killed = time.monotonic()
        os.kill(victim["pid"], signal.SIGKILL)
        wait_gone(victim["pid"])
        gone = time.monotonic()
        eventually(lambda: town.lost(victim["number"]), 15, town.told)
        town.ready(3)
        eventually(town.equal, 10, town.told)
        enough = len(traffic.answers) + 100
        eventually(lambda: len(traffic.answers) > enough, 20)  # after it as well
    late = [answer for answer in traffic.since(gone + 0.3) if f'"name": "{victim["number"]}"' in answer.body]
    assert not late
    assert all(killed < answer.done and answer.sent < gone + 0.3 for answer in traffic.failed), traffic.failed
    assert len(traffic.failed) <= 8


def test_a_killed_haproxy_is_back_within_a_second(town: Town) -> None:
    town.apply(2)
    url = town.url()
    late = 0
    for _ in range(3):
        leader = town.plane.children()["gateway"]
        patience = Patience(1.0)
        os.kill(leader, signal.SIGKILL)
        eventually(lambda leader=leader: town.plane.children().get("gateway") not in (None, leader), 15, town.told)
        eventually(lambda: reaches(url), 15, town.told)
        late += patience.over()
        eventually(town.equal, 15, town.told)
    assert late < 3  # other programs of the machine may take a second from any of them


def reaches(url: str) -> bool:
    try:
        return get(url, 1)[0] == 200
    except OSError:
        return False


def test_a_killed_controller_breaks_nothing_and_its_successor_makes_things_equal(town: Town) -> None:
    town.apply(2)
    with load(town.url()) as traffic:
        os.kill(town.plane.children()["controller"], signal.SIGKILL)
        town.plane.manage("scale", "web", "3")
        town.ready(3)
        eventually(town.equal, 10, town.told)
    assert not traffic.failed


def test_a_drain_lasts_as_long_as_its_requests_and_no_longer(town: Town) -> None:
    """Whether replicas go because fewer are wanted, or because the service is taken down."""
    town.apply(2, drain=60)
    town.apply(1, name="gone", drain=60)
    ports = [int(url.rpartition(":")[2]) for url in [town.url()] * 4 + [town.url("gone")]]
    links = [socket.create_connection(("127.0.0.1", port), timeout=60) for port in ports]
    for link in links:
        link.sendall(b"GET /hold HTTP/1.1\r\nHost: web\r\n\r\n")
    rows = [row for name in ("web", "gone") for row in town.rows.replicas(name, "READY")]
    eventually(lambda: all(get(f"{row['url']}/seen")[1].get("GET /hold") for row in rows), 20, town.told)
    town.plane.manage("scale", "web", "0")
    town.plane.manage("down", "gone")
    eventually(lambda: len(town.rows.replicas("web", "DRAINING")) == 2, 20, town.told)
    eventually(lambda: town.rows.replicas("gone", "DRAINING"), 20, lambda: town.told("gone"))
    for port in (ports[0], ports[-1]):
        eventually(lambda port=port: get(f"http://127.0.0.1:{port}")[0] == 503, 10, town.told)
    for row in rows:
        assert get(f"{row['url']}/release")[0] == 200
    assert all(b"200 OK" in link.recv(4096) for link in links)
    for link in links:
        link.close()
    eventually(lambda: not town.rows.replicas("web", *LIVE), 20, town.told)
    eventually(lambda: not town.rows.replicas("gone", *LIVE), 20, lambda: town.told("gone"))
    events = [row["reason"] for row in town.rows.events() if "in flight" in row["reason"]]
    assert events.count("nothing is in flight any more") >= 3
    eventually(lambda: not reaches(f"http://127.0.0.1:{ports[-1]}"), 10)


def test_none_ready_says_why(town: Town) -> None:
    town.apply(1)
    url = town.url()
    town.plane.manage("scale", "web", "0")
    eventually(lambda: not town.rows.replicas("web", *LIVE), 30, town.told)
    status, body = get(url)
    assert (status, body["service"]) == (503, "web")
    eventually(lambda: get(url)[1]["reason"] == town.rows.service("web")["reason"], 5)


def test_an_address_is_stable_and_two_services_never_share_one(town: Town) -> None:
    town.apply(1)
    url = town.url()
    port = int(url.rsplit(":", 1)[1])
    said = town.apply(1, f"  endpoint_port: {port}\n", name="other", check=False, wait=False)
    assert f"endpoint_port: {port} is the port of service web" in said
    asked = port + 17
    town.apply(1, f"  endpoint_port: {asked}\n")
    eventually(lambda: town.url() == f"http://127.0.0.1:{asked}", 10)
    town.apply(1)
    assert town.url() == f"http://127.0.0.1:{asked}"
    assert get(town.url())[0] == 200


def test_traffic_is_measured_and_logged(town: Town) -> None:
    town.apply(2)
    with load(town.url(), clients=4) as traffic:
        eventually(lambda: len(traffic.answers) > 300, 30)
    number = town.rows.service("web")["id"]

    def counted() -> int:
        found = town.rows.query("SELECT SUM(requests) AS n FROM replicas_sample WHERE service_id = ?", number)
        return int(found[0]["n"] or 0)

    eventually(lambda: counted() >= len(traffic.answers) * 0.9, 10, lambda: f"{counted()} of {len(traffic.answers)}")
    rows = town.rows.query("SELECT * FROM replicas_sample WHERE service_id = ? AND p50 IS NOT NULL", number)
    assert all(0 <= row["p50"] <= row["p95"] <= row["p99"] for row in rows)
    log = Path(town.plane.home / "logs" / "access" / "web.log")
    eventually(lambda: len(log.read_text().splitlines()) >= len(traffic.answers), 5)
    status, text = town.plane.get("/metrics")
    assert status == 200
    assert b'rollcall_requests_total{service="web"}' in text
    assert b"rollcall_gateway_up 1.0" in text
    assert b"rollcall_event_lag_seconds " in text
    for replica in town.rows.replicas("web", "READY"):
        for name in ("requests_total", "in_flight_requests", "errors_total"):
            assert f'rollcall_replica_{name}{{service="web",replica="{replica["number"]}"}}'.encode() in text


def test_the_first_request_starts_a_replica(shared_town: Town) -> None:
    """A service of its own: what another has served of late would count as its load."""
    town = shared_town
    text = (town.plane.home / "lazy.yaml", written("lazy", 1))
    policy = "replica_policy: {min_replicas: 0, max_replicas: 2, target_qps_per_replica: 5, upscale_delay_seconds: 0}"
    text[0].write_text(text[1].replace("replicas: 1", policy))
    town.plane.manage("apply", str(text[0]))
    url = town.url("lazy")
    eventually(lambda: not town.rows.replicas("lazy", *LIVE), 20, lambda: town.told("lazy"))
    status, body = get(url, 40)
    assert status == 200, body
    town.down("lazy")


def test_without_haproxy_services_run_and_everything_says_why(
    new_control_plane: Callable[..., ControlPlane],
) -> None:
    plane = new_control_plane(HAPROXY_BINARY="/nowhere/haproxy").start()
    town = Town(plane)
    town.apply(1)
    row = eventually(lambda: found if (found := town.rows.service("web"))["endpoint_reason"] else None, 10)
    assert row["endpoint"] == ""
    assert "HAPROXY_BINARY=/nowhere/haproxy is no program" in row["endpoint_reason"]
    assert "HAPROXY_BINARY" in plane.readyz()["parts"]["gateway"]["detail"]
    assert "gateway" not in plane.children()
    town.down("web")


def test_nothing_of_the_gateway_outlives_a_killed_supervisor(
    new_control_plane: Callable[..., ControlPlane],
) -> None:
    plane = new_control_plane().start()
    town = Town(plane)
    town.apply(1)
    host, port = town.url().removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as link:
        link.sendall(b"GET /events HTTP/1.1\r\nHost: web\r\n\r\n")
        link.recv(64)
        plane.kill()
        eventually(lambda: not plane.control_plane(), 5, lambda: str(plane.control_plane()))
    plane.start()
    assert town.url() == f"http://{host}:{port}"
    eventually(town.equal, 10, town.told)
    assert get(town.url())[0] == 200
    town.down("web")
