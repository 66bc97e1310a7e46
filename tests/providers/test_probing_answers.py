"""What a probe sends, and what it makes of answers that are plain HTTP."""

import json

import pytest

from tests.providers.probe_cast import ask, servers_fixture  # noqa: F401
from tests.providers.probe_servers import Servers, http, refusing, self_signed


@pytest.mark.parametrize("status", ["200 OK", "201 Created", "204 No Content", "299 Odd"])
def test_any_2xx_is_ready(servers: Servers, status: str):
    result = ask(servers.answering(http(status)))
    assert (result.ok, result.status, result.error) == (True, int(status[:3]), None)
    assert result.detail == f"HTTP {status[:3]} from GET /healthz"
    assert result.conclusive


@pytest.mark.parametrize("status", ["400 Bad", "404 Not Found", "500 Oops", "503 Busy", "600 Odd"])
def test_other_statuses_are_not(servers: Servers, status: str):
    result = ask(servers.answering(http(status, b"warming up")))
    assert (result.ok, result.status, result.error) == (False, int(status[:3]), "status")
    assert result.detail == f"HTTP {status[:3]} from GET /healthz"
    assert result.excerpt == "warming up"


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("https://login.example/start?token=s3cret", "to https://login.example/start:"),
        ("http://user:s3cret@other.example/", "to http://other.example/:"),
        ("/login?next=s3cret", "to /login:"),
        ("http://[broken", "to an address that cannot be read:"),
    ],
)
@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"])
def test_a_redirect_is_not_followed_and_says_where_it_points(servers: Servers, status: str, location: str, shown: str):
    result = ask(servers.answering(http(status, b"", f"Location: {location}")))
    assert (result.ok, result.status, result.error) == (False, int(status[:3]), "redirect")
    assert shown in result.detail
    assert "redirects are not followed" in result.detail
    assert "s3cret" not in result.detail
    assert len(servers.seen) == 1


def test_a_redirect_to_the_same_host_is_not_followed_either(servers: Servers):
    port = servers.answering(http("302 Found", b"", "Location: /healthz/"))
    assert ask(port).error == "redirect"
    assert len(servers.peers) == 1


def test_304_without_location(servers: Servers):
    result = ask(servers.answering(http("304 Not Modified")))
    assert (result.ok, result.error) == (False, "redirect")
    assert result.detail.startswith("HTTP 304 from GET /healthz: redirects")


def test_get_sends_one_plain_request(servers: Servers):
    port = servers.answering(http("200 OK"))
    ask(port, path="/ready?deep=1")
    head = servers.seen[0].lower()
    assert head.startswith("get /ready?deep=1 http/1.1\r\n")
    assert f"\r\nhost: 127.0.0.1:{port}\r\n" in head
    assert "\r\nconnection: close\r\n" in head
    assert "\r\naccept-encoding: identity\r\n" in head
    assert "cookie" not in head
    assert "content-length" not in head


def test_post_sends_json_and_the_given_headers(servers: Servers):
    bodies = []

    async def handler(reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
        bodies.append((head, json.loads(await reader.readexactly(length))))
        writer.write(http("200 OK"))

    prompt = {"prompt": "grüß dich", "max_tokens": 1}
    headers = {"Authorization": "Bearer s3cret", "X-Name": "ü", "Connection": "keep-alive", "Content-Length": "1"}
    result = ask(servers.start(handler), path="/v1", method="POST", body=json.dumps(prompt).encode(), headers=headers)
    assert result.ok, result
    head, body = bodies[0]
    assert body == prompt
    assert head.startswith("post /v1 http/1.1\r\n")
    assert "content-type: application/json\r\n" in head
    assert "authorization: bearer s3cret\r\n" in head
    assert "x-name: ü\r\n" in head
    assert "connection: close\r\n" in head
    assert head.count("content-length") == 1
    assert "keep-alive" not in head
    assert "s3cret" not in result.detail


def test_given_headers_replace_our_own(servers: Servers):
    ask(servers.answering(http("200 OK")), headers={"Host": "model.example", "user-agent": "curl", "Accept": "text/*"})
    head = servers.seen[0].lower()
    assert "\r\nhost: model.example\r\n" in head
    assert "\r\nuser-agent: curl\r\n" in head
    assert head.count("accept:") == 1


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("/a b", "/a%20b"),
        ("/ü?q=ü", "/%C3%BC?q=%C3%BC"),
        ("/a%20b", "/a%20b"),
        ("/x\r\nX-Evil: 1", "/x%0D%0AX-Evil:%201"),
        ("//double", "//double"),
        ("@evil.example/", "/@evil.example/"),
        ("/a#part", "/a"),
    ],
)
def test_the_path_cannot_leave_its_place(servers: Servers, path: str, sent: str):
    assert ask(servers.answering(http("200 OK")), path=path).ok
    assert servers.seen[0].split("\r\n")[0] == f"GET {sent} HTTP/1.1"
    assert "\r\nX-Evil" not in servers.seen[0]


def test_a_base_url_with_a_path(servers: Servers):
    port = servers.answering(http("200 OK"))
    assert ask(port, host="127.0.0.1", path="/healthz").ok
    assert ask(f"{port}/base/", path="/healthz").ok  # type: ignore[arg-type]
    assert servers.seen[1].startswith("GET /base/healthz ")


@pytest.mark.parametrize(
    "headers", [{"X-Bad": "a\r\nX-Evil: 1"}, {"X Bad": "1"}, {"": "1"}, {"X-Nul": "a\x00b"}, {"X:": "1"}]
)
def test_headers_that_cannot_be_sent_are_named(servers: Servers, headers: dict[str, str]):
    result = ask(servers.answering(http("200 OK")), headers=headers)
    assert (result.ok, result.error) == (False, "bad_request")
    assert "cannot be sent" in result.detail
    assert servers.seen == []


@pytest.mark.parametrize("url", ["ftp://127.0.0.1", "http://", "127.0.0.1:80", "http://127.0.0.1:99999", "http://[::1"])
def test_a_url_that_is_none(url: str):
    from replicas.providers.probing import ProbeRequest, sweep

    (result,) = sweep([ProbeRequest(1, url, "/")])
    assert (result.ok, result.error) == (False, "bad_request")


def test_each_probe_is_a_connection_of_its_own_without_memory(servers: Servers):
    port = servers.answering(http("200 OK", b"", "Set-Cookie: session=1", "Connection: keep-alive"))
    for _ in range(3):
        assert ask(port).ok
    assert len(set(servers.peers)) == 3
    assert not any("session" in head for head in servers.seen)


def test_proxies_of_the_environment_are_not_used(servers: Servers, monkeypatch: pytest.MonkeyPatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert ask(servers.answering(http("200 OK"))).ok


# --- addresses


def test_ipv6_address_is_bracketed(servers: Servers):
    port = servers.answering(http("200 OK"), host="::1")
    assert ask(port, host="[::1]").ok
    assert f"Host: [::1]:{port}".lower() in servers.seen[0].lower()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_localhost_is_tried_in_both_families(servers: Servers, host: str):
    assert ask(servers.answering(http("200 OK"), host=host), host="localhost").ok


def test_localhost_where_nothing_listens():
    with refusing() as port:
        result = ask(port, host="localhost")
    assert result.error == "refused"


def test_connection_refused():
    with refusing() as port:
        result = ask(port)
    assert (result.ok, result.status, result.error) == (False, None, "refused")
    assert result.detail == f"GET /healthz: connection refused, nothing listens at 127.0.0.1:{port}"
    assert result.seconds < 20


def test_unknown_host_name():
    result = ask(80, host="no-such-host.invalid")
    assert (result.ok, result.error) == (False, "dns")
    assert "no-such-host.invalid" in result.detail


# --- TLS


def test_self_signed_certificate_only_where_allowed(servers: Servers, tmp_path):
    port = servers.answering(http("200 OK", b"secure"), tls=self_signed(tmp_path))
    allowed = ask(port, scheme="https", insecure_tls=True)
    assert (allowed.ok, allowed.excerpt) == (True, "secure")
    refused = ask(port, scheme="https")
    assert (refused.ok, refused.error) == (False, "tls")
    assert "not trusted" in refused.detail
    assert "insecure_tls" in refused.detail


def test_https_to_a_server_that_speaks_http(servers: Servers):
    async def handler(reader, writer):
        await reader.read(1)
        writer.write(http("400 Bad Request"))

    result = ask(servers.start(handler), scheme="https", insecure_tls=True)
    assert (result.ok, result.error) == (False, "tls")
    assert "does it speak HTTPS?" in result.detail


def test_http_to_a_server_that_speaks_tls(servers: Servers, tmp_path):
    result = ask(servers.answering(http("200 OK"), tls=self_signed(tmp_path)))
    assert not result.ok
    assert result.error in ("bad_response", "closed", "reset")


def test_a_tls_handshake_that_hangs_ends_at_the_deadline(servers: Servers):
    result = ask(servers.hanging(), scheme="https", insecure_tls=True, timeout=0.4)
    assert (result.error, result.ok) == ("timeout", False)
    assert "TLS handshake not complete yet" in result.detail
    assert 0.4 <= result.seconds < 20


# --- the excerpt


@pytest.mark.parametrize(
    ("body", "excerpt"),
    [
        (b"", ""),
        (b"a\x00b\x1b[31mc\x07", "ab[31mc"),
        (b" line one\r\n\tline two\n", "line one   line two"),
        ("‮evil‬ ​zero".encode(), "evil zero"),
        (b"\xc7\x80 \xff", "ǀ �"),
        (b"x" * 600, "x" * 512),
        ("ä".encode() * 600, "ä" * 256),
        (b"x" + "ä".encode() * 600, "x" + "ä" * 255),
    ],
)
def test_excerpt_is_one_line_of_printable_text(servers: Servers, body: bytes, excerpt: str):
    assert ask(servers.answering(http("200 OK", body))).excerpt == excerpt


def test_query_is_not_shown(servers: Servers):
    result = ask(servers.answering(http("500 Oops")), path="/healthz?key=s3cret")
    assert result.detail == "HTTP 500 from GET /healthz"
