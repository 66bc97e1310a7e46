"""Anything in a websocket's address or messages ends in a refusal or in silence, and never in a fault."""

import contextlib
import random

import pytest
from websockets.exceptions import InvalidStatus, WebSocketException
from websockets.sync.client import ClientConnection, connect

from tests.fuzz.effort import FACTOR
from tests.support.polling import eventually
from tests.web.site import Site, receive

SEED = 20260314
PATHS = ["/ws/feed", "/ws/log", "/ws/nothing", "/ws/feed/", "/ws"]
NAMES = ["after", "service", "replica", "operation", "which", "tail", "x", "", "after[]"]
VALUES = [
    "0",
    "1",
    "-1",
    "9" * 30,
    "1e3",
    "%00",
    "%ff%fe",
    "%D9%A3",
    "run",
    "launch",
    "'",
    "%3Cscript%3E",
    "%0d%0a",
    "",
    "a" * 3000,
]
MESSAGES = ["", "{}", "[", '{"type":"hello"}', "\x00", "ping", "x" * 70_000, b"", b"\xff\x00", b"x" * 70_000]


def address(chance: random.Random) -> str:
    query = "&".join(f"{chance.choice(NAMES)}={chance.choice(VALUES)}" for _ in range(chance.randrange(4)))
    return f"{chance.choice(PATHS)}?{query}"


def test_no_address_and_no_message_is_a_fault(site: Site, viewer: str) -> None:
    chance = random.Random(SEED)
    for _ in range(60 * FACTOR):
        asked = address(chance)
        with contextlib.suppress(WebSocketException), site.socket(asked, viewer) as link:
            talk(link, chance)
    with site.socket("/ws/feed", viewer) as link:
        assert receive(link)["type"] == "hello"
    eventually(lambda: site.get("/healthz")[0] == 200)
    said = site.output.read_text()
    assert "Traceback" not in said, said[-3000:]


def test_a_handshake_that_is_too_large_is_refused_and_let_go(site: Site, viewer: str) -> None:
    for large, header, status in (
        (f"/ws/feed?x={'a' * 9000}", "", 414),
        ("/ws/feed", "a" * 9000, 431),
        (f"/ws/feed?x={'a' * 7000}", "", 403),
    ):
        with (
            pytest.raises(InvalidStatus) as refused,
            connect(
                f"ws://127.0.0.1:{site.port}{large}",
                origin="http://elsewhere",
                additional_headers={"X-Large": header},
                open_timeout=30,
            ),
        ):
            pass
        assert refused.value.response.status_code == status
    with site.socket("/ws/feed", viewer) as link:
        assert receive(link)["type"] == "hello"


def talk(link: ClientConnection, chance: random.Random) -> None:
    """Say things that nobody asked for."""
    for _ in range(chance.randrange(4)):
        link.send(chance.choice(MESSAGES))
