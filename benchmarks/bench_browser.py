"""What a page of a thousand replicas costs in Chromium while a hundred of them change in each second."""

import tempfile
from collections.abc import Sequence

import psutil
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from benchmarks.crowd import cpu_seconds
from benchmarks.rows import Row, limited, percentile
from tests.browser.conftest import FLAGS, POWERS, Desk

REPLICAS = 1000
CHANGES = 2000
PACE = 0.01  # seconds between two changes
OPENINGS = 10
NAME = "web"

OPENED = """() => {
  const opening = performance.getEntriesByType("navigation")[0];
  return (opening.responseEnd - opening.requestStart) / 1000;
}"""
WATCH = """() => {
  window.frames = [];
  let last = 0;
  const next = (now) => {
    if (last) window.frames.push((now - last) / 1000);
    last = now;
    requestAnimationFrame(next);
  };
  requestAnimationFrame(next);
}"""


def run() -> list[Row]:
    """The figures."""
    with tempfile.TemporaryDirectory(prefix="rc-static-") as statics, sync_playwright() as playwright:
        desk = Desk(statics)
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        try:
            desk.start()
            desk.clerk.deploy(name=NAME, replicas=REPLICAS)
            desk.clerk.crowd(name=NAME, count=REPLICAS)
            return measure(desk, browser)
        finally:
            browser.close()
            desk.close()


def measure(desk: Desk, browser: Browser) -> list[Row]:
    """Openings of the page, then a busy time on it."""
    context = browser.new_context(viewport={"width": 1360, "height": 900})
    session = desk.clerk.user(name="ann", permissions=POWERS)["session"]
    context.add_cookies([{"name": k, "value": v, "url": desk.origin} for k, v in desk.cookies(session).items()])
    opened = [opening(context, desk) for _ in range(OPENINGS)]
    page = context.new_page()
    messages: list[str | bytes] = []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: messages.append(frame)))
    page.goto(f"{desk.origin}/services/{NAME}/")
    page.get_by_text("Live", exact=True).wait_for()
    page.evaluate(WATCH)
    before, told = spent(), len(messages)
    pace = desk.clerk.flicker(name=NAME, changes=CHANGES, pace=PACE)
    after, frames = spent(), page.evaluate("() => window.frames")
    seconds = CHANGES / pace
    shown(page)
    return [
        limited(
            "from the request for the service's page to its last byte, p50", percentile(opened, 0.5), most=0.3, unit="s"
        ),
        limited("changes in a second", pace, most=None, unit=""),
        limited("frames in a second", len(frames) / seconds, most=None, unit=""),
        limited("a frame after the one before it, p95", percentile(frames, 0.95), most=0.034, unit="s"),
        limited("a frame after the one before it, the longest", max(frames), most=None, unit="s"),
        limited("the page's process, share of a core", share(before, after, seconds, "renderer"), most=0.4, unit=""),
        limited("all of the browser, share of a core", share(before, after, seconds), most=None, unit=""),
        limited("messages in a second", (len(messages) - told) / seconds, most=10, unit=""),
    ]


def opening(context: BrowserContext, desk: Desk) -> float:
    """Seconds from the request for the page to the last byte of its answer."""
    page = context.new_page()
    page.goto(f"{desk.origin}/services/{NAME}/")
    seconds = float(page.evaluate(OPENED))
    page.close()
    return seconds


def shown(page: Page) -> None:
    """Wait until the page has come to the end: after an even number of turns all are ready."""
    assert (CHANGES // REPLICAS) % 2 == 0
    page.locator(f"#cells[aria-label$=', {REPLICAS} READY']").wait_for()
    page.locator("#replicas tbody:not(:has(tr:not([data-state=READY])))").wait_for()


def spent() -> dict[tuple[int, str], float]:
    """CPU seconds so far of each process of the browser, by its number and kind."""
    found = {}
    for process in psutil.Process().children(recursive=True):
        if "chrom" in process.name():
            found[process.pid, kind(process.cmdline())] = cpu_seconds(process.pid)
    return found


def kind(arguments: Sequence[str]) -> str:
    """What a process of the browser is for."""
    return next((each.removeprefix("--type=") for each in arguments if each.startswith("--type=")), "browser")


def share(
    before: dict[tuple[int, str], float], after: dict[tuple[int, str], float], seconds: float, only: str = ""
) -> float:
    """The share of a core that the processes of a kind, or all, have used in between."""
    return sum(cpu - before.get(key, 0.0) for key, cpu in after.items() if key[1].startswith(only)) / seconds
