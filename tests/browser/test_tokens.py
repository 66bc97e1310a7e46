"""API tokens as a person makes, copies and revokes them, in a real browser."""

import urllib.error
import urllib.request
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Desk
from tests.browser.visitor import Visitor, serious
from tests.web import hostile

Visit = Callable[..., Visitor]


def ask(desk: Desk, token: str) -> int:
    """The status of a request with the token."""
    request = urllib.request.Request(desk.origin + "/api/v1/me", headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_a_token_is_made_used_and_revoked(visit: Visit, desk: Desk) -> None:
    with visit() as visitor:
        page = visitor.goto("/")
        page.locator("details.menu summary").click()
        page.get_by_role("link", name="API tokens").click()
        expect(page.get_by_text("You have no tokens.")).to_be_visible()
        page.get_by_label("Name", exact=True).fill("CI of the shop")
        page.get_by_label("Scope").select_option("deploy")
        page.get_by_label("Only for").fill("web, api")
        page.get_by_role("button", name="Make the token").click()
        token = page.get_by_label("Token", exact=True).input_value()
        assert ask(desk, token) == 200
        page = visitor.goto("/tokens")
        expect(page.get_by_label("Token", exact=True)).to_have_count(0)
        row = page.get_by_role("row").filter(has_text="CI of the shop")
        expect(row).to_contain_text("deploy")
        expect(row).to_contain_text("api, web")
        expect(row).to_contain_text("from 127.0.0.1")
        row.get_by_role("button", name="Revoke CI of the shop").click()
        expect(page.get_by_text("The token CI of the shop is revoked.")).to_be_visible()
        expect(page.get_by_role("row").filter(has_text="CI of the shop")).to_contain_text("REVOKED")
        assert ask(desk, token) == 401


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1280])
def test_the_page_is_fit_to_be_used(visit: Visit, scheme: str, width: int) -> None:
    with visit(color_scheme=scheme, viewport={"width": width, "height": 800}) as visitor:
        page = visitor.goto("/tokens")
        for text in (hostile.ALL["image"], "x" * 100):
            page.get_by_label("Name", exact=True).fill(text)
            with page.expect_navigation():  # the next name is written into the page that comes
                page.get_by_role("button", name="Make the token").click()
        assert page.evaluate("() => window.pwned") is None
        assert page.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0
        assert serious(page) == []
