"""The page of the system in use: it asks again by itself, says when nobody answers, and prunes after a question."""

import re
from collections.abc import Callable

from playwright.sync_api import expect

from tests.browser.conftest import POWERS, Desk
from tests.browser.visitor import CUT_OFF, Visitor
from tests.web.site import Scribe

Visit = Callable[..., Visitor]
PARTS = ("long", "short", "controller")


def test_parts_are_followed_without_a_reload(visit: Visit, clerk: Scribe) -> None:
    for part in PARTS:
        clerk.beat(part=part, ago=60)
    with visit(["view_service"]) as visitor:
        page = visitor.goto("/system/")
        visitor.mark()
        long = page.locator("#parts tr", has_text="pool long")
        expect(long.locator(".badge")).to_have_text("UNKNOWN")  # nobody asks it while there is no controller
        expect(page.locator("#parts tr", has_text="nobody holds the lease").locator(".badge")).to_have_text("FAILED")
        expect(page).to_have_title(re.compile(r"^▲ \d parts? in trouble"))
        expect(page.locator("link[rel=icon]")).to_have_attribute("href", re.compile("icon-trouble"))
        clerk.beat(part="long", ago=-3600)  # it goes on for as long as the test
        expect(long.locator(".badge")).to_have_text("READY")
        clerk.lease(holder="controller-9")
        expect(page.locator("#parts")).to_contain_text("controller-9 holds the lease")
        expect(page.locator("#counts")).to_contain_text("Feed lag")
        expect(page.locator("#disk")).to_contain_text("Logs of operations")
        expect(page.get_by_role("button", name="Prune")).to_have_count(0)
        assert visitor.marked()


def test_a_server_that_is_away_is_told_with_the_time_and_comes_back(visit: Visit, desk: Desk) -> None:
    with visit() as visitor:
        visitor.expected = [CUT_OFF, "Failed to fetch"]
        page = visitor.goto("/system/")
        visitor.mark()
        expect(page.locator("#connection")).to_have_text("Live")
        desk.kill()  # its port still takes connections, which nobody answers
        expect(page.locator("#connection")).to_have_text(re.compile(r"No answer since \d\d?:\d\d:\d\d"), timeout=40_000)
        expect(page.locator("#sentence")).to_contain_text("the web process does not answer")
        expect(page.locator("#verdict")).to_have_text("UNKNOWN")
        desk.start()
        expect(page.locator("#connection")).to_have_text("Live", timeout=60_000)
        expect(page.locator("#sentence")).not_to_contain_text("does not answer")
        assert visitor.marked()


def test_pruning_says_how_much_would_go_and_asks(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name)
    clerk.withdraw(name=name, number=clerk.pending(name=name))
    with visit([*POWERS, "administer"]) as visitor:
        page = visitor.goto("/system/")
        page.get_by_role("button", name="Prune").click()
        dialog = page.get_by_role("dialog", name="Prune what is over?")
        expect(dialog.locator("#prune-count")).to_contain_text("0 events would go.")
        dialog.get_by_label("Older than").fill("0")
        expect(dialog.locator("#prune-count")).to_have_text(re.compile(r"[1-9]\d* events would go\."))
        dialog.get_by_role("button", name="Prune").click()
        expect(page.locator("#toasts")).to_contain_text("What ended more than 0 days ago is being removed")


def test_a_page_that_nobody_looks_at_does_not_ask(visit: Visit) -> None:
    with visit() as visitor:
        page = visitor.goto("/system/")
        expect(page.locator("#connection")).to_have_text("Live")
        visitor.be_seen(False)
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.wait_for_timeout(7000)  # two rounds of questions would have gone by
        assert len(asked) <= 2  # one may have been on its way
        with page.expect_request(re.compile(r"/system\.json$")):
            visitor.be_seen(True)
