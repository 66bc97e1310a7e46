"""What a request meets on its way: it is passed as it is, or refused with a reason."""

import base64
import dataclasses
import hashlib
import http.client
import itertools
import json
import os
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from replicas.gateway.values import Entry
from replicas.gateway.values import entry as entry_of
from tests.gateway.conftest import Site
from tests.support.patience import within
from tests.support.polling import eventually

MEGABYTE = 1_000_000


@pytest.fixture
def served(site: Site, entry: Entry) -> Entry:
    """The entry with one replica behind it."""
    site.serve(entry, site.origin(1))
    return entry


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"])
def test_methods_of_every_kind_pass(site: Site, served: Entry, method: str) -> None:
    status, _, body = site.ask(served, "/a?b=c", method)
    assert status == 200
    if method != "HEAD":
        assert (body["method"], body["path"]) == (method, "/a?b=c")


def test_headers_say_who_asked_and_how(site: Site, served: Entry) -> None:
    headers = site.ask(served, Host="web.example", X_Forwarded_For="10.0.0.9", Authorization="Bearer a")[2]["headers"]
    assert headers["x-forwarded-for"].endswith("127.0.0.1")
    assert (headers["x-forwarded-proto"], headers["x-forwarded-host"]) == ("http", "web.example")
    assert headers["x-forwarded-port"] == str(served.port)
    assert (headers["host"], headers["authorization"]) == ("web.example", "Bearer a")
    assert len(headers["x-request-id"]) >= 32
    assert site.ask(served, X_Request_ID="mine")[2]["headers"]["x-request-id"] == "mine"


def test_a_large_body_is_not_changed(site: Site, served: Entry) -> None:
    data = os.urandom(20 * MEGABYTE)
    status, _, body = site.ask(served, "/big", "POST", data)
    assert (status, body["body"], body["digest"]) == (200, len(data), hashlib.sha256(data).hexdigest())
    assert site.ask(served, "/chunked", "POST", iter([b"a" * 70000, b"b"]))[2]["body"] == 70001


def test_bodies_of_gigabytes_pass_both_ways(site: Site, served: Entry) -> None:
    """Each more than a signed number of 32 bits can count; and HAProxy keeps nothing of them."""
    length = 2200 * MEGABYTE
    link = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
    link.request("POST", f"/bytes?{length}", itertools.repeat(bytes(MEGABYTE), 2200), {"Content-Length": str(length)})
    answer, came, part = link.getresponse(), 0, bytearray(MEGABYTE)
    assert (answer.status, answer.getheader("X-Counted")) == (200, str(length))
    while read := answer.readinto(part):
        came += read
    link.close()
    assert came == length
    assert site.haproxy is not None
    resident = psutil.Process(site.haproxy.pid).children()[-1].memory_info().rss
    assert resident < 200 * MEGABYTE


def test_a_stream_arrives_as_it_is_sent(site: Site, served: Entry) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=5) as link:
        began, data = time.monotonic(), b""
        link.sendall(b"GET /events HTTP/1.1\r\nHost: web\r\n\r\n")
        with within(5):
            while b"data: 3\n" not in data:
                data += link.recv(4096)
        assert time.monotonic() - began > 0.2


def test_a_client_that_leaves_ends_the_stream_at_the_replica(site: Site, served: Entry) -> None:
    link = socket.create_connection(("127.0.0.1", served.port), timeout=5)
    link.sendall(b"GET /events HTTP/1.1\r\nHost: web\r\n\r\n")
    link.recv(100)
    assert site.ask(served, "/open")[2] == 1
    link.close()
    eventually(lambda: site.ask(served, "/open")[2] == 0, 5)
    eventually(lambda: site.again() and site.plane.in_flight(served.id, "r1") == 0, 5)


def test_a_websocket_passes(site: Site, served: Entry) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=5) as link:
        key = base64.b64encode(os.urandom(16))
        link.sendall(
            b"GET /ws HTTP/1.1\r\nHost: web\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + key + b"\r\n\r\n"
        )
        assert link.recv(4096).startswith(b"HTTP/1.1 101")
        link.sendall(bytes([0x81, 0x85, 0, 0, 0, 0]) + b"hello")
        assert link.recv(64) == bytes([0x81, 5]) + b"hello"
        assert site.again()
        assert site.plane.in_flight(served.id, "r1") == 1


def test_what_was_not_sent_goes_to_another_and_a_dead_one_is_passed_over(site: Site, entry: Entry) -> None:
    one, two = site.origin(1), site.origin(2)
    site.serve(entry, one, two)
    site.kill(0)
    for method in ("POST", "GET") * 5:
        assert site.ask(entry, "/x", method)[2]["name"] == "r2"
    assert site.again()
    assert not site.plane.backends[entry.backend].servers["r1"].up


def test_a_post_that_was_sent_is_never_repeated(site: Site, entry: Entry) -> None:
    one, two = site.origin(1), site.origin(2)
    site.serve(entry, one, two)
    status, headers, body = site.ask(entry, "/break", "POST", b"once")
    assert (status, headers["content-type"], body["error"]) == (502, "application/json", 502)
    seen = [site.ask(entry, "/seen", port=member.port)[2].get("POST /break", 0) for member in (one, two)]
    assert sum(seen) == 1


def test_one_that_hangs_does_not_hold_up_the_others(site: Site, entry: Entry) -> None:
    one, two = site.origin(1), site.origin(2)
    site.serve(dataclasses.replace(entry, policy="least_load", concurrency=1, queue_timeout=5), one, two)
    links = [socket.create_connection(("127.0.0.1", entry.port)) for _ in range(1)]
    links[0].sendall(b"GET /slow?10 HTTP/1.1\r\nHost: web\r\n\r\n")
    eventually(lambda: site.again() and sum(site.plane.in_flight(entry.id, n) for n in ("r1", "r2")) == 1, 5)
    with within(8):
        assert all(site.ask(entry)[0] == 200 for _ in range(10))
    links[0].close()


def test_a_full_replica_has_a_queue_with_an_end(site: Site, entry: Entry) -> None:
    full = dataclasses.replace(entry, concurrency=1, queue_timeout=1)
    site.serve(full, site.origin(1))
    with socket.create_connection(("127.0.0.1", entry.port)) as link:
        link.sendall(b"GET /slow?10 HTTP/1.1\r\nHost: web\r\n\r\n")
        eventually(lambda: site.again() and site.plane.in_flight(entry.id, "r1") == 1, 5)
        began = time.monotonic()
        with within(8):
            status, headers, body = site.ask(full)
        assert (status, headers["retry-after"], body["error"]) == (503, "1", 503)
        assert time.monotonic() - began > 0.8


def test_silence_beyond_the_timeout_is_a_504(site: Site, entry: Entry) -> None:
    site.serve(dataclasses.replace(entry, stream_timeout=1), site.origin(1))
    status, _, body = site.ask(entry, "/slow?3", "POST")
    assert (status, body["error"]) == (504, 504)


def test_a_request_is_held_until_there_is_a_replica(site: Site, entry: Entry) -> None:
    held, one = dataclasses.replace(entry, hold=10), site.origin(1)  # whose start is not part of the ten seconds
    site.serve(held, reason="it has been scaled to zero")
    answers: list[Any] = []
    asking = [threading.Thread(target=lambda: answers.append(site.ask(held))) for _ in range(3)]
    for each in asking:
        each.start()
    eventually(lambda: site.plane.held(site.wanted) == {held.id: 3}, 5)
    site.serve(held, one)
    for each in asking:
        each.join()
    assert [answer[0] for answer in answers] == [200, 200, 200]
    eventually(lambda: site.plane.held(site.wanted) == {}, 5)


def test_a_request_is_held_for_so_long_and_no_longer(site: Site, entry: Entry) -> None:
    held = dataclasses.replace(entry, hold=1)
    site.serve(held, reason="it has been scaled to zero")
    began = time.monotonic()
    with within(8):
        assert site.ask(held)[2]["reason"] == "it has been scaled to zero"
    assert time.monotonic() - began > 0.8


def test_a_token_is_asked_for_and_is_nowhere_in_the_clear(site: Site, entry: Entry) -> None:
    spec = {"service": {"load_balancer": {"bearer_token": "s3cret value"}}}
    guarded = entry_of(entry.id, "web", entry.port, spec)
    site.serve(guarded, site.origin(1))
    assert site.ask(guarded)[0] == 401
    assert site.ask(guarded, Authorization="Bearer wrong")[0] == 401
    assert site.ask(guarded, Authorization="Bearer s3cret value")[0] == 200
    assert site.ask(guarded, Authorization="BEARER s3cret value")[0] == 200
    assert site.ask(guarded, Authorization="s3cret value")[0] == 401
    assert site.ask(guarded, Authorization="Bearer wrong, Bearer s3cret value")[0] == 401
    assert "s3cret" not in site.places.configuration.read_text()
    odd = 'a,b "c" \\ $x'
    guarded = entry_of(entry.id, "web", entry.port, {"service": {"load_balancer": {"bearer_token": odd}}})
    site.serve(guarded, *site.wanted.members[entry.id])
    assert site.ask(guarded, Authorization=f"Bearer {odd}")[0] == 200


def test_a_client_that_asks_too_often_is_told_so(site: Site, entry: Entry) -> None:
    site.serve(dataclasses.replace(entry, client_rate=5), site.origin(1))
    assert [site.ask(entry)[0] for _ in range(5)] == [200] * 5
    eventually(lambda: 429 in [site.ask(entry)[0] for _ in range(12)], 10)  # one burst may take longer than a second
    eventually(lambda: site.ask(entry)[0] == 200, 5)


def test_a_body_that_is_too_large_is_refused(site: Site, entry: Entry) -> None:
    site.serve(dataclasses.replace(entry, max_body=100), site.origin(1))
    assert site.ask(entry, "/", "POST", b"x" * 100)[0] == 200
    assert site.ask(entry, "/", "POST", b"x" * 101)[0] == 413
    for method in ("POST", "GET", "DELETE", "PROPFIND"):
        assert site.ask(entry, "/", method, iter([b"x" * 200]))[0] == 411
    assert site.ask(entry, "/", "DELETE")[0] == 200
    for length in (2**31 + 5, 2**32 + 10, 2**63 - 1):  # HAProxy's own number of a header has 32 bits
        assert site.ask(entry, "/", "POST", b"", Content_Length=str(length))[0] == 413


def test_one_port_for_all_knows_services_by_host_and_by_path(site: Site, served: Entry) -> None:
    port = site.shared_port
    assert site.ask(served, "/a", port=port, Host="WEB")[2]["path"] == "/a"
    assert site.ask(served, "/a", port=port, Host=f"web.localhost:{port}")[2]["path"] == "/a"
    assert site.ask(served, "/a", port=port, Host="web.")[2]["path"] == "/a"
    body = site.ask(served, "/services/web/b/c?d=e", port=port)[2]
    assert (body["path"], body["headers"]["x-forwarded-prefix"]) == ("/b/c?d=e", "/services/web")
    assert site.ask(served, "/services/web", port=port)[2]["path"] == "/"
    assert site.ask(served, "/services/other/", port=port)[0] == 404
    assert site.ask(served, "/services/x", port=port, Host="web")[2]["path"] == "/services/x"
    assert site.ask(served, "/", port=port, Host="nobody")[0] == 404


def test_https_with_the_users_own_certificate(site: Site, entry: Entry) -> None:
    pem, key = site.home / "web.pem", site.home / "web.key"
    subject = ["-subj", "/CN=localhost", "-days", "1", "-nodes"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", *subject, "-keyout", str(key), "-out", str(pem)]
    subprocess.run(made, check=True, capture_output=True)
    pem.write_text(pem.read_text() + key.read_text())
    secure = dataclasses.replace(entry, certificate=str(pem))
    site.serve(secure, site.origin(1))
    asked = ["curl", "-sk", "--http2", "-w", " %{http_version}", f"https://127.0.0.1:{entry.port}/"]
    said, _, version = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.rpartition(" ")
    assert version == "2"
    assert json.loads(said)["headers"]["x-forwarded-proto"] == "https"
    site.serve(dataclasses.replace(secure, max_body=100), *site.wanted.members[entry.id])
    unsized = [*asked[:3], "-o", os.devnull, "-w", "%{http_version} %{http_code}", asked[-1], "-X", "DELETE"]
    assert subprocess.run(unsized, check=True, capture_output=True).stdout == b"2 200"
    subprocess.run([*unsized, "-T", "-"], input=b"x" * 200, check=False, capture_output=True)  # it may give up first

    def statuses() -> list[int]:
        site.reader.drain()
        text = (site.places.logs / f"s{entry.id}.log").read_text()
        return [json.loads(line)["status"] for line in text.splitlines()]

    eventually(lambda: statuses() == [200, 200, 411], 10, statuses)


def test_the_access_log_has_a_line_for_each_request_and_no_secret(site: Site, served: Entry) -> None:
    site.ask(served, '/a"b?token=hidden', Authorization="Bearer hidden", Cookie="session=hidden")
    site.ask(served, "/break", "POST")
    site.ask(served, "/" + '"' * 3000, "M" * 900, Host='"' * 3000, X_Request_ID='"' * 3000)
    path = Path(site.places.logs / f"s{served.id}.log")

    def lines() -> list[dict[str, Any]]:
        site.reader.drain()
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    first, second, long = eventually(lambda: found if len(found := lines()) == 3 else None, 5)
    assert (first["path"], first["status"], first["replica"], first["method"]) == ('/a"b', 200, "r1", "GET")
    assert (second["path"], second["status"]) == ("/break", 502)
    assert (long["path"], long["status"], long["replica"]) == ("/" + '"' * 999, 200, "r1")
    assert (len(long["host"]), len(long["request_id"])) == (250, 100)
    assert set(long["method"]) == {"M"}
    assert abs(first["at"] - time.time()) < 60
    assert "hidden" not in path.read_text()
    assert path.stat().st_mode & 0o077 == 0
    tally = site.reader.take()[served.id]
    assert (tally.count, tally.codes, dict(tally.replicas)) == (3, [0, 2, 0, 0, 1], {"1": 3})
    assert dict(tally.failures) == {"1": 1}
