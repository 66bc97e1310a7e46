"""Which websocket handshakes come from our own page."""

import pytest

from controlplane.origin import same_origin


def headers(origin: str | None, host: str | None = "127.0.0.1:8000") -> list[tuple[bytes, bytes]]:
    found = [(b"host", host.encode())] if host else []
    return found + ([(b"origin", origin.encode())] if origin is not None else [])


@pytest.mark.parametrize("origin", ["http://127.0.0.1:8000", "https://127.0.0.1:8000", "HTTP://127.0.0.1:8000"])
def test_our_own_page_may(origin: str) -> None:
    assert same_origin(headers(origin), [])


@pytest.mark.parametrize(
    "origin",
    [
        None,
        "",
        "null",
        "http://127.0.0.1:20001",  # a replica on the same host: the browser sends our cookie from there too
        "http://127.0.0.1",
        "http://evil.example",
        "http://127.0.0.1:8000.evil.example",
        "http://evil.example@127.0.0.1:8001",
        "file://127.0.0.1:8000",
        "http://[::1",
    ],
)
def test_nobody_else_may(origin: str | None) -> None:
    assert not same_origin(headers(origin), [])


def test_two_origins_or_no_host_are_refused() -> None:
    assert not same_origin([*headers("http://127.0.0.1:8000"), (b"origin", b"http://127.0.0.1:8000")], [])
    assert not same_origin(headers("http://127.0.0.1:8000", host=None), [])


def test_a_trusted_origin_may() -> None:
    assert same_origin(headers("https://rollcall.example", host="127.0.0.1:8000"), ["https://rollcall.example"])
