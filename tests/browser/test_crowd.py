"""A service of a thousand replicas: a hundred have a row at first, and only what changed is touched."""

from collections.abc import Callable

from playwright.sync_api import expect

from tests.browser.visitor import Visitor
from tests.web.site import Scribe

Visit = Callable[..., Visitor]
COUNT = 1000


STEP = 100


def test_a_thousand_replicas_are_shown_and_only_what_changed_is_touched(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name, replicas=COUNT)
    clerk.crowd(name=name, count=COUNT)
    with visit() as visitor:
        page = visitor.goto(f"/services/{name}/")
        rows = page.locator("#replicas tbody tr")
        expect(rows).to_have_count(STEP)
        expect(page.locator("#replicas-rest")).to_have_text(f"The newest {STEP} of {COUNT} replicas have a row.")
        expect(page.locator("#cells .stretch")).to_have_count(1)
        expect(page.locator("#sides .stretch")).to_have_count(1)
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
        clerk.flap(name=name, first=COUNT - 29, last=COUNT, ok=False)
        expect(page.locator("#replicas tr[data-state=NOT_READY]")).to_have_count(30)
        touched = page.evaluate("() => [...window.touched].map(Number)")
        assert sorted(touched) == list(range(COUNT - 29, COUNT + 1))
        expect(page.locator("#cells .stretch")).to_have_count(2)


def test_any_of_a_thousand_replicas_is_found(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name, replicas=COUNT)
    clerk.crowd(name=name, count=COUNT)
    with visit() as visitor:
        page = visitor.goto(f"/services/{name}/")
        rows, states = page.locator("#replicas tbody tr"), page.get_by_label("State", exact=True)
        expect(rows).to_have_count(STEP)
        page.get_by_role("button", name="Show 100 more").click()
        expect(rows).to_have_count(2 * STEP)
        page.get_by_role("searchbox", name="Number, version, address or reason").fill("#777")
        expect(rows).to_have_count(1)
        expect(page.locator("#more-replicas")).to_be_hidden()
        clerk.flap(name=name, first=1, last=3, ok=False)
        clerk.pending(name=name)
        page.get_by_role("searchbox").fill("")
        expect(rows.first.locator(".badge")).to_have_text("PENDING")
        # A thousand of them would keep a processor busy; one that has an end may still be on its way.
        page.wait_for_function("() => document.getAnimations().length === 0")
        expect(rows).to_have_count(STEP)
        expect(states.locator("option")).to_have_text(
            [f"Every state: {COUNT + 1}", f"READY: {COUNT - 3}", "NOT_READY: 3", "PENDING: 1"]
        )
        states.select_option("NOT_READY")
        expect(rows).to_have_count(3)
        clerk.flap(name=name, first=2, last=3, ok=True)
        expect(rows).to_have_count(1)
        clerk.flap(name=name, first=1, last=1, ok=True)
        expect(page.locator("#no-replicas")).to_have_text("No replica fits the filters.")
        states.select_option("")
        page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
        expect(rows).to_have_count(COUNT + 1)
        page.evaluate("() => dispatchEvent(new Event('afterprint'))")
        expect(rows).to_have_count(STEP)
