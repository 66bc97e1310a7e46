"""The plots of a service: drawn from what was measured, with gaps, a range, one crosshair, decisions, and live."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.visitor import Visitor, serious
from tests.web.site import Scribe

Visit = Callable[..., Visitor]
FOLLOWS = """\
name: {name}
provider: fake
run: exec python server.py
service:
  readiness_probe: /healthz
  replica_policy: {{min_replicas: 1, max_replicas: 8, target_qps_per_replica: 5}}
"""
WHY = "from 1 to 3 replicas: requests per second fill 2.6 replicas"


def opened(visitor: Visitor, clerk: Scribe, name: str, last: int = 0) -> Page:
    """The page of a service with twelve requests a second until 400 s ago, nothing measured then, and twenty for the
    last two minutes, until `last` seconds ago. They are written while the page is open: its newest figures are those
    of the last seconds."""
    clerk.deploy(name=name, replicas=2)
    page = visitor.goto(f"/services/{name}/")
    clerk.measured(name=name, first=800, last=400, requests=12)
    clerk.measured(name=name, first=120, last=last, requests=20, refused=4)
    expect(page.locator('.plot path[data-series="2xx"]')).to_have_attribute("d", re.compile("^M"))
    return page


def path(page: Page, series: str) -> str:
    """What a line of a plot is drawn as."""
    return str(page.locator(f'.plot path[data-series="{series}"]').get_attribute("d"))


def figure(page: Page, series: str) -> Any:
    """Where a figure is told."""
    return page.locator(f'.key[data-series="{series}"] b')


def point(page: Page, plot: str, share: float) -> None:
    """Point at a share of the width of a plot."""
    area = page.locator(f'[data-plot="{plot}"] .plot-area')
    box = area.bounding_box()
    assert box
    area.hover(position={"x": box["width"] * share, "y": box["height"] / 2})


def test_what_was_measured_is_drawn_with_its_gap(visit: Visit, clerk: Scribe, name: str) -> None:
    with visit() as visitor:
        # Into the time to come: on a busy machine the page asks a while later.
        page = opened(visitor, clerk, name, last=-40)
        for series in ("2xx", "5xx", "asked", "p50", "p95", "p99", "in_flight", "queued", "wanted"):
            expect(page.locator(f'.plot path[data-series="{series}"]')).to_have_attribute("d", re.compile("^M"))
        # A stretch each before and after the gap.
        assert path(page, "asked").count("M") == path(page, "p95").count("M") == 2
        assert path(page, "3xx") == path(page, "4xx") == ""
        expect(figure(page, "2xx")).to_have_text("16")
        expect(figure(page, "5xx")).to_have_text("4")
        expect(figure(page, "p95")).to_have_text(re.compile(r"^8\d ms$"))  # 84, within 6 % where a step has several
        expect(figure(page, "in_flight")).to_have_text("4")
        expect(figure(page, "wanted")).to_have_text("2")
        expect(page.locator("#plot-summary")).to_contain_text("Requests/s: 2xx 16, 3xx 0, 4xx 0, 5xx 4, came in 20.")
        expect(page.locator("#plot-summary")).to_contain_text("Replicas: ready 0, wanted 2.")


def test_what_a_local_replica_uses_is_shown(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name)
    first, second = clerk.ready(name=name), clerk.ready(name=name, port=20002)
    clerk.inhabit(name=name, number=first)
    with visit() as visitor:
        page = visitor.goto(f"/services/{name}/")
        uses = page.locator(f"tr[data-row='{first}'] .uses")
        expect(uses).to_have_text(re.compile(r"^[\d.]+ %[\d.]+ [MG]B$"))
        expect(page.locator(f"tr[data-row='{second}'] .uses")).to_have_text("")
        page = visitor.goto(f"/services/{name}/replicas/{first}/")
        expect(page.locator("#facts .uses")).to_have_text(re.compile(r"^[\d.]+ % · [\d.]+ [MG]B$"))


def test_each_replica_shows_its_share_and_its_machine(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name, replicas=2)
    first = clerk.ready(name=name, port=20001, spot=True, accelerators="A100:8")
    second = clerk.ready(name=name, port=20002, spot=False)
    with visit() as visitor:
        page = visitor.goto(f"/services/{name}/")
        # Into the time to come: on a busy machine the page looks a while later, and they are to be of late then, too.
        shares = {str(first): [12, 3, 0], str(second): [4, 0, 2]}
        clerk.measured(name=name, first=4, last=-40, requests=16, replicas=shares)
        row = page.locator(f'#replicas tr[data-row="{first}"]')
        expect(row.locator(".share")).to_have_text("12/s · 3 in flight")
        expect(row.locator(".machine")).to_have_text("spot A100:8")
        row = page.locator(f'#replicas tr[data-row="{second}"]')
        expect(row.locator(".share")).to_have_text(re.compile(r"^4/s · 0 in flight · \d+ failed$"))
        expect(row.locator(".machine")).to_have_text("on demand")
        page.goto(f"{page.url}replicas/{second}/")
        clerk.measured(name=name, first=-50, last=-50, replicas={str(second): [4, 1, 0]})
        traffic = page.locator("#facts div").filter(has_text="Traffic").locator("dd")
        expect(traffic).to_have_text(re.compile(r"^4/s · 1 in flight · \d+ failed$"))
        expect(page.locator("#facts div").filter(has_text="Machine").locator("dd")).to_have_text("on demand")


def test_the_plots_have_colour(visit: Visit, clerk: Scribe, name: str) -> None:
    for scheme in ("light", "dark"):
        with visit(color_scheme=scheme) as visitor:
            page = opened(visitor, clerk, f"{name}-{scheme}")
            box = page.locator('.plot path[data-series="2xx"]').bounding_box()
            assert box
            assert box["width"] > 50
            assert box["height"] > 20
            fill = page.locator('.plot path[data-series="2xx"]').evaluate("(node) => getComputedStyle(node).fill")
            ground = page.locator("#traffic").evaluate("(node) => getComputedStyle(node).backgroundColor")
            assert fill not in {"none", ground}


def test_one_crosshair_reads_all_plots(visit: Visit, clerk: Scribe, name: str) -> None:
    with visit() as visitor:
        page = opened(visitor, clerk, name)
        expect(page.locator("#plot-time")).to_have_text("now")
        point(page, "latency", 0.25)  # 675 s ago
        expect(page.locator(".cross:visible")).to_have_count(4)
        expect(figure(page, "asked")).to_have_text("12")
        expect(figure(page, "p99")).to_have_text("248 ms")
        expect(page.locator("#plot-time")).to_have_text(re.compile(r"^\d\d:\d\d:\d\d$"))
        point(page, "load", 0.7)  # 270 s ago, in the gap
        expect(figure(page, "asked")).to_have_text("–")
        expect(figure(page, "in_flight")).to_have_text("–")
        page.locator("h1").hover()
        expect(page.locator("#plot-time")).to_have_text("now")
        expect(page.locator(".cross:visible")).to_have_count(0)


def test_keys_move_the_crosshair_and_choose_the_range(visit: Visit, clerk: Scribe, name: str) -> None:
    with visit() as visitor:
        page = opened(visitor, clerk, name)
        page.get_by_role("button", name="7 d").focus()
        page.keyboard.press("Tab")
        expect(page.locator("#plots")).to_be_focused()
        for _ in range(3):
            page.keyboard.press("PageUp")
        expect(page.locator("#plot-time")).not_to_have_text("now")
        expect(figure(page, "asked")).to_have_text("–")
        for _ in range(4):
            page.keyboard.press("PageUp")
        expect(figure(page, "asked")).to_have_text("12")
        page.keyboard.press("Escape")
        expect(page.locator("#plot-time")).to_have_text("now")
        five = page.get_by_role("button", name="5 min", exact=True)
        five.focus()
        page.keyboard.press("Enter")
        expect(five).to_have_attribute("aria-pressed", "true")


@pytest.mark.parametrize(
    ("button", "share", "requests", "stretches"),
    [("5 min", 0.8, "20", 1), ("1 h", 0.98, "20", 2), ("24 h", 0.19, "8", 2)],
)
def test_each_range_has_its_own_samples(
    visit: Visit, clerk: Scribe, name: str, button: str, share: float, requests: str, stretches: int
) -> None:
    with visit() as visitor:
        page = opened(visitor, clerk, name)
        clerk.measured(name=name, first=20 * 3600, last=19 * 3600, requests=8, step=60)
        chosen = page.get_by_role("button", name=button, exact=True)
        with page.expect_response(re.compile("samples.json")):
            chosen.click()
        expect(chosen).to_have_attribute("aria-pressed", "true")
        expect(page.locator("#ranges [aria-pressed=true]")).to_have_count(1)
        point(page, "requests", share)
        expect(figure(page, "asked")).to_have_text(requests)
        assert path(page, "asked").count("M") >= stretches
        page.reload()
        expect(chosen).to_have_attribute("aria-pressed", "true")


def test_new_samples_and_levels_come_by_themselves(visit: Visit, clerk: Scribe, name: str) -> None:
    with visit() as visitor:
        page = opened(visitor, clerk, name)
        page.get_by_role("button", name="5 min", exact=True).click()
        visitor.mark()
        clerk.measured(name=name, first=-2, last=-2, requests=33)  # a second of its own, however quick the page was
        expect(figure(page, "asked")).to_have_text("33")
        clerk.scale(name=name, target=5)
        expect(figure(page, "wanted")).to_have_text("5")
        assert visitor.marked()


def test_a_page_that_nobody_sees_asks_for_nothing(visit: Visit, clerk: Scribe, name: str) -> None:
    with visit() as visitor:
        page = opened(visitor, clerk, name)
        page.get_by_role("button", name="5 min", exact=True).click()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url) if "samples.json" in request.url else None)
        visitor.be_seen(False)
        page.wait_for_timeout(500)  # an answer that was on its way
        asked.clear()
        page.wait_for_timeout(5_000)  # two looks and more would have been due
        assert asked == []
        with page.expect_request(re.compile("samples.json")):
            visitor.be_seen(True)


def test_decisions_are_marks_and_a_list_with_what_they_were_made_from(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.apply(text=FOLLOWS.format(name=name))
    with visit() as visitor:
        page = visitor.goto(f"/services/{name}/")
        expect(page.locator("#decision-list")).to_be_visible()
        expect(page.locator("#decision-count")).to_have_text("0")
        clerk.decided(name=name, target=3, reason=WHY, qps=13.1, p95=0.12, load=2.6, load_short=None)
        entry = page.locator("#decision-list li")
        expect(entry).to_have_count(1)
        expect(entry.locator("b")).to_have_text("1 → 3")
        expect(entry).to_contain_text("From 1 to 3 replicas: requests per second fill 2.6 replicas.")
        expect(entry).to_contain_text("13.1 requests/s · p95 120 ms · fills 2.6 replicas over 60 s")
        expect(page.locator('[data-plot="replicas"] .marks i[data-way="up"]')).to_have_count(1)
        expect(page.locator("#plot-summary")).to_contain_text("wanted 3")
        point(page, "replicas", 0.998)
        expect(page.locator("#plot-note")).to_contain_text(": from 1 to 3 replicas")
        assert serious(page) == []


def test_without_an_endpoint_the_plots_say_why(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name, replicas=2)
    clerk.no_endpoint(name=name, reason="HAProxy was not found")
    with visit() as visitor:
        page = visitor.goto(f"/services/{name}/")
        expect(page.locator("#plot-note")).to_have_text(
            "Its traffic is not measured: it has no endpoint, because HAProxy was not found."
        )
        expect(page.locator(".plot .none:visible")).to_have_count(3)
        expect(figure(page, "wanted")).to_have_text("2")


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_below_the_plots_stays_where_it_is(visit: Visit, clerk: Scribe, name: str, width: int) -> None:
    clerk.apply(text=FOLLOWS.format(name=name))
    with visit(viewport={"width": width, "height": 900}) as visitor:
        page = visitor.goto(f"/services/{name}/")
        height = page.locator("#traffic").bounding_box()
        clerk.measured(name=name, first=100, last=0, requests=1234)
        expect(figure(page, "asked")).to_have_text("1.23k")
        clerk.decided(name=name, target=2, reason=WHY, qps=1.0)
        expect(page.locator("#decision-list li")).to_have_count(1)
        page.get_by_role("button", name="1 h", exact=True).click()
        expect(page.locator('#ranges [data-range="3600"]')).to_have_attribute("aria-pressed", "true")
        after = page.locator("#traffic").bounding_box()
        assert height
        assert after
        assert height["height"] == after["height"]
        assert page.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0
