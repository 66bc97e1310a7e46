"""The feed's module in Chromium: every event once, over a killed server, a line that goes, a session that ends."""

import signal
from collections.abc import Iterator

import pytest

from tests.support.needs import needs
from tests.web.browser import Browser, Tab
from tests.web.site import Site

pytestmark = [pytest.mark.browser, needs("chromium")]


@pytest.fixture
def own_site() -> Iterator[Site]:
    """A server for one test, which may do to it what it likes."""
    made = Site("tests.web.page_settings")
    try:
        yield made.start()
    finally:
        made.close()


@pytest.fixture
def session(own_site: Site) -> str:
    """The session of a user who may see services."""
    made: str = own_site.scribe.user(name="ann", permissions=["view_service"])["session"]
    return made


@pytest.fixture
def tab(own_site: Site, session: str, browser: Browser) -> Iterator[Tab]:
    """A window on the site, signed in."""
    made = browser.tab(own_site.origin, own_site.cookies(session))
    yield made
    made.close()


def test_every_event_arrives_once_whatever_happens_to_server_and_line(own_site: Site, tab: Tab) -> None:
    service = own_site.scribe.service(name="web")
    ids = own_site.scribe.emit(service_id=service, count=700, each=50)
    tab.goto("/test/feed?after=0")
    tab.until(f"ids.at(-1) === {ids[-1]} && feed.state === 'live'")
    own_site.kill()
    tab.until("feed.state === 'lost'")
    ids += own_site.scribe.emit(service_id=service, count=60, each=3)
    own_site.start()
    ids += own_site.scribe.emit(service_id=service, count=60, each=3)
    tab.until(f"ids.at(-1) === {ids[-1]} && feed.state === 'live'")
    tab(lambda page: page.context.set_offline(True))
    ids += own_site.scribe.emit(service_id=service, count=60, each=3)
    tab(lambda page: page.context.set_offline(False))
    ids += own_site.scribe.emit(service_id=service, count=60, each=3)
    tab.until(f"ids.at(-1) === {ids[-1]}")
    assert tab.ask("ids") == ids
    tab.until(f"batches.flat().length === {len(ids)}")
    assert tab.ask("batches.flat()") == ids
    assert tab.ask("states.slice(0, 3)") == ["connecting", "live", "lost"]
    assert tab.ask("resets") == []


def test_a_session_that_ends_is_said(own_site: Site, tab: Tab, session: str) -> None:
    tab.goto("/test/feed?after=0")
    tab.until("feed.state === 'live'")
    own_site.scribe.end_session(key=session)
    tab.until("feed.state === 'signed-out'")


def test_a_page_that_was_never_signed_in_is_told_so(own_site: Site, browser: Browser) -> None:
    tab = browser.tab(own_site.origin, {})
    tab.goto("/test/feed?after=0")
    tab.until("feed.state === 'signed-out'")
    tab.close()


def test_after_a_reset_it_goes_on_from_a_new_snapshot(own_site: Site, tab: Tab) -> None:
    service = own_site.scribe.service(name="web")
    ids = own_site.scribe.emit(service_id=service, count=10)
    own_site.scribe.prune_events(up_to=ids[5])
    tab.goto("/test/feed?after=2")
    tab.until("resets.length === 1")
    assert tab.ask("ids") == []
    tab.ask(f"feed.resume({ids[7]})")
    tab.until(f"ids.at(-1) === {ids[-1]}")
    assert tab.ask("ids") == ids[8:]
    assert tab.troubles == []


def test_a_silent_line_is_noticed(own_site: Site, tab: Tab) -> None:
    """The server stands still, as a laptop's line does after it slept: nobody says that the connection is dead."""
    assert own_site.process is not None
    tab.goto("/test/feed?after=0")
    tab.until("feed.state === 'live'")
    own_site.process.send_signal(signal.SIGSTOP)
    try:
        tab.until("feed.state === 'lost'", seconds=25)
    finally:
        own_site.process.send_signal(signal.SIGCONT)
    tab.until("feed.state === 'live'")
