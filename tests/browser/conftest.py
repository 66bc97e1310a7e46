"""Fixtures of the browser tests: one Chromium and one web process for a module, a visitor for each test."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.browser.visitor import Visitor
from tests.web.site import ROOT, Scribe, Site

FLAGS = ["--no-sandbox", "--font-render-hinting=none", "--disable-lcd-text", "--force-color-profile=srgb"]
POWERS = ["view_service", "operate_service", "deploy_service"]
BUILD = "import django; django.setup(); from controlplane import static; static.build()"
_numbers = count(1)

expect.set_options(timeout=20_000)  # a busy machine: what is expected comes, but not always in five seconds


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here drives Chromium."""
    for item in items:
        if item.path.is_relative_to(os.path.dirname(__file__)):
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.needs("chromium"))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A running Chromium."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        yield browser
        browser.close()


class Desk(Site):
    """A web process as in production (hashed static files, no debug), and the clerk who writes its rows."""

    def __init__(self, statics: str) -> None:
        super().__init__("controlplane.settings", ROLLCALL_STATIC_ROOT=statics)
        self.clerk = Scribe(self.environment, "tests.browser.clerk")
        subprocess.run([sys.executable, "-c", BUILD], cwd=ROOT, env=self.environment, check=True, timeout=180)

    def close(self) -> None:
        """End everything that was started."""
        self.clerk.close()
        super().close()


@pytest.fixture(scope="session")
def statics(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where the static files of this run are built: nobody else puts newer ones in their place."""
    return str(tmp_path_factory.mktemp("static") / "files")


@pytest.fixture(scope="module")
def desk(statics: str) -> Iterator[Desk]:
    """The web process of a module."""
    made = Desk(statics)
    try:
        made.start()
        yield made
    finally:
        made.close()


@pytest.fixture
def clerk(desk: Desk) -> Scribe:
    """Writes what the controller and its jobs would."""
    return desk.clerk


@pytest.fixture
def visit(desk: Desk, chromium: Browser, request: pytest.FixtureRequest) -> Callable[..., Visitor]:
    """Makes a visitor with powers: `with visit() as visitor`, `visit(["view_service"])`, `visit(None)` signed out."""

    def make(powers: list[str] | None = POWERS, **options: Any) -> Visitor:
        cookies = {}
        if powers is not None:
            session = desk.clerk.user(name=f"visitor-{next(_numbers)}", permissions=powers)["session"]
            cookies = desk.cookies(session)
        return Visitor(chromium, desk.origin, cookies, request.node.name, **options)

    return make


@pytest.fixture
def name() -> str:
    """A service name that no other test of the module has."""
    return f"shop-{next(_numbers)}"
