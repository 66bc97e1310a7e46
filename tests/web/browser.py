"""Chromium for tests, in a thread of its own: Playwright leaves a running event loop behind where it is used."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from playwright.sync_api import BrowserContext, Error, Page, sync_playwright

T = TypeVar("T")

PROGRAM = "/usr/bin/chromium"
FLAGS = ["--font-render-hinting=none", "--disable-lcd-text", "--force-color-profile=srgb", "--no-sandbox"]


ABORTED = "net::ERR_ABORTED"  # what a page was still asking for when it was left
LATE = "WebSocket is closed before the connection is established"  # it was left, or the machine is busy: it dials again


def told(kind: str, text: str) -> bool:
    """Whether what the console says is a fault of the page."""
    return kind in {"error", "warning"} and LATE not in text


class Browser:
    """One Chromium. What is done with it, is done through `do`."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="playwright")
        self._playwright, self._chromium = self.do(self._launch)

    def _launch(self) -> tuple[Any, Any]:
        playwright = sync_playwright().start()
        return playwright, playwright.chromium.launch(executable_path=PROGRAM, args=FLAGS)

    def do(self, work: Callable[..., T], *arguments: Any) -> T:
        """The result of `work`, called in the browser's thread."""
        return self._thread.submit(work, *arguments).result()

    def tab(self, origin: str, cookies: dict[str, str], **options: Any) -> "Tab":
        """A new window with nothing in it but the cookies."""
        return Tab(self, origin, cookies, options)

    def close(self) -> None:
        """End Chromium."""
        self.do(lambda: (self._chromium.close(), self._playwright.stop()))
        self._thread.shutdown()

    def context(self, options: dict[str, Any]) -> BrowserContext:
        """A new profile."""
        context: BrowserContext = self._chromium.new_context(**options)
        return context


class Tab:
    """One page, which is called with what to do with it: `tab(lambda page: page.title())`.

    `troubles` has every console error, uncaught exception, failed request and answer of 400 or above.
    """

    def __init__(self, browser: Browser, origin: str, cookies: dict[str, str], options: dict[str, Any]) -> None:
        self._browser, self.origin = browser, origin
        self.troubles: list[str] = []
        self._page = browser.do(self._open, cookies, options)

    def _open(self, cookies: dict[str, str], options: dict[str, Any]) -> Page:
        context = self._browser.context({"viewport": {"width": 1000, "height": 700}} | options)
        context.add_cookies([{"name": name, "value": value, "url": self.origin} for name, value in cookies.items()])
        page = context.new_page()
        say = self.troubles.append
        page.on("console", lambda message: say(message.text) if told(message.type, message.text) else None)
        page.on("pageerror", lambda error: say(f"uncaught: {error}"))
        page.on(
            "requestfailed",
            lambda request: request.failure != ABORTED and say(f"failed: {request.url} {request.failure}"),
        )
        page.on("response", lambda answer: say(f"{answer.status}: {answer.url}") if answer.status >= 400 else None)
        return page

    def __call__(self, work: Callable[[Page], T]) -> T:
        return self._browser.do(work, self._page)

    def goto(self, path: str) -> None:
        """Open an address of the site."""
        self(lambda page: page.goto(self.origin + path))

    def ask(self, expression: str, argument: Any = None) -> Any:
        """The value of a JavaScript expression."""
        return self(lambda page: page.evaluate(f"(argument) => ({expression})", argument))

    def until(self, expression: str, seconds: float = 30.0) -> Any:
        """Wait until a JavaScript expression is true; its value."""
        try:
            found = self(lambda page: page.wait_for_function(f"() => {expression}", timeout=seconds * 1000, polling=50))
        except Error as error:
            raise AssertionError(f"{error.message}\ntroubles: {self.troubles}") from None
        return self._browser.do(found.json_value)

    def close(self) -> None:
        """Close the page and its profile."""
        self(lambda page: page.context.close())
