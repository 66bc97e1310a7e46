"""How pages are to look at and to use: hostile text, narrow windows, both themes, keys, and axe."""

import re
from collections.abc import Callable
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Desk
from tests.browser.visitor import Visitor, serious
from tests.web import hostile
from tests.web.site import Scribe

Visit = Callable[..., Visitor]
PHONE = {"viewport": {"width": 390, "height": 844}}
PATHS = [
    "/",
    "/services/{name}/",
    "/services/{name}/replicas/1/",
    "/services/{name}/edit",
    "/services/{name}/logs",
    "/operations/",
    "/system/",
    "/notices/",
    "/services/{name}/versions/",
    "/services/{name}/versions/1/",
    "/services/{name}/versions/compare?old=1&new=1",
]


def story(clerk: Scribe, name: str) -> None:
    """A service of which every part of the pages has something to show."""
    clerk.deploy(name=name, replicas=4)
    first = clerk.ready(name=name, port=20011)
    second = clerk.ready(name=name, port=20012)
    clerk.probed(name=name, number=second, ok=False, detail="GET /healthz: no answer within 5 s")
    third = clerk.ready(name=name)
    clerk.exited(name=name, number=third)
    clerk.down(name=name, number=third)
    fourth = clerk.pending(name=name, replaces=third)
    clerk.provisioning(name=name, number=fourth)
    clerk.waiting(name=name, number=fourth, reason="setup of version 1")
    clerk.troubled(name=name, channel=f"on call for {name}", text="https://hooks.example.org/…")
    clerk.tried(channel=f"on call for {name}", error="it answered with 500")
    clerk.report(name=name, status="READY", reason="1 of 4 ready; replica 2 not ready; replica 4 being launched")
    assert first == 1


SIDEWAYS = "() => document.documentElement.scrollWidth - innerWidth"
# Texts that are seen beyond the right edge of their cell or panel: no scrolled box and no hidden overflow holds them.
OUTSIDE = """() => {
  const found = [];
  const walk = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  while (walk.nextNode()) {
    const held = (node) => node.parentElement?.closest("td, dd, .panel");
    let panel = held(walk.currentNode);
    while (panel && getComputedStyle(panel).display === "contents") panel = held(panel);
    if (!panel || !walk.currentNode.data.trim()) continue;
    range.selectNodeContents(walk.currentNode);
    let right = Math.max(0, ...[...range.getClientRects()].map((rect) => rect.right));
    for (let box = walk.currentNode.parentElement; box !== panel; box = box.parentElement)
      if (getComputedStyle(box).overflowX !== "visible") right = Math.min(right, box.getBoundingClientRect().right);
    if (right > panel.getBoundingClientRect().right + 1) found.push(walk.currentNode.data.trim());
  }
  return found;
}"""


def settled(page: Page) -> None:
    """Wait until the page is drawn and live."""
    expect(page.locator("#connection")).to_have_text("Live")


@pytest.mark.parametrize("key", hostile.NAMES)
def test_hostile_text_is_inert_and_breaks_no_page(visit: Visit, clerk: Scribe, key: str) -> None:
    name, text = hostile.NAMES[key], hostile.ALL[key]
    clerk.force(name=name, text=text)
    clerk.troubled(name=name, channel=name[:100], text=text)
    with visit(**PHONE) as visitor:
        for path in PATHS:
            page = visitor.goto(path.format(name=quote(name, safe="")))
            settled(page)
            assert page.evaluate("() => window.pwned") is None
            assert page.locator("main img, main script:not([src])").count() == 0
            assert page.locator("a[href^='javascript' i]").count() == 0
            assert page.evaluate(SIDEWAYS) <= 0, path
        clerk.scale(name=name, target=3)
        page = visitor.goto(f"/services/{quote(name, safe='')}/")
        expect(page.locator("#ready")).to_have_text("0 / 3")
        number = page.locator("#replicas tr[data-row]").first
        if key == "turned":
            codes = number.locator(".why .unseen").evaluate_all("marks => marks.map((mark) => mark.dataset.code)")
            assert codes[:4] == ["U+202E", "U+2066", "U+200F", "U+202D"]
        assert text.split("\n")[0][:40].lower() in number.locator(".why").inner_text().lower() or key == "controls"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault(visit: Visit, clerk: Scribe, name: str, scheme: str) -> None:
    story(clerk, name)
    found = []
    with visit(color_scheme=scheme) as visitor:
        visitor.context.set_default_timeout(60_000)
        for path in [*PATHS, "/new", "/password", "/tokens"]:
            page = visitor.goto(path.format(name=name))
            if path not in {"/password", "/tokens"}:
                settled(page)
            found += serious(page)
        page = visitor.goto(f"/services/{name}/")
        for button in ("Scale", "Restart", "Take down"):
            page.get_by_role("button", name=button, exact=True).click()
            found += serious(page)
            page.keyboard.press("Escape")
        visitor.expected.append("404")
        found += serious(visitor.goto("/services/nowhere/"))
    with visit(None, color_scheme=scheme) as visitor:
        found += serious(visitor.goto("/login"))
    assert found == []


@pytest.mark.parametrize("width", [320, 390, 768, 900, 1024, 1120, 1920])
def test_no_page_scrolls_sideways_and_no_text_leaves_its_panel(
    visit: Visit, clerk: Scribe, name: str, width: int
) -> None:
    story(clerk, name)
    with visit(viewport={"width": width, "height": 800}, locale="en-US") as visitor:  # its dates are long
        for path in [*PATHS, "/new", "/password", "/tokens"]:
            page = visitor.goto(path.format(name=name))
            if path not in {"/password", "/tokens"}:
                settled(page)
            assert page.evaluate(SIDEWAYS) <= 0, path
            assert page.evaluate(OUTSIDE) == [], path


def background(page: Page) -> str:
    """The colour of the ground."""
    return str(page.evaluate("() => getComputedStyle(document.documentElement).backgroundColor"))


def test_the_theme_follows_the_system_until_one_chooses(visit: Visit) -> None:
    with visit(color_scheme="light") as visitor:
        page = visitor.goto("/")
        light = background(page)
        page.emulate_media(color_scheme="dark")
        dark = background(page)
        assert light != dark
        button = page.get_by_role("button", name="Theme")
        button.click()
        assert background(page) == light
        page.reload()
        assert background(page) == light
        button.click()
        page.emulate_media(color_scheme="light")
        assert background(page) == dark
        button.click()
        assert background(page) == light


def test_keys_lead_around(visit: Visit, clerk: Scribe) -> None:
    for each in ("key-a", "key-b"):
        clerk.deploy(name=each)
    with visit() as visitor:
        page = visitor.goto("/?q=key-")
        expect(page.locator("tr[data-row]")).to_have_count(2)
        for key, focused in [("j", "key-a"), ("j", "key-b"), ("j", "key-b"), ("k", "key-a")]:
            page.keyboard.press(key)
            expect(page.locator(f'tr[data-row="{focused}"] a[data-main]')).to_be_focused()
        page.keyboard.press("/")
        search = page.get_by_role("searchbox")
        expect(search).to_be_focused()
        page.keyboard.type("b?g")
        expect(search).to_have_value("key-b?g" if search.input_value().startswith("key-") else "b?g")
        expect(page.locator("tr[data-row]")).to_have_count(0)  # the list that was asked for is there
        search.fill("key-")
        search.blur()
        expect(page.locator("tr[data-row]")).to_have_count(2)
        page.keyboard.press("?")
        help_ = page.get_by_role("dialog", name="Keys")
        expect(help_).to_be_visible()
        page.keyboard.press("Escape")
        expect(help_).to_be_hidden()
        page.keyboard.press("j")
        expect(page.locator('tr[data-row="key-a"] a[data-main]')).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_contain_text("key-a")
        settled(page)  # its script is there to hear the keys
        page.keyboard.press("e")
        expect(page).to_have_title("Edit key-a · Rollcall")
        settled(page)
        page.locator("h1").click()
        page.keyboard.press("g")
        page.keyboard.press("o")
        expect(page).to_have_title(re.compile("Operations"))
        settled(page)
        page.keyboard.press("g")
        page.keyboard.press("y")
        expect(page).to_have_title(re.compile("System"))
        settled(page)
        page.keyboard.press("g")
        page.keyboard.press("n")
        expect(page).to_have_title(re.compile("Notices"))
        settled(page)
        page.keyboard.press("g")
        page.keyboard.press("s")
        expect(page.locator("h1")).to_contain_text("Services")
        settled(page)
        page.keyboard.press("n")
        expect(page).to_have_title("New service · Rollcall")


def test_times_are_local_with_the_exact_one_on_hover_and_go_on(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name)
    with visit(timezone_id="Asia/Tokyo") as visitor:
        page = visitor.goto(f"/services/{name}/")
        age = page.locator("#age")
        utc = str(age.get_attribute("datetime"))
        local = page.evaluate("(utc) => new Date(utc).getHours()", utc)
        assert local == (int(utc[11:13]) + 9) % 24
        expect(age).to_have_attribute("title", re.compile(rf"\b{local:02d}:{utc[14:16]}:\d\d GMT\+9$"))
        made = page.locator(".spec-facts time")
        written = rf"^\d+ \w+ \d+, {local:02d}:\d\d:\d\d"
        expect(made).to_have_text(re.compile(f"{written}$"))
        expect(made).to_have_attribute("title", re.compile(rf"{written} GMT\+9$"))
        before = age.inner_text()
        expect(age).not_to_have_text(before)


def test_live_updates_shift_nothing_that_is_looked_at(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name, replicas=3)
    numbers = [clerk.ready(name=name) for _ in range(3)]
    with visit() as visitor:
        page = visitor.goto(f"/services/{name}/")
        settled(page)
        page.evaluate(
            """() => { window.shift = 0; new PerformanceObserver((list) => {
              for (const entry of list.getEntries()) window.shift += entry.value;
            }).observe({type: "layout-shift", buffered: true}); }"""
        )
        for number in numbers:
            clerk.probed(name=name, number=number, ok=False, detail="no answer")
            clerk.report(name=name, status="READY", reason=f"replica {number} is not ready, which is a longer reason")
            clerk.probed(name=name, number=number, ok=True)
        clerk.report(name=name, status="READY", reason="3 of 3 ready")
        expect(page.locator("#sentence")).to_have_text("3 of 3 ready.")
        # The timeline grows at its top by design; everything else stays where it is.
        assert page.evaluate("() => window.shift") < 0.1


def test_a_service_is_printed_light_and_whole(visit: Visit, clerk: Scribe, name: str) -> None:
    story(clerk, name)
    with visit(color_scheme="dark") as visitor:
        page = visitor.goto(f"/services/{name}/")
        settled(page)
        dark = background(page)
        page.emulate_media(media="print")
        assert background(page) != dark
        for gone in (".top", "main button >> nth=0", ".head .buttons"):
            expect(page.locator(gone)).to_be_hidden()
        expect(page.locator("#sentence")).to_be_visible()
        expect(page.locator("#replicas tbody tr")).to_have_count(3)
        expect(page.locator("#spec")).to_be_visible()
        expect(page.locator("#past")).not_to_have_attribute("open", "")
        page.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
        expect(page.locator("#history tbody tr")).to_be_visible()
        page.evaluate("() => window.dispatchEvent(new Event('afterprint'))")
        expect(page.locator("#past")).not_to_have_attribute("open", "")
        assert page.pdf()[:4] == b"%PDF"
        visitor.page.set_viewport_size({"width": 794, "height": 1123})
        page = visitor.goto(f"/?q={name}")
        line = page.locator(f'tr[data-row="{name}"]')
        expect(line.get_by_role("link", name=name, exact=True)).to_be_visible()
        for part in ("a[data-main]", ".badge", ".age"):
            box = line.locator(part).first.bounding_box()
            assert box
            assert box["width"] > 20, part
            assert box["x"] + box["width"] <= 794, part


def test_a_failed_replica_is_one_click_from_its_failing_lines(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name)
    number = clerk.ready(name=name)
    clerk.exited(name=name, number=number)
    with visit() as visitor:
        page = visitor.goto(f"/services/{name}/")
        page.locator(f'tr[data-row="{number}"]').get_by_role("link", name="failing lines").click()
        expect(page).to_have_url(re.compile(rf"/replicas/{number}/#run$"))
        expect(page.get_by_role("tab", name="Run")).to_have_attribute("aria-selected", "true")
        expect(page.locator(".logs")).to_be_in_viewport()
        expect(page.locator("#last-lines")).to_contain_text("Traceback: no such model")


def test_a_start_is_told_phase_by_phase(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name)
    number = clerk.pending(name=name)
    with visit() as visitor:
        page = visitor.goto(f"/services/{name}/replicas/{number}/")
        phases = page.locator("#start-list li")
        expect(phases).to_have_text([re.compile(r"^queued.*so far$")])
        clerk.provisioning(name=name, number=number)
        clerk.waiting(name=name, number=number, reason="setup to be done")
        told = ["^queued[\\d.]+ m?s$", "^provisioning[\\d.]+ m?s$", "^setup.*so far$"]
        expect(phases).to_have_text([re.compile(each) for each in told])
        clerk.go_on(name=name, number=number)
        clerk.launched(name=name, number=number)
        told = [*told[:2], "^setup[\\d.]+ m?s$", "^starting.*so far$"]
        expect(phases).to_have_text([re.compile(each) for each in told])
        page.reload()
        expect(phases).to_have_text([re.compile(each) for each in told])


def test_motion_is_reduced_for_who_wants_it(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name)
    clerk.pending(name=name)
    with visit(reduced_motion="reduce") as visitor:
        page = visitor.goto(f"/services/{name}/")
        cell = page.locator("#cells .cell[data-state=PENDING]")
        assert cell.evaluate("(node) => getComputedStyle(node).animationName") == "none"


@pytest.mark.parametrize("width", [390, 1280])
def test_the_administration_fits(desk: Desk, chromium: Browser, clerk: Scribe, name: str, width: int) -> None:
    story(clerk, name)
    session = clerk.user(name=f"head-of-{name}", permissions=[])["session"]
    desk.scribe.change_user(name=f"head-of-{name}", is_staff=True, is_superuser=True)
    ours = ["service", "serviceversion", "rollout", "replica", "operation", "event", "noticechannel", "notice"]
    lists = [*(f"replicas/{model}" for model in ours), "auth/user", "auth/group"]
    view = {"width": width, "height": 800}
    with Visitor(chromium, desk.origin, desk.cookies(session), f"admin-{name}", viewport=view) as visitor:
        for model in lists:
            page = visitor.goto(f"/admin/{model}/")
            mine = "viewer" if model == "auth/group" else name  # some others have names that no form would take
            row = page.locator("#result_list tbody tr", has_text=mine).locator("th a").first
            expect(row).to_be_visible()
            over = page.evaluate(
                "() => { const e = document.querySelector('.results'); return e.scrollWidth - e.clientWidth }"
            )
            assert over <= 0 or width < 1280, model  # on a telephone the table scrolls by itself
            assert page.evaluate(SIDEWAYS) <= 0, model
            row.click()
            expect(page).to_have_url(re.compile(r"/\d+/change/"))
            assert page.evaluate(SIDEWAYS) <= 0, page.url
        for path in ("", "replicas/apitoken/", "auth/user/add/", "auth/group/add/", "replicas/service/add/"):
            assert visitor.goto(f"/admin/{path}").evaluate(SIDEWAYS) <= 0, path
