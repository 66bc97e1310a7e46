"""Channels of notices as a person makes, tries, switches and removes them, in a real browser."""

import re
from collections.abc import Callable

from playwright.sync_api import expect

from tests.browser.visitor import Visitor
from tests.web.site import Scribe

Visit = Callable[..., Visitor]
ADMIN = ["view_service", "operate_service", "deploy_service", "administer"]


def test_a_channel_from_its_making_to_its_end(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name)
    with visit(ADMIN) as visitor:
        page = visitor.goto("/")
        page.keyboard.press("g")
        page.keyboard.press("n")
        expect(page.get_by_text("Nobody is told anything yet.")).to_be_visible()
        page.get_by_label("Name", exact=True).fill("on call")
        page.get_by_label("Address").fill("https://hooks.example.org/s3cret")
        page.get_by_label("About").select_option(name)
        page.get_by_label("crash loop").uncheck()
        page.get_by_role("button", name="Make the channel").click()
        assert page.get_by_label("Key", exact=True).input_value().startswith("whsec_")
        page = visitor.goto("/notices/")
        expect(page.get_by_label("Key", exact=True)).to_have_count(0)
        assert "s3cret" not in page.content()
        row = page.locator("#channels tbody tr")
        for text in ("https://hooks.example.org/…", name, "failed, rollout, recovered", "ON", "never"):
            expect(row).to_contain_text(text)
        visitor.mark()
        row.get_by_role("button", name="Test on call").click()
        expect(page.locator("#sent .badge")).to_have_text("QUEUED")
        clerk.tried(channel="on call", error="it answered with 500")
        expect(page.locator("#sent .badge")).to_have_text("FAILED")
        expect(row).to_contain_text("it answered with 500")
        expect(page).to_have_title("▲ 1 channel in trouble · Notices · Rollcall")
        expect(page.locator("link[rel=icon]")).to_have_attribute("href", re.compile("icon-trouble"))
        row.get_by_role("button", name="Test on call").click()
        expect(page.locator("#sent .badge")).to_have_count(2)
        clerk.tried(channel="on call", error="")
        expect(row.locator(".badge")).to_have_text("ON")
        expect(page).to_have_title("Notices · Rollcall")
        expect(row).to_contain_text("ago")
        assert visitor.marked()
        row.get_by_role("button", name="Switch on call off").click()
        expect(row.locator(".badge")).to_have_text("OFF")
        row.get_by_role("button", name="Remove on call").click()
        page.get_by_role("dialog").get_by_role("button", name="Remove", exact=True).click()
        expect(page.get_by_text("Nobody is told anything yet.")).to_be_visible()


def test_who_may_only_look_sees_no_buttons(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name)
    clerk.troubled(name=name, channel=name, text="x")
    with visit(["view_service"]) as visitor:
        page = visitor.goto("/notices/")
        expect(page.locator("#channels tbody tr")).to_contain_text(name)
        expect(page.locator("main button, main form")).to_have_count(0)
