"""Somebody who looks at pages: a Chromium page that remembers everything that went wrong in it."""

import re
from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, Response

RESULTS = Path(__file__).resolve().parents[2] / "test-results"
ABORTED = "net::ERR_ABORTED"  # what a page was still asking for when it was left


# What a browser says of requests, and of answers on their way, when a server is killed.
CUT_OFF = r"ERR_CONNECTION|ERR_EMPTY_RESPONSE|ERR_SOCKET|ERR_CONTENT_LENGTH_MISMATCH|ERR_INCOMPLETE_CHUNKED"


class Visitor:
    """A page of its own profile, signed in by `cookies`. Use as a context: at its end nothing may have gone wrong.

    `expected` holds patterns of what a test knows will go wrong, such as the answer to a refused form.
    """

    def __init__(self, browser: Browser, origin: str, cookies: dict[str, str], name: str, **options: Any) -> None:
        self.origin = origin
        self.name = re.sub(r"[^\w.-]+", "_", name)
        options = {"viewport": {"width": 1360, "height": 900}, "locale": "en-GB"} | options
        self.context = browser.new_context(**options)
        self.context.set_default_timeout(30_000)
        if cookies:
            jar = [{"name": key, "value": value, "url": origin} for key, value in cookies.items()]
            self.context.add_cookies(jar)  # type: ignore[arg-type]
        self.context.tracing.start(screenshots=True, snapshots=True)
        self.page: Page = self.context.new_page()
        self.troubles: list[str] = []
        # A busy machine may be so late with a handshake that the page gives up and dials again: no fault of the page.
        self.expected: list[str] = ["WebSocket is closed before the connection is established"]
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.troubles.append(f"page error: {error}"))
        self.page.on("requestfailed", self._failed)
        self.page.on("response", self._response)
        self.page.on("dialog", lambda dialog: (self.troubles.append(f"dialog: {dialog.message}"), dialog.dismiss()))

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.troubles.append(f"console {message.type}: {message.text} ({message.location.get('url')})")

    def _failed(self, request: Request) -> None:
        if request.failure != ABORTED:
            self.troubles.append(f"request failed: {request.method} {request.url} {request.failure}")

    def _response(self, response: Response) -> None:
        if response.status >= 400:
            self.troubles.append(f"answer {response.status}: {response.request.method} {response.url}")

    def goto(self, path: str) -> Page:
        """Open an address of the site."""
        self.page.goto(self.origin + path)
        return self.page

    def be_seen(self, seen: bool) -> None:
        """Look at another page, or at this one again."""
        self.page.evaluate(
            """(hidden) => {
              Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
              document.dispatchEvent(new Event("visibilitychange"));
            }""",
            not seen,
        )

    def mark(self) -> None:
        """Leave something in the page that a reload would take away."""
        self.page.evaluate("() => { window.notReloaded = true }")

    def marked(self) -> bool:
        """Whether the page is still the one that was marked."""
        return bool(self.page.evaluate("() => window.notReloaded === true"))

    def unexpected(self) -> list[str]:
        """What went wrong and was not expected."""
        return [each for each in self.troubles if not any(re.search(pattern, each) for pattern in self.expected)]

    def __enter__(self) -> "Visitor":
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if kind is None:
            # What is still under way gets a moment to fail.
            self.page.wait_for_timeout(50)
        elif self.troubles:
            error.add_note("in the page: " + "; ".join(self.troubles))
        failed = kind is not None or bool(self.unexpected())
        if failed:
            RESULTS.mkdir(exist_ok=True)
            self.page.screenshot(path=RESULTS / f"{self.name}.png")
            self.context.tracing.stop(path=RESULTS / f"{self.name}.zip")
        self.context.close()
        if kind is None:
            found = self.unexpected()
            assert not found, f"in the page: {found}"


def serious(page: Page) -> list[tuple[str, str, list[str]]]:
    """What axe finds in the page that keeps somebody from using it."""
    found = []
    for violation in Axe().run(page).response["violations"]:
        if violation["impact"] in {"serious", "critical"}:
            nodes = [f"{node['html'][:160]}: {node['failureSummary'][:300]}" for node in violation["nodes"][:3]]
            found.append((page.url, violation["id"], nodes))
    return found
