"""A service of a thousand replicas: painted at once, and patched where something changed and nowhere else."""

from collections.abc import Callable

from playwright.sync_api import expect

from tests.browser.visitor import Visitor
from tests.web.site import Scribe

Visit = Callable[..., Visitor]
COUNT = 1000


def test_a_thousand_rows_are_painted_and_only_what_changed_is_touched(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name, replicas=COUNT)
    clerk.crowd(name=name, count=COUNT)
    with visit() as visitor:
        page = visitor.goto(f"/services/{name}/")
        rows = page.locator("#replicas tbody tr")
        expect(rows).to_have_count(COUNT)
        expect(page.locator("#cells .stretch")).to_have_count(1)
        drawn = page.evaluate("() => performance.getEntriesByName('first-contentful-paint')[0].startTime")
        received = page.evaluate("() => performance.getEntriesByType('navigation')[0].responseEnd")
        assert drawn - received < 5000
        page.evaluate(
            """() => { window.touched = new Set(); new MutationObserver((changes) => {
              for (const change of changes) {
                const row = change.target.parentElement?.closest("tr") ?? change.target.closest?.("tr");
                if (row && !change.target.parentElement?.closest("time") && change.target.tagName !== "TIME")
                  window.touched.add(row.dataset.row);
              }
            }).observe(document.querySelector("#replicas tbody"), {
              subtree: true, childList: true, characterData: true, attributes: true});
            }"""
        )
        clerk.flap(name=name, first=101, last=200, ok=False)
        expect(page.locator("#replicas tr[data-state=NOT_READY]")).to_have_count(100)
        touched = page.evaluate("() => [...window.touched].map(Number)")
        assert sorted(touched) == list(range(101, 201))
        expect(page.locator("#cells .stretch")).to_have_count(2)
