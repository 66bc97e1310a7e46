"""Sparklines are drawn from numbers alone, and what was not measured is a gap."""

import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page

from tests.browser.visitor import Visitor

Visit = Callable[..., Visitor]
DRAW = """async ({ address, values, options }) => {
  const { spark, setSpark } = await import(address);
  const node = spark();
  document.querySelector("main").append(node);
  setSpark(node, values, options);
  const [area, line] = node.children;
  const { width, height } = node.getBoundingClientRect();
  return { area: area.getAttribute("d"), line: line.getAttribute("d"), label: node.getAttribute("aria-label"),
    empty: node.classList.contains("blank"), width, height, stroke: getComputedStyle(line).stroke };
}"""


def draw(page: Page, values: list[float | None], **options: Any) -> dict[str, Any]:
    """What setSpark makes of the numbers."""
    address = re.sub(r"/js/.*", "/js/spark.js", str(page.locator("script[type=module]").first.get_attribute("src")))
    drawn: dict[str, Any] = page.evaluate(DRAW, {"address": address, "values": values, "options": options})
    return drawn


def test_numbers_become_a_line_with_gaps(visit: Visit) -> None:
    with visit() as visitor:
        page = visitor.goto("/")
        drawn = draw(page, [0, 10, None, 5], label="5 requests/s")
        assert drawn["line"] == "M0.0 23.0L40.0 1.0M120.0 12.0L120.0 12.0"
        assert drawn["area"].count("M") == drawn["area"].count("Z") == 2
        assert (drawn["label"], drawn["empty"]) == ("5 requests/s", False)
        assert (drawn["width"], drawn["height"]) == (120, 24)
        assert drawn["stroke"] != "none"


def test_nothing_measured_is_drawn_as_nothing_and_silence_as_a_line(visit: Visit) -> None:
    with visit() as visitor:
        page = visitor.goto("/")
        nothing = draw(page, [None, None])
        assert (nothing["empty"], nothing["width"], nothing["height"]) == (True, 120, 24)
        silent = draw(page, [0, 0, 0])
        assert silent["line"] == "M0.0 23.0L60.0 23.0L120.0 23.0"
        # A scale that begins at 1: one request in a minute is no mountain.
        assert draw(page, [0, 0.1], top=1)["line"] == "M0.0 23.0L120.0 20.8"
