"""Servers that do everything wrong: a probe of them ends in time, in bounded memory, with a reason."""

import asyncio
import gzip
import socket
import struct
import tracemalloc

import pytest

from replicas.providers.probing import ProbeRequest, sweep
from tests.providers.probe_cast import ask, servers_fixture  # noqa: F401
from tests.providers.probe_servers import Servers, http, not_accepting

OK_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"


# --- slow ones


def test_a_body_that_drips_ends_at_the_deadline(servers: Servers):
    result = ask(servers.dripping(OK_HEAD + b"\r\n", b"."), timeout=0.5)
    assert (result.ok, result.status, result.error) == (False, 200, "timeout")
    assert result.detail == "no answer to GET /healthz within 0.5 s (connected, body still arriving)"
    assert result.excerpt.startswith("..")
    assert 0.5 <= result.seconds < 20


def test_a_failure_whose_body_drips_is_told_by_its_status(servers: Servers):
    result = ask(servers.dripping(b"HTTP/1.1 503 Busy\r\n\r\n", b"."), timeout=0.3)
    assert (result.status, result.error) == (503, "status")


def test_headers_that_drip(servers: Servers):
    result = ask(servers.dripping(OK_HEAD, b"X"), timeout=0.4)
    assert (result.ok, result.status, result.error) == (False, None, "timeout")
    assert "no complete headers yet" in result.detail


def test_silence(servers: Servers):
    result = ask(servers.hanging(), timeout=0.3)
    assert (result.ok, result.error) == (False, "timeout")
    assert "no complete headers yet" in result.detail


def test_a_server_that_does_not_accept():
    with not_accepting() as port:
        result = ask(port, timeout=0.4)
    assert (result.ok, result.error) == (False, "timeout")
    assert result.detail == "no answer to GET /healthz within 0.4 s (not connected yet)"


def test_a_server_that_never_closes_is_ready_when_its_body_is_complete(servers: Servers):
    assert ask(servers.hanging(http("200 OK", b"ok")), timeout=10).ok


def test_a_big_post_that_nobody_reads(servers: Servers):
    async def handler(reader, writer):
        reader._transport.pause_reading()
        await asyncio.sleep(60)

    result = ask(servers.start(handler), method="POST", body=b"x" * (32 << 20), timeout=0.5)
    assert (result.ok, result.error) == (False, "timeout")
    assert result.seconds < 20


# --- too much of it


@pytest.mark.parametrize(
    ("first", "again"),
    [
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
        (OK_HEAD, b"X-Header: value\r\n"),
        (OK_HEAD + b"X-Long: ", b"a" * 4096),
        (OK_HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;", b"a" * 4096),
    ],
    ids=["100 storm", "103 storm", "endless headers", "endless header", "endless chunk extension"],
)
def test_floods_are_cut_off_early(servers: Servers, first: bytes, again: bytes):
    result = ask(servers.flooding(first, again), timeout=10)
    assert (result.ok, result.error) == (False, "bad_response")
    assert "KiB and still no complete answer" in result.detail or "not HTTP" in result.detail


def test_an_endless_body_is_ready_after_its_first_part(servers: Servers):
    result = ask(servers.flooding(OK_HEAD + b"\r\n", b"x" * 65536), timeout=10)
    assert result.ok
    assert len(result.excerpt) == 512


def test_many_tiny_chunks(servers: Servers):
    port = servers.flooding(OK_HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 100)
    assert ask(port, timeout=10).ok


def test_a_length_that_is_never_sent(servers: Servers):
    result = ask(servers.hanging(OK_HEAD + b"Content-Length: 9223372036854775807\r\n\r\nhello"), timeout=0.3)
    assert (result.ok, result.status, result.error, result.excerpt) == (False, 200, "timeout", "hello")


def test_compressed_bodies_are_not_expanded(servers: Servers):
    bomb = gzip.compress(b"\0" * (64 << 20))
    port = servers.answering(http("200 OK", bomb, "Content-Encoding: gzip"))
    tracemalloc.start()
    try:
        result = ask(port)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
    assert (result.ok, result.excerpt) == (True, "(gzip body, not decoded)")


def test_a_flood_does_not_hold_up_the_others(servers: Servers):
    floods = [servers.flooding(OK_HEAD + b"\r\n", b"HTTP/1.1 100 Continue\r\n\r\n" * 500) for _ in range(5)]
    good = servers.answering(http("200 OK"))
    ports = floods + [good] * 50
    results = sweep([ProbeRequest(n, f"http://127.0.0.1:{port}", "/", timeout=20) for n, port in enumerate(ports)])
    assert all(result.ok for result in results[5:])


# --- nonsense


@pytest.mark.parametrize(
    "answer",
    [
        b"\x00\x01\x02\xff" * 100,
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"<html>hello</html>",
        b"HTTP/1.1 OK\r\n\r\n",
        b"HTTP/1.1 99999 Much\r\n\r\n",
        b"HTTP/9.9 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello",
        b"HTTP/1.1 200 OK\r\nX: a\x00b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"A" * 5000,
    ],
)
def test_what_is_not_http_is_said_to_be_so(servers: Servers, answer: bytes):
    result = ask(servers.answering(answer))
    assert (result.ok, result.error) == (False, "bad_response")
    assert result.detail.isprintable()
    assert len(result.detail) < 300


def test_an_informational_answer_comes_before_the_real_one(servers: Servers):
    port = servers.answering(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + http("200 OK", b"ok"))
    assert ask(port).excerpt == "ok"


@pytest.mark.parametrize("status", [b"100 Continue", b"103 Early Hints"])
def test_an_informational_answer_alone_is_none(servers: Servers, status: bytes):
    result = ask(servers.answering(b"HTTP/1.1 " + status + b"\r\n\r\n"))
    assert (result.ok, result.status, result.error) == (False, None, "bad_response")


def test_switching_protocols_is_not_ready(servers: Servers):
    answer = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n\x00\x01"
    result = ask(servers.answering(answer))
    assert (result.ok, result.status, result.error) == (False, 101, "status")


def test_a_second_answer_is_ignored(servers: Servers):
    assert ask(servers.answering(http("200 OK", b"one") + http("500 Oops", b"two"))).excerpt == "one"


# --- gone in the middle


def test_a_body_that_ends_with_its_connection(servers: Servers):
    result = ask(servers.answering(OK_HEAD + b"\r\nhello"))
    assert (result.ok, result.excerpt) == (True, "hello")


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        (b"", "closed", "the connection was closed"),
        (OK_HEAD, "bad_response", "cut off in the middle of the headers"),
        (OK_HEAD + b"Content-Length: 100\r\n\r\nhello", "bad_response", "cut off in the middle of the body"),
        (OK_HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhel", "bad_response", "cut off in the middle of the body"),
    ],
)
def test_connections_that_end_too_early(servers: Servers, answer: bytes, error: str, said: str):
    result = ask(servers.answering(answer))
    assert (result.ok, result.error) == (False, error)
    assert said in result.detail


def test_a_reset_is_reported_and_the_request_is_not_repeated(servers: Servers):
    async def handler(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    result = ask(servers.start(handler))
    assert (result.ok, result.error) == (False, "reset")
    assert len(servers.peers) == 1
