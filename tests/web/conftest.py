"""Fixtures for tests against a real web process."""

from collections.abc import Iterator
from itertools import count

import pytest

from tests.web.browser import Browser
from tests.web.site import Site

_numbers = count(1)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """A running web process, shared by the tests of a module; each makes rows of its own in it."""
    made = Site()
    try:
        yield made.start()
    finally:
        made.close()


@pytest.fixture
def viewer(site: Site) -> str:
    """The session of a user who may see services."""
    session: str = site.scribe.user(name=f"viewer-{next(_numbers)}", permissions=["view_service"])["session"]
    return session


@pytest.fixture
def service(site: Site) -> int:
    """The id of a new service."""
    made: int = site.scribe.service(name=f"service-{next(_numbers)}")
    return made


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests of this process."""
    made = Browser()
    yield made
    made.close()
