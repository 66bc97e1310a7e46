"""The page of all operations in use: lanes, who works on what, the filter, and acting on many."""

import re
from collections.abc import Callable

from playwright.sync_api import expect

from tests.browser.visitor import Visitor
from tests.web.site import Scribe

Visit = Callable[..., Visitor]


def test_lanes_workers_and_times_are_told(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name, replicas=3)
    running, waiting, _ = (clerk.pending(name=name) for _ in range(3))
    for number in (running, waiting):
        clerk.provisioning(name=name, number=number)
    with visit() as visitor:
        page = visitor.goto(f"/operations/?q={name}")
        row = page.locator("#live tr", has_text=f"{name} #{running}")
        expect(row.locator(".lane")).to_have_text(re.compile(r"^long\S+ \d+$"))
        expect(row.locator(".took time")).to_have_text(re.compile(r"^\d+ (s|min)$"))
        expect(page.locator("#lanes")).to_contain_text("2 running, 1 queued")
        other = page.locator("#live tr", has_text=f"{name} #{waiting}")
        clerk.waiting(name=name, number=waiting, reason="setup")
        expect(page.locator("#lanes")).to_contain_text("1 running, 1 waiting, 1 queued")
        expect(other.locator(".why")).to_have_text("Waits for: setup.")
        expect(other.locator(".lane")).to_have_text("long")  # the polls of a wait go from worker to worker
        row.get_by_role("link", name="Log").click()
        expect(page.get_by_role("tab", name="Launch")).to_have_attribute("aria-selected", "true")


def test_several_launches_are_cancelled_at_once(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name, replicas=3)
    first, second, third = (clerk.pending(name=name) for _ in range(3))
    with visit() as visitor:
        page = visitor.goto(f"/operations/?q={name}")
        visitor.mark()
        for number in (first, third):
            page.get_by_label(f"Select launch of {name} #{number}").check()
        expect(page.locator("#bulk").get_by_role("button", name="Retry now")).to_be_disabled()
        page.locator("#bulk").get_by_role("button", name="Cancel").click()
        dialog = page.get_by_role("dialog", name="Cancel 2 operations?")
        expect(dialog.locator("li")).to_have_text([f"launch of {name} #{first}", f"launch of {name} #{third}"])
        dialog.get_by_role("button", name="Cancel them").click()
        expect(page.locator("#toasts")).to_contain_text("2 operations are cancelled.")
        expect(page.locator("#live tbody tr")).to_have_count(1)
        expect(page.locator("#live tbody tr")).to_contain_text(f"#{second}")
        expect(page.locator("#past tbody .why")).to_have_text([re.compile(r"^Launch cancelled by \S+\.$")] * 2)
        assert visitor.marked()


def test_the_filter_is_in_the_address(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name)
    clerk.pending(name=name)
    clerk.ready(name=name)
    with visit(["view_service"]) as visitor:
        page = visitor.goto("/operations/")
        page.get_by_role("searchbox").fill(f"{name} #1")
        expect(page.locator("#live tbody tr")).to_have_count(1)
        expect(page.locator("#past tbody tr")).to_have_count(0)
        expect(page.locator("#live [type=checkbox]")).to_have_count(0)
        page.reload()
        expect(page.get_by_role("searchbox")).to_have_value(f"{name} #1")
        expect(page.locator("#live tbody tr")).to_have_count(1)
