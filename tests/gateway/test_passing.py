"""Bodies, encodings and trailers pass as they are; a client that leaves takes its request with it, wherever it is."""

import gzip
import hashlib
import http.client
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from replicas.gateway.values import Entry
from replicas.gateway.values import entry as entry_of
from tests.gateway.conftest import Site, free_port
from tests.support.polling import eventually

ZIPPED = gzip.compress(b"as it is" * 1000, mtime=0)


@pytest.fixture
def served(site: Site, entry: Entry) -> Entry:
    """The entry with one replica behind it."""
    site.serve(entry, site.origin(1))
    return entry


@contextmanager
def connected(entry: Entry, request: str, body: bytes = b"") -> Iterator[socket.socket]:
    """A connection on which a request was begun."""
    with socket.create_connection(("127.0.0.1", entry.port), timeout=15) as link:
        link.sendall(request.replace("\n", "\r\n").encode() + body)
        yield link


def read_all(link: socket.socket) -> bytes:
    """Everything until the other side closes."""
    found = b""
    while part := link.recv(65536):
        found += part
    return found


def opened(site: Site, entry: Entry, number: int) -> None:
    """Wait until so many streams and waits are open at the replica."""
    eventually(lambda: site.ask(entry, "/open")[2] == number, 10)


def test_trailers_of_a_request_pass(site: Site, served: Entry) -> None:
    head = "POST /a HTTP/1.1\nHost: web\nConnection: close\nTransfer-Encoding: chunked\nTrailer: X-Sum\n\n"
    with connected(served, head, b"5\r\nhello\r\n0\r\nX-Sum: 42\r\n\r\n") as link:
        answer = http.client.HTTPResponse(link)
        answer.begin()
        said = answer.read()
    assert b'"trailers": {"x-sum": "42"}' in said


def test_trailers_of_an_answer_pass(site: Site, served: Entry) -> None:
    with connected(served, "GET /trailers HTTP/1.1\nHost: web\nTE: trailers\nConnection: close\n\n") as link:
        said = read_all(link)
    head, _, rest = said.partition(b"\r\n\r\n")
    assert b"\r\ntrailer: X-Digest" in head.lower().replace(b"x-digest", b"X-Digest")
    assert rest.lower().endswith(b"0\r\nx-digest: of-the-body\r\n\r\n")


def test_a_zipped_answer_is_not_touched(site: Site, served: Entry) -> None:
    for accepted in ("gzip", "identity", ""):
        status, headers, body = site.ask(served, "/gzip", **({"Accept_Encoding": accepted} if accepted else {}))
        assert (status, headers["content-encoding"], headers["content-length"]) == (200, "gzip", str(len(ZIPPED)))
        assert body == ZIPPED
    asked = site.ask(served, "/a", Accept_Encoding="br;q=0.5, gzip")
    assert asked[2]["headers"]["accept-encoding"] == "br;q=0.5, gzip"
    assert "content-encoding" not in asked[1]  # and a plain one is not zipped


def test_a_zipped_body_is_not_touched(site: Site, served: Entry) -> None:
    said = site.ask(served, "/a", "POST", ZIPPED, Content_Encoding="gzip")[2]
    assert said["headers"]["content-encoding"] == "gzip"
    assert (said["body"], said["digest"]) == (len(ZIPPED), hashlib.sha256(ZIPPED).hexdigest())


def test_who_leaves_before_the_answer_ends_the_request_at_the_replica(site: Site, served: Entry) -> None:
    with connected(served, "GET /wait HTTP/1.1\nHost: web\n\n"):
        opened(site, served, 1)
    opened(site, served, 0)
    eventually(lambda: site.again() and site.plane.in_flight(served.id, "r1") == 0, 10)


def test_who_closes_the_own_direction_before_the_answer_ends_the_request_too(site: Site, served: Entry) -> None:
    with connected(served, "GET /wait HTTP/1.1\nHost: web\n\n") as link:
        opened(site, served, 1)
        link.shutdown(socket.SHUT_WR)
        opened(site, served, 0)
        eventually(lambda: site.again() and site.plane.in_flight(served.id, "r1") == 0, 10)


def test_who_closes_the_own_direction_in_the_middle_of_an_answer_gets_all_of_it(site: Site, served: Entry) -> None:
    with connected(served, "GET /events HTTP/1.1\nHost: web\n\n") as link:
        assert link.recv(1)
        link.shutdown(socket.SHUT_WR)
        found = b""
        while b"data: 20\n" not in found:
            part = link.recv(4096)
            assert part
            found += part
        opened(site, served, 1)
    opened(site, served, 0)


def test_who_leaves_in_the_middle_of_a_body_ends_it_at_the_replica(site: Site, served: Entry) -> None:
    with connected(served, "POST /a HTTP/1.1\nHost: web\nContent-Length: 1000000\n\n", b"x" * 300_000):
        eventually(lambda: site.again() and site.plane.in_flight(served.id, "r1") == 1, 10)
    eventually(lambda: site.ask(served, "/cut")[2] == 1, 10)


def test_who_leaves_the_queue_never_reaches_a_replica(site: Site) -> None:
    spec = {"service": {"load_balancer": {"max_concurrency": 1, "queue_timeout_seconds": 60}}}
    full = entry_of(7, "web", free_port(), spec)
    site.serve(full, site.origin(1))
    with connected(full, "GET /wait HTTP/1.1\nHost: web\n\n"):
        eventually(lambda: site.again() and site.plane.in_flight(full.id, "r1") == 1, 10)
        with connected(full, "GET /queued HTTP/1.1\nHost: web\n\n"):
            eventually(lambda: site.again() and waiting(site, full) == 1, 10)
        eventually(lambda: site.again() and waiting(site, full) == 0, 10)
    assert "GET /queued" not in site.ask(full, "/seen")[2]


def waiting(site: Site, entry: Entry) -> int:
    """How many requests wait for a place."""
    backend = site.plane.backends[entry.backend]
    return backend.own.queued + sum(each.queued for each in backend.servers.values())
