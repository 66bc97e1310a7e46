"""HAProxy is made equal to what is wanted, whatever it was."""

import contextlib
import dataclasses
import http.client
import os
import signal
import socket
from pathlib import Path

import pytest

from controlplane import processes
from replicas.gateway import dataplane, runtime, statistics
from replicas.gateway.config import POLICIES, REASONS, Options, one_line, render, shape_of
from replicas.gateway.dataplane import free, listens
from replicas.gateway.places import Places
from replicas.gateway.values import Entry, Member, Wanted
from tests.gateway.conftest import Site, free_port
from tests.support.polling import eventually


def state_of(site: Site, entry: Entry) -> dict[str, tuple[str, bool]]:
    """Each server's address and whether it is in traffic, by what HAProxy itself says of its state."""
    lines = runtime.ask(site.places.stats, f"show servers state {entry.backend}").splitlines()
    names = next(line for line in lines if line.startswith("# ")).removeprefix("# ").split()
    rows = (dict(zip(names, line.split(), strict=True)) for line in lines if line[:1].isdigit() and " " in line)
    return {
        row["srv_name"]: (f"{row['srv_addr']}:{row['srv_port']}", int(row["srv_admin_state"]) & 1 == 0) for row in rows
    }


def test_members_come_and_go_without_a_reload(site: Site, entry: Entry) -> None:
    one, two = site.origin(1), site.origin(2)
    site.serve(entry, one)
    worker = runtime.ask(site.places.stats, "show info")
    site.serve(entry, one, two)
    assert state_of(site, entry) == {"r1": (one.address, True), "r2": (two.address, True)}
    assert {site.ask(entry)[2]["name"] for _ in range(6)} == {"r1", "r2"}
    site.serve(entry, two)
    assert {site.ask(entry)[2]["name"] for _ in range(4)} == {"r2"}
    eventually(lambda: site.again() and state_of(site, entry) == {"r2": (two.address, True)}, 5)
    pid = next(line for line in worker.splitlines() if line.startswith("Pid:"))
    assert pid in runtime.ask(site.places.stats, "show info")


def test_one_that_is_still_at_work_stays_counted_and_gets_nothing(site: Site, entry: Entry) -> None:
    one, two = site.origin(1), site.origin(2)
    site.serve(entry, one)
    link = socket.create_connection(("127.0.0.1", entry.port))
    link.sendall(b"GET /hold HTTP/1.1\r\nHost: web\r\n\r\n")
    eventually(lambda: site.again() and site.plane.in_flight(entry.id, "r1") == 1, 5)
    kept = frozenset({(entry.id, "r1")})
    site.wanted = Wanted((entry,), {entry.id: (two,)}, {})
    assert site.plane.follow(site.wanted, kept)
    assert site.plane.in_flight(entry.id, "r1") == 1
    assert {site.ask(entry)[2]["name"] for _ in range(4)} == {"r2"}
    site.ask(entry, "/release", port=one.port)
    assert b'"name": "r1"' in link.recv(4096)
    link.close()
    eventually(lambda: site.plane.follow(site.wanted, kept) and site.plane.in_flight(entry.id, "r1") == 0, 5)


def test_what_an_earlier_worker_still_serves_is_counted(site: Site, entry: Entry) -> None:
    one = site.origin(1)
    site.serve(entry, one)
    link = socket.create_connection(("127.0.0.1", entry.port))
    link.sendall(b"GET /hold HTTP/1.1\r\nHost: web\r\n\r\n")
    eventually(lambda: site.again() and site.plane.in_flight(entry.id, "r1") == 1, 5)
    site.serve(dataclasses.replace(entry, policy="round_robin"), one)
    assert site.again()
    assert site.plane.in_flight(entry.id, "r1") == 1
    site.ask(entry, "/release", port=one.port)
    assert b'"name": "r1"' in link.recv(4096)  # a reload breaks nothing off
    link.close()
    eventually(lambda: site.again() and site.plane.in_flight(entry.id, "r1") == 0, 5)


def test_a_connection_of_an_earlier_worker_follows_the_members_too(site: Site, entry: Entry) -> None:
    one, two = site.origin(1), site.origin(2)
    site.serve(entry, one)
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", entry.port, timeout=5)) as link:
        link.request("GET", "/")
        assert b'"name": "r1"' in link.getresponse().read()
        changed = dataclasses.replace(entry, policy="round_robin")
        site.serve(changed, one)
        site.serve(changed, two)
        site.kill(0)
        link.request("POST", "/")
        answer = link.getresponse()
        assert b'"name": "r2"' in answer.read()
        assert answer.getheader("Connection") == "close"


def test_after_a_crash_it_serves_the_members_it_had_and_is_brought_up_to_date(site: Site, entry: Entry) -> None:
    one, two = site.origin(1), site.origin(2)
    site.serve(entry, one)
    assert site.haproxy is not None
    os.killpg(site.haproxy.pid, signal.SIGKILL)
    site.haproxy.wait()
    assert not site.again()
    assert "does not answer" in site.plane.trouble
    site.start()
    assert site.ask(entry)[2]["name"] == "r1"
    site.serve(entry, one, two)
    assert set(state_of(site, entry)) == {"r1", "r2"}
    for reason in ("it begins", "it has failed"):
        site.serve(entry, reason=reason)
    os.killpg(site.haproxy.pid, signal.SIGKILL)
    site.haproxy.wait()
    site.start()
    assert site.ask(entry)[2]["reason"] == "it has failed"


def test_a_new_driver_finds_things_as_they_are(site: Site, entry: Entry) -> None:
    one = site.origin(1)
    site.serve(entry, one)
    before = runtime.ask(site.places.stats, "show info")
    other = dataclasses.replace(site.plane, _written="", _may_be_old=True, _latest=None, _filed=None, _told={})
    assert other.follow(site.wanted)
    pid = next(line for line in before.splitlines() if line.startswith("Pid:"))
    assert pid in runtime.ask(site.places.stats, "show info")


def test_a_port_in_use_keeps_only_its_own_service_from_being_served(
    site: Site, entry: Entry, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dataplane, "AGAIN_SECONDS", 0.2)
    one = site.origin(1)
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", 0))
        stranger.listen()
        busy = Entry(8, "busy", stranger.getsockname()[1])
        site.wanted = Wanted((entry, busy), {entry.id: (one,), 8: (one,)}, {})
        eventually(site.again, 5, lambda: site.plane.trouble)
        assert "in use by another program" in site.plane.problems[8]
        assert site.ask(entry)[0] == 200
        first = site.plane._refused[busy][0]
        eventually(lambda: site.again() and site.plane._refused.get(busy, (first,))[0] > first, 12)
        said = [record.getMessage() for record in caplog.records if "in use by another" in record.getMessage()]
        assert len(said) == 1, "it is tried again and again, and said once"
    eventually(lambda: site.again() and not site.plane.problems, 12)
    assert site.ask(busy)[0] == 200


def test_a_certificate_that_is_none_keeps_only_its_own_service_from_being_served(site: Site, entry: Entry) -> None:
    path = site.home / "broken.pem"
    path.write_text("nonsense")
    wrong = Entry(8, "wrong", free_port(), certificate=str(path))
    site.wanted = Wanted((entry, wrong), {entry.id: (site.origin(1),)}, {})
    eventually(site.again, 5, lambda: site.plane.trouble)
    assert "broken.pem" in site.plane.problems[8]
    assert site.ask(entry)[0] == 200


def test_a_worker_does_not_outlive_its_master_for_long(site: Site, entry: Entry) -> None:
    site.serve(entry, site.origin(1))
    link = socket.create_connection(("127.0.0.1", entry.port))
    link.sendall(b"GET /events HTTP/1.1\r\nHost: web\r\n\r\n")
    link.recv(64)
    pid = int(runtime.ask(site.places.stats, "show info").split("Pid: ")[1].split()[0])
    assert site.haproxy is not None
    site.haproxy.kill()
    site.haproxy.wait()
    eventually(lambda: processes.stat(pid) is None, 5)
    link.close()


@pytest.mark.parametrize("policy", [*POLICIES, "consistent_hash"])
def test_every_policy_takes_members_at_run_time(site: Site, policy: str) -> None:
    entry = Entry(9, "web", free_port(), policy=policy, hash_on="path", concurrency=4)
    one, two = site.origin(1), site.origin(2)
    site.serve(entry, one)
    site.serve(entry, one, two)
    paths = [f"/{number}" for number in range(40)]
    assert {site.ask(entry, path)[2]["name"] for path in paths} == {"r1", "r2"}


def test_a_hash_moves_only_what_the_one_that_went_had(site: Site) -> None:
    entry = Entry(9, "web", free_port(), policy="consistent_hash", hash_on="header:X-Session")
    members = [site.origin(number) for number in (1, 2, 3)]
    site.serve(entry, *members)
    sessions = [f"s{number}" for number in range(60)]
    before = {session: site.ask(entry, X_Session=session)[2]["name"] for session in sessions}
    assert {site.ask(entry, X_Session=session)[2]["name"] for session in sessions if before[session] == "r1"} == {"r1"}
    site.serve(entry, *members[:2])
    after = {session: site.ask(entry, X_Session=session)[2]["name"] for session in sessions}
    assert all(after[session] == before[session] for session in sessions if before[session] != "r3")


@pytest.mark.parametrize("on", ["path", "cookie:sid", "source"])
def test_what_is_hashed_is_what_was_asked_for(site: Site, on: str) -> None:
    entry = Entry(9, "web", free_port(), policy="consistent_hash", hash_on=on)
    site.serve(entry, *[site.origin(number) for number in (1, 2, 3)])
    where = {}
    for number in range(30):
        asked = [(f"/{number}", {}), ("/", {"Cookie": f"other={number}; sid={number}"})][on != "path"]
        found = {site.ask(entry, asked[0], **asked[1])[2]["name"] for _ in range(2)}
        assert len(found) == 1, f"{asked} went to {found}"
        where[number] = found.pop()
    assert len(set(where.values())) == (1 if on == "source" else 3), where


def test_a_cookie_keeps_a_client_at_its_replica_until_that_goes(site: Site) -> None:
    entry = Entry(9, "web", free_port(), policy="sticky")
    one, two = site.origin(1), site.origin(2)
    site.serve(entry, one, two)
    _, headers, body = site.ask(entry)
    cookie = headers["set-cookie"].split(";")[0]
    assert {site.ask(entry, Cookie=cookie)[2]["name"] for _ in range(6)} == {body["name"]}
    left = {"r1": two, "r2": one}[body["name"]]
    site.serve(entry, left)
    assert site.ask(entry, Cookie=cookie)[2]["name"] == f"r{left.number}"


def test_weights_share_the_load(site: Site) -> None:
    entry = Entry(9, "web", free_port(), policy="round_robin")
    one, two = site.origin(1), site.origin(2)
    site.serve(entry, one, two)
    site.serve(entry, dataclasses.replace(one, weight=200), dataclasses.replace(two, weight=50))
    names = [site.ask(entry)[2]["name"] for _ in range(50)]
    assert names.count("r1") == 40


def test_the_reason_reaches_the_answer_whatever_is_in_it(site: Site, entry: Entry) -> None:
    for reason in ('0 of 2 ready; replica 1 says "no" \\ yes', "a\nb; show info", "x" * 1000):
        site.serve(entry, reason=reason)
        status, headers, body = site.ask(entry)
        assert (status, headers["retry-after"], headers["content-type"]) == (503, "1", "application/json")
        assert body == {"error": 503, "service": "web", "reason": one_line(reason)}


def test_the_shape_knows_no_members_and_no_reasons() -> None:
    options = Options(Places(Path("/x"), Path("/x"), Path("/x")))
    entry = Entry(1, "a", 1234)
    bare = shape_of(Wanted((entry,)), options)
    assert bare == shape_of(Wanted((entry,), {1: (Member(1, "127.0.0.1", 1),)}, {1: "why"}), options)
    assert bare != shape_of(Wanted((dataclasses.replace(entry, policy="sticky"),)), options)
    assert "server r1 127.0.0.1:1 " in render(Wanted((entry,), {1: (Member(1, "127.0.0.1", 1),)}), options)


def test_statistics_are_read_strictly() -> None:
    with pytest.raises(statistics.Unreadable):
        statistics.parse("Unknown command")
    with pytest.raises(statistics.Unreadable):
        statistics.parse("# pxname,svname,status,scur,\nb1,r1\n")


def test_a_command_that_does_not_work_is_an_error(site: Site) -> None:
    with pytest.raises(runtime.Unexpected, match="No such backend"):
        runtime.tell(site.places.stats, "set server b99/r1 state maint")
    with pytest.raises(runtime.Unexpected, match="Unknown command"):
        runtime.tell(site.places.stats, f"set nonsense {REASONS}")


def test_a_port_is_free_until_somebody_listens() -> None:
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", 0))
        port = stranger.getsockname()[1]
        stranger.listen()
        assert not free("127.0.0.1", port)
    assert free("127.0.0.1", port)


def test_a_file_that_haproxy_never_started_from_is_checked_and_left_aside(site: Site, entry: Entry) -> None:
    site.serve(entry, site.origin(1))
    assert not site.places.starting.exists()
    assert site.haproxy is not None
    os.killpg(site.haproxy.pid, signal.SIGKILL)
    site.haproxy.wait()
    site.places.configuration.write_text("nonsense\n")
    site.places.starting.touch()
    site.plane = dataclasses.replace(site.plane, _written="", _latest=None, _filed=None)
    site.start()
    assert site.ask(entry)[0] == 200
    assert not site.places.starting.exists()


def test_one_that_is_back_before_anybody_looked_has_started_well(site: Site, entry: Entry) -> None:
    """Or its next start would be held up by a check of its file."""
    site.serve(entry, site.origin(1))
    assert site.haproxy is not None
    os.killpg(site.haproxy.pid, signal.SIGKILL)
    site.haproxy.wait()
    site.launch()
    eventually(lambda: listens(site.places.stats))
    assert site.places.starting.exists()
    assert site.again()
    assert not site.places.starting.exists()
