"""Who may open a websocket, and for how long it stays open."""

import pytest
from websockets.exceptions import InvalidStatus

from tests.support.patience import within
from tests.web.site import Site, close_code, receive

CLOSES_WITHIN = 5.0


def refused(site: Site, path: str, session: str | None, origin: str | None = None) -> int:
    """The HTTP status of a handshake that is refused."""
    with pytest.raises(InvalidStatus) as refusal, site.socket(path, session, origin):
        pass
    return refusal.value.response.status_code


@pytest.fixture
def log(site: Site, service: int) -> str:
    """The address of a log's socket."""
    return f"/ws/log?replica={site.scribe.replica(service_id=service)['replica']}"


def test_nobody_is_refused(site: Site, log: str) -> None:
    assert refused(site, "/ws/feed", None) == 403
    assert refused(site, log, None) == 403
    assert refused(site, "/ws/feed", "no-such-session") == 403


def test_a_user_without_the_permission_is_refused(site: Site, log: str) -> None:
    session = site.scribe.user(name="stranger", permissions=["operate_service"])["session"]
    assert refused(site, "/ws/feed", session) == 403
    assert refused(site, log, session) == 403
    assert site.get("/session", session)[0] == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "http://127.0.0.1:1", "null"])
def test_a_page_of_another_origin_is_refused(site: Site, viewer: str, log: str, origin: str) -> None:
    assert refused(site, "/ws/feed", viewer, origin) == 403
    assert refused(site, log, viewer, origin) == 403


@pytest.mark.parametrize(
    "path",
    [
        "/ws/nothing",
        "/ws/feed?after=-1",
        "/ws/feed?after=1e9",
        "/ws/feed?after=99999999999999999999999",
        "/ws/feed?after=" + "0" * 20 + "9" * 4400,
        "/ws/feed?after=%D9%A1",
        "/ws/log",
        "/ws/log?replica=1&which=../../secret_key",
        "/ws/log?replica=999999",
        "/ws/log?operation=999999",
    ],
)
def test_an_address_that_asks_for_nothing_is_refused(site: Site, viewer: str, path: str) -> None:
    assert refused(site, path, viewer) == 403


def test_the_session_tells_why_a_handshake_was_refused(site: Site, viewer: str) -> None:
    assert site.get("/session")[0] == 401
    assert site.get("/session", viewer)[0] == 204


@pytest.mark.parametrize("which", ["feed", "log"])
def test_a_socket_closes_when_its_session_ends(site: Site, viewer: str, log: str, which: str) -> None:
    with site.socket("/ws/feed" if which == "feed" else log, viewer) as ws:
        receive(ws)
        site.scribe.end_session(key=viewer)
        with within(CLOSES_WITHIN):
            code = close_code(ws)
    assert code == 4401


def test_a_socket_closes_when_its_user_is_disabled(site: Site) -> None:
    session = site.scribe.user(name="disabled", permissions=["view_service"])["session"]
    with site.socket("/ws/feed", session) as ws:
        receive(ws)
        site.scribe.change_user(name="disabled", is_active=False)
        with within(CLOSES_WITHIN):
            code = close_code(ws)
    assert code == 4401


def test_a_socket_closes_when_the_password_changes(site: Site) -> None:
    session = site.scribe.user(name="renewed", permissions=["view_service"])["session"]
    with site.socket("/ws/feed", session) as ws:
        receive(ws)
        site.scribe.change_user(name="renewed", password="!unusable")
        assert close_code(ws) == 4401


def test_a_socket_closes_when_the_permission_is_taken_away(site: Site, viewer: str) -> None:
    session = site.scribe.user(name="demoted", permissions=["view_service"])["session"]
    with site.socket("/ws/feed", session) as ws, site.socket("/ws/feed", viewer) as other:
        receive(ws)
        site.scribe.revoke(name="demoted")
        with within(CLOSES_WITHIN):
            code = close_code(ws)
        assert receive(other)["type"] == "hello"
        with pytest.raises(TimeoutError):
            receive(other, seconds=0.1)  # the others stay
    assert code == 4403
