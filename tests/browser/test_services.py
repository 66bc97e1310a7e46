"""The page of all services in use: filters, order, pages, the note on others, and acting on many at once."""

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.visitor import Visitor
from tests.web.site import Scribe

Visit = Callable[..., Visitor]


def names(page: Page) -> list[str]:
    """The services that are shown, in their order."""
    return [str(row.get_attribute("data-row")) for row in page.locator("#services tbody tr").all()]


def three(clerk: Scribe, name: str) -> list[str]:
    """Three services that differ."""
    made = [f"{name}-{letter}" for letter in "abc"]
    for each, status in zip(made, ("READY", "FAILED", "NOT_READY"), strict=True):
        clerk.deploy(name=each)
        clerk.report(name=each, status=status, reason=f"it is {status.lower()}")
    return made


def test_status_and_order_are_in_the_address_and_follow_what_happens(visit: Visit, clerk: Scribe, name: str) -> None:
    a, b, c = three(clerk, name)
    with visit() as visitor:
        page = visitor.goto(f"/?q={name}")
        visitor.mark()
        expect(page.locator("#services tbody tr")).to_have_count(3)
        page.get_by_label("Status").select_option("trouble")
        expect(page.locator("#services tbody tr")).to_have_count(2)
        expect(page).to_have_url(re.compile(rf"/\?q={name}&status=trouble$"))
        expect(page.locator("#count")).to_have_text(re.compile(r"^2 of \d+$"))
        page.get_by_role("button", name="Status").click()
        expect(page.locator('[data-sort="status"]')).to_have_attribute("aria-sort", "ascending")
        expect(page.locator("#services tbody tr").first).to_have_attribute("data-row", b)
        # What gets into trouble comes by itself, what gets out of it goes.
        clerk.ready(name=a)
        clerk.report(name=a, status="NOT_READY", reason="it fell ill")
        expect(page.locator(f'tr[data-row="{a}"] .cell[data-state=READY]')).to_have_count(1)
        clerk.report(name=b, status="READY", reason="it is well")
        expect(page.locator(f'tr[data-row="{b}"]')).to_have_count(0)
        assert names(page) == [a, c]
        assert visitor.marked()
        page.reload()
        expect(page.locator("#services tbody tr")).to_have_count(2)
        expect(page.get_by_label("Status")).to_have_value("trouble")
        page.get_by_role("button", name="Clear").click()
        expect(page).to_have_url(re.compile(r"/\?sort=status$"))
        expect(page.locator(f'tr[data-row="{b}"]')).to_be_visible()


def test_many_services_come_in_pages_and_a_note_tells_of_the_others(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.throng(name=name, count=60)
    with visit() as visitor:
        page = visitor.goto(f"/?q={name}")
        expect(page.locator("#services tbody tr")).to_have_count(50)
        expect(page.locator("#pages")).to_contain_text("Page 1 of 2")
        visitor.mark()
        clerk.deploy(name=f"{name}-000")  # one of this page
        expect(page.locator(f'tr[data-row="{name}-000"] .ready .figure')).to_have_text("0 / 2")
        expect(page.locator("#news")).to_be_hidden()
        clerk.deploy(name=f"{name}-0-new")
        expect(page.locator("#news")).to_contain_text("On other pages: 1 new.")
        page.get_by_role("button", name="Show").click()
        expect(page.locator(f'tr[data-row="{name}-0-new"]')).to_be_visible()
        expect(page.locator("#news")).to_be_hidden()
        assert visitor.marked()
        page.get_by_role("link", name="Next").click()
        expect(page.locator("#services tbody tr")).to_have_count(11)
        expect(page.locator("#connection")).to_have_text("Live")  # another page: its script hears what is typed
        page.get_by_role("searchbox").fill(f"{name}-01")
        expect(page.locator("#services tbody tr")).to_have_count(10)
        expect(page.locator("#pages")).to_be_hidden()


def test_several_are_scaled_at_once_after_they_were_named(visit: Visit, clerk: Scribe, name: str) -> None:
    a, b, c = three(clerk, name)
    with visit() as visitor:
        page = visitor.goto(f"/?q={name}")
        expect(page.locator("#bulk")).to_be_hidden()
        page.get_by_label(f"Select {a}").check()
        page.get_by_label(f"Select {c}").check()
        expect(page.locator("#selected")).to_have_text("2 services selected")
        clerk.report(name=b, status="READY", reason="something else happens")
        expect(page.get_by_label(f"Select {a}")).to_be_checked()
        page.locator("#bulk").get_by_role("button", name="Scale").click()
        dialog = page.get_by_role("dialog", name="Scale 2 services?")
        expect(dialog.locator("#bulk-names li")).to_have_text([a, c])
        dialog.get_by_label("Replicas of each").fill("7")
        dialog.get_by_role("button", name="Scale").click()
        expect(page.locator("#toasts")).to_contain_text("2 services are scaled.")
        expect(page.locator("#bulk")).to_be_hidden()
        expect(page.locator(f'tr[data-row="{c}"] .ready .figure')).to_have_text("0 / 7")
        assert [clerk.target_of(name=each) for each in (a, b, c)] == [7, 2, 7]


def test_all_that_match_are_taken_down_over_all_pages(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.throng(name=name, count=53)
    with visit() as visitor:
        page = visitor.goto(f"/?q={name}")
        page.get_by_label("Select all on this page").check()
        expect(page.locator("#selected")).to_have_text("50 services selected")
        page.get_by_role("button", name="Select all 53 that match").click()
        expect(page.locator("#selected")).to_have_text("53 services selected")
        page.locator("#bulk").get_by_role("button", name="Take down").click()
        dialog = page.get_by_role("dialog", name="Take down 53 services?")
        expect(dialog.locator("#bulk-names li")).to_have_count(53)
        dialog.get_by_role("button", name="Take down").click()
        expect(page.locator("#toasts")).to_contain_text("53 services are taken down.")
        assert clerk.count_events(trigger="down_requested", name=f"{name}-052") == 1


def test_an_endpoint_is_copied_and_a_scaling_taken_back(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name, replicas=2)
    with visit(permissions=["clipboard-read", "clipboard-write"]) as visitor:
        page = visitor.goto(f"/services/{name}/")
        page.get_by_role("button", name="Scale").click()
        page.get_by_role("dialog").get_by_label("Replicas").fill("6")
        page.get_by_role("dialog").get_by_role("button", name="Scale").click()
        undo = page.locator("#toasts").get_by_role("button", name="Undo")
        undo.hover()  # what is pointed at stays, however late the figure comes
        expect(page.locator("#ready")).to_have_text("0 / 6")
        undo.click()
        expect(page.locator("#ready")).to_have_text("0 / 2")
        expect(page.locator("#toasts")).to_contain_text(f"{name} is to have 2 replicas.")
        address = clerk.endpoint(name=name)
        page = visitor.goto(f"/?q={name}")
        page.locator(f'tr[data-row="{name}"]').hover()
        page.get_by_role("button", name="Copy the endpoint").click()
        expect(page.get_by_text("Copied")).to_be_visible()
        assert page.evaluate("() => navigator.clipboard.readText()") == address


def test_the_load_is_drawn_from_the_samples(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name)
    clerk.sampled(name=name, requests=120, in_flight=3.0)
    with visit() as visitor:
        page = visitor.goto(f"/?q={name}")
        load = page.locator(f'tr[data-row="{name}"] .load')
        expect(load).to_contain_text("req/s")
        expect(load).to_contain_text("3 in flight")
        expect(load.locator("svg").first).to_have_attribute(
            "aria-label", re.compile("req/s, and the ten minutes before")
        )


def test_the_focus_stays_on_a_row_that_moves(visit: Visit, clerk: Scribe, name: str) -> None:
    a, _, c = three(clerk, name)
    with visit() as visitor:
        page = visitor.goto(f"/?q={name}&sort=status")
        link = page.locator(f'tr[data-row="{a}"] a[data-main]')
        link.focus()
        clerk.report(name=a, status="FAILED", reason="it has failed")
        expect(page.locator("#services tbody tr").first).to_have_attribute("data-row", a)
        expect(link).to_be_focused()
        assert names(page)[-1] == c
