"""The log view in Chromium: a hundred thousand lines, following, scrolling back, searching, and hostile text."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.needs import needs
from tests.support.polling import eventually
from tests.web.browser import Browser, Tab
from tests.web.site import Site

pytestmark = [pytest.mark.browser, needs("chromium")]

SHOWN = "[...document.querySelectorAll('.log-row:not([hidden])')].map((row) => row.textContent)"
BADGE = "document.querySelector('.log-badge').dataset.state"
BOX = "document.querySelector('.log-box')"
AT_BOTTOM = f"{BOX}.scrollTop + {BOX}.clientHeight >= {BOX}.scrollHeight - 2"


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """A web process with the test pages."""
    made = Site("tests.web.page_settings")
    try:
        yield made.start()
    finally:
        made.close()


@pytest.fixture
def log(site: Site, service: int) -> Path:
    """The run log of a replica, empty."""
    path = site.home / "replicas" / f"r{service}" / "run.log"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")
    return path


@pytest.fixture
def replica(site: Site, service: int, log: Path) -> int:
    """The id of that replica."""
    made: int = site.scribe.replica(service_id=service, log=str(log))["replica"]
    return made


@pytest.fixture
def tab(site: Site, viewer: str, browser: Browser) -> Iterator[Tab]:
    """A window on the log; at its end, nothing may have gone wrong in it."""
    made = browser.tab(site.origin, site.cookies(viewer))
    yield made
    troubles = made.troubles
    made.close()
    assert troubles == []


def show(tab: Tab, replica: int) -> None:
    """Open the page of the log."""
    tab.goto(f"/test/log?replica={replica}")


def shown(tab: Tab) -> list[str]:
    """The lines in the document, from top to bottom."""
    rows = "[...document.querySelectorAll('.log-row:not([hidden])')]"
    top = "(row) => new DOMMatrix(getComputedStyle(row).transform).m42"
    lines: list[str] = tab.ask(
        f"{rows}.map((row) => [({top})(row), row.textContent]).sort((a, b) => a[0] - b[0]).map((x) => x[1])"
    )
    return lines


def wheel(tab: Tab, pixels: int) -> None:
    """Scroll as a user does."""
    tab(lambda page: (page.mouse.move(300, 300), page.mouse.wheel(0, pixels)))


def at_rest(tab: Tab) -> None:
    """Wait until a scrolling that has begun is over: it takes some frames, and draws lines in each."""
    tab.ask(
        f"""new Promise((over) => {{ let last = -1, same = 0; const look = () => {{
          same = {BOX}.scrollTop === last ? same + 1 : 0; last = {BOX}.scrollTop;
          if (same < 10) requestAnimationFrame(look); else over(true); }}; look(); }})"""
    )


def coloured(first: int, last: int) -> str:
    return "".join(f"\x1b[32mINFO\x1b[0m line {number} \x1b[1;31mred\x1b[0m tail\n" for number in range(first, last))


def test_a_hundred_thousand_coloured_lines_are_followed_with_few_nodes(tab: Tab, log: Path, replica: int) -> None:
    log.write_text(coloured(0, 1000))
    show(tab, replica)
    tab.until(f"{SHOWN}.some((text) => text.includes('line 999 '))")
    with log.open("a") as file:
        for first in range(1000, 100_000, 9000):
            file.write(coloured(first, min(first + 9000, 100_000)))
            file.flush()
    tab.until(f"{SHOWN}.some((text) => text.includes('line 99999 '))", 60)
    assert tab.ask("document.querySelectorAll('*').length") < 1000
    assert tab.ask("document.querySelector('.log-space').getBoundingClientRect().height") == 100_000 * 18
    assert tab.ask(AT_BOTTOM)
    lines = [int(re.search(r"line (\d+)", text)[1]) for text in shown(tab)]  # type: ignore[index]
    assert lines == list(range(lines[0], 100_000))
    parts = "[...document.querySelectorAll('.log-row:not([hidden]) > :not(.log-place-of)')].slice(0, 4)"
    assert tab.ask(f"{parts}.map((part) => part.className)") == ["ansi-fg-green", "", "ansi-bold ansi-fg-red", ""]


def test_scrolling_up_stops_the_following_until_it_is_asked_for_again(tab: Tab, log: Path, replica: int) -> None:
    log.write_text(coloured(0, 500))
    show(tab, replica)
    tab.until(f"{SHOWN}.some((text) => text.includes('line 499 '))")
    assert tab.ask("document.querySelector('.log-follow').hidden")
    wheel(tab, -2000)
    tab.until("!document.querySelector('.log-follow').hidden")
    at_rest(tab)
    before = shown(tab)
    with log.open("a") as file:
        file.write(coloured(500, 600))
    tab.until("document.querySelector('.log-follow').textContent === 'Follow (100 new)'")
    assert shown(tab) == before
    tab(lambda page: page.click(".log-follow"))
    tab.until(f"{SHOWN}.some((text) => text.includes('line 599 '))")
    assert tab.ask(AT_BOTTOM)
    wheel(tab, -500)
    tab.until("!document.querySelector('.log-follow').hidden")
    wheel(tab, 5000)
    tab.until("document.querySelector('.log-follow').hidden")


def test_older_lines_come_when_one_scrolls_back(tab: Tab, log: Path, replica: int) -> None:
    log.write_text("".join(f"line {number}\n" for number in range(5000)))
    show(tab, replica)
    tab.until(f"{SHOWN}.includes('line 4999')")

    def begins() -> bool:
        wheel(tab, -20_000)
        tab(lambda page: page.wait_for_timeout(150))  # as a hand on a wheel pauses
        return "line 0" in shown(tab)

    eventually(begins, 30)
    lines = [int(text.removeprefix("line ")) for text in shown(tab)]
    assert lines == list(range(lines[0], lines[0] + len(lines)))
    assert lines[0] == 0
    assert tab.ask("document.querySelector('.log-space').getBoundingClientRect().height") == 5000 * 18


def test_a_search_counts_and_jumps_to_what_is_not_loaded(tab: Tab, log: Path, replica: int) -> None:
    log.write_text(
        "".join(f"line {number}{' NEEDLE é' if number in (77, 40_000) else ''}\n" for number in range(60_000))
    )
    show(tab, replica)
    tab.until(f"{SHOWN}.includes('line 59999')")
    tab(lambda page: page.fill(".log-search", "needle"))
    tab.until("document.querySelector('.log-count').textContent === '2 of 2'")
    tab.until("document.querySelector('.log-marked')?.textContent === 'line 40000 NEEDLE é'")
    assert tab.ask("document.querySelector('.log-marked mark').textContent") == "NEEDLE"
    tab(lambda page: page.press(".log-search", "Shift+Enter"))
    tab.until("document.querySelector('.log-marked:not([hidden])')?.textContent === 'line 77 NEEDLE é'")
    assert tab.ask("document.querySelector('.log-count').textContent") == "1 of 2"
    tab.until(f"{BADGE} === 'paused'")
    lines = [int(text.split()[1]) for text in shown(tab)]
    assert lines == list(range(lines[0], lines[0] + len(lines)))
    tab(lambda page: page.click(".log-follow"))
    tab.until(f"{SHOWN}.includes('line 59999')")
    with log.open("a") as file:
        file.write("the newest\n")
    tab.until(f"{SHOWN}.includes('the newest')")
    tab.until(f"{BADGE} === 'live'")


def test_going_down_from_an_old_place_meets_the_live_end(tab: Tab, log: Path, replica: int) -> None:
    log.write_text("".join(f"line {number}\n" for number in range(30_000)))
    show(tab, replica)
    tab.until(f"{SHOWN}.includes('line 29999')")
    tab(lambda page: page.fill(".log-search", "line 20000"))
    tab.until(f"{SHOWN}.includes('line 20000')")

    def is_live() -> bool:
        wheel(tab, 30_000)
        tab(lambda page: page.wait_for_timeout(100))  # as a hand on a wheel pauses
        return bool(tab.ask(BADGE) == "live")

    eventually(is_live, 30)
    wheel(tab, 1_000_000)
    with log.open("a") as file:
        file.write("the newest\n")
    tab.until(f"{SHOWN}.includes('the newest')")
    heights = "document.querySelector('.log-space').getBoundingClientRect().height"
    first = int(shown(tab)[0].removeprefix("line "))
    assert tab.ask(heights) % 18 == 0
    assert first > 29_000


def test_a_progress_bar_is_redrawn_in_its_line(tab: Tab, log: Path, replica: int) -> None:
    log.write_text("start\n")
    show(tab, replica)
    tab.until(f"{SHOWN}.includes('start')")
    with log.open("a", buffering=1) as file:
        for percent in range(0, 101, 10):
            file.write(f"\r{percent:3}% |{'#' * (percent // 10)}")
            file.flush()
        file.write("\rdone\x1b[K\nnext\n")
    tab.until(f"{SHOWN}.includes('next')")
    assert shown(tab) == ["start", "done", "next"]


def test_hostile_text_is_text(tab: Tab, log: Path, replica: int) -> None:
    hostile = [
        "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>",
        "\x1b]8;;javascript:alert(1)\x07a link\x1b]8;;\x07 \x1b]0;title\x07",
        "\u202egnirts\u202c \u2028 \x00 \x07 \x1b[31;999;;m\x1b[",
        "bad \udcff byte",
        "x" * 5000,
    ]
    log.write_bytes("\n".join(hostile).encode(errors="surrogateescape") + b"\n")
    show(tab, replica)
    tab.until(f"{SHOWN}.some((text) => text.startsWith('xxxxx'))")
    lines = shown(tab)
    assert lines[0] == hostile[0]
    assert lines[1] == "a link "
    assert lines[2].startswith("\u202egnirts\u202c \u2028 \u2400 \u2407 ")
    assert lines[3] == "bad \ufffd byte"
    assert lines[4] == hostile[4]
    assert tab.ask("document.querySelectorAll('.log a, .log img, .log script').length") == 1  # the download
    assert tab.ask("document.title") == "test"


def test_long_lines_wrap_when_asked(tab: Tab, log: Path, replica: int) -> None:
    log.write_text("short\n" + "w" * 1000 + "\nlast\n")
    show(tab, replica)
    tab.until(f"{SHOWN}.includes('last')")
    height = "document.querySelector('.log-space').getBoundingClientRect().height"
    assert tab.ask(height) == 3 * 18
    assert tab.ask("document.querySelector('.log-box').scrollWidth > document.querySelector('.log-box').clientWidth")
    tab(lambda page: page.click("text=Wrap"))
    tab.until(f"{height} > {5 * 18}")
    assert tab.ask("document.querySelector('.log-box').scrollWidth <= document.querySelector('.log-box').clientWidth")
    row = "[...document.querySelectorAll('.log-row:not([hidden])')].find((row) => row.textContent.startsWith('www'))"
    assert tab.ask(f"{row}.getBoundingClientRect().height") == tab.ask(height) - 2 * 18


def test_the_view_goes_on_after_the_server_was_killed(tab: Tab, log: Path, replica: int, site: Site) -> None:
    log.write_text("".join(f"line {number}\n" for number in range(100)))
    show(tab, replica)
    tab.until(f"{SHOWN}.includes('line 99')")
    site.kill()
    tab.until(f"{BADGE} === 'lost'")
    with log.open("a") as file:
        file.write("".join(f"line {number}\n" for number in range(100, 120)))
    site.start()
    tab.until(f"{SHOWN}.includes('line 119') && {BADGE} === 'live'")
    assert tab.ask("document.querySelector('.log-space').getBoundingClientRect().height") == 120 * 18
    tab.troubles[:] = [each for each in tab.troubles if "WebSocket" not in each and "/session" not in each]
    tab.troubles[:] = [each for each in tab.troubles if "ERR_" not in each]


def test_an_ended_log_says_so(tab: Tab, log: Path, replica: int, site: Site) -> None:
    log.write_text("bye\n")
    show(tab, replica)
    tab.until(f"{SHOWN}.includes('bye')")
    site.scribe.end(replica_id=replica)
    tab.until(f"{BADGE} === 'ended'")


def noted(log: Path, *entries: tuple[int, int]) -> None:
    """Say beside the log that the bytes from each offset on were written at so many ms."""
    times = b"".join(offset.to_bytes(6, "big") + at.to_bytes(6, "big") for offset, at in entries)
    log.with_name(f"{log.name}.times").write_bytes(times)


def test_lines_have_times_a_range_and_a_link_and_are_copied(tab: Tab, log: Path, replica: int) -> None:
    begin = 1_790_000_000_000  # a whole second
    lines = [f"line {number:05d}\n" for number in range(20_000)]
    log.write_text("".join(lines))
    noted(log, *((number * 11, begin + number * 1000) for number in range(0, 20_000, 10)))
    tab(lambda page: page.context.grant_permissions(["clipboard-read", "clipboard-write"]))
    show(tab, replica)
    tab.until(f"{SHOWN}.includes('line 19999')")
    tab(lambda page: page.click("text=Times"))
    last = "[...document.querySelectorAll('.log-row')].find((row) => row.textContent === 'line 19999').firstChild"
    tab.until(f"{last}.title.includes(new Date({begin + 19_990_000}).toISOString())")
    tab(lambda page: page.click("text=Range"))
    for label, second in (("From", 5000), ("to", 5019)):
        here = "new Date(argument - new Date(argument).getTimezoneOffset() * 60000)"
        local = tab.ask(f"{here}.toISOString().slice(0, 19)", begin + second * 1000)
        tab(lambda page, label=label, local=local: page.get_by_label(label, exact=True).fill(local))  # type: ignore[misc]
    tab(lambda page: page.click(".log-range [type=submit]"))
    tab.until(f"{SHOWN}.includes('line 05000') && !{SHOWN}.includes('line 19999')")
    assert shown(tab) == [f"line {number:05d}" for number in range(5000, 5020)]
    tab(lambda page: page.fill(".log-search", "line"))
    tab.until("document.querySelector('.log-count').textContent === '1 of 20'")
    tab(lambda page: page.fill(".log-search", ""))
    place = "[...document.querySelectorAll('.log-row')].find((row) => row.textContent === '{}').firstChild.click()"
    tab.ask(place.format("line 05003"))
    assert tab.ask("picked") == [5003 * 11, 5003 * 11]
    tab(
        lambda page: page.locator(".log-row", has_text="line 05005").locator(".log-place-of").click(modifiers=["Shift"])
    )
    tab(lambda page: page.get_by_role("button", name="Copy").click())
    tab.until("document.querySelectorAll('.log-marked:not([hidden])').length === 3")
    copied = tab(lambda page: page.evaluate("() => navigator.clipboard.readText()"))
    assert copied == "line 05003\nline 05004\nline 05005"
    tab(lambda page: page.focus(".log-box"))
    for keys, picked in [
        ("Alt+ArrowDown", [5006, 5006]),
        ("Alt+Shift+ArrowDown", [5006, 5007]),
        ("Alt+ArrowUp", [5005, 5005]),
    ]:
        tab(lambda page, keys=keys: page.keyboard.press(keys))  # type: ignore[misc]
        tab.until(f"JSON.stringify(picked) === '[{picked[0] * 11},{picked[1] * 11}]'")
    tab(lambda page: page.click(".log-range >> text=All"))
    tab.until(f"{SHOWN}.includes('line 19999') && {BADGE} === 'live'")
    tab.ask("view.jump(argument)", 777 * 11)
    tab.until("document.querySelector('.log-marked:not([hidden])')?.textContent === 'line 00777'")
    tab(lambda page: page.get_by_role("button", name="Full screen").click())
    tab.until("document.fullscreenElement?.id === 'log'")
    tab(lambda page: page.get_by_role("button", name="Full screen").click())
    tab.until("document.fullscreenElement === null")


def test_a_selection_over_lines_is_copied_as_they_stand(tab: Tab, log: Path, replica: int) -> None:
    log.write_text(coloured(0, 3000))
    tab(lambda page: page.context.grant_permissions(["clipboard-read", "clipboard-write"]))
    show(tab, replica)
    tab.until(f"{SHOWN}.some((text) => text.includes('line 2999 '))")
    wheel(tab, -700)
    tab.until("!document.querySelector('.log-follow').hidden")
    at_rest(tab)
    lines = shown(tab)
    tab(lambda page: page.evaluate("() => getSelection().selectAllChildren(document.querySelector('.log-space'))"))
    tab(lambda page: page.keyboard.press("Control+c"))
    copied = tab(lambda page: page.evaluate("() => navigator.clipboard.readText()"))
    assert copied.split("\n") == lines


def test_replicas_are_read_as_one_log_in_the_order_of_time(tab: Tab, site: Site, service: int) -> None:
    begin, logs, ids = 1_790_000_000_000, [], []
    for number in (1, 2, 3):
        log = site.home / "replicas" / f"m{service}-{number}" / "run.log"
        log.parent.mkdir(parents=True)
        lines = [f"of {number} line {count:04d}{' <b>NEEDLE' if count == 100 else ''}\n" for count in range(2000)]
        log.write_text("".join(lines))
        ends = [sum(map(len, lines[:count])) for count in range(2000)]
        noted(log, *((ends[count], begin + count * 3000 + number * 1000) for count in range(2000)))
        logs.append(log)
        ids.append(site.scribe.replica(service_id=service, log=str(log))["replica"])
    site.scribe.end(replica_id=ids[2])
    name = site.scribe.name_of(service_id=service)
    tab.goto(f"/services/{name}/logs")
    tab.until(f"{SHOWN}.includes('of 1 line 1999') && {SHOWN}.includes('of 2 line 1999')")
    told = [(int(text.split()[3]), int(text.split()[1])) for text in shown(tab)]
    assert told == sorted(told)
    assert {number for _, number in told} == {1, 2}  # those that live
    colours = (
        "[...new Set([...document.querySelectorAll('.log-place-of')].map((place) => place.dataset.colour))].sort()"
    )
    assert tab.ask(colours) == ["1", "2"]
    tab(lambda page: page.get_by_text("1 ended").click())
    tab(lambda page: page.get_by_role("checkbox", name="#3").check())
    tab.until(f"{SHOWN}.includes('of 3 line 1999') && {SHOWN}.includes('of 1 line 1999')")
    assert tab.ask("location.search") == "?replicas=1,2,3"
    with logs[1].open("a") as file:
        file.write("of 2 line 2000\n")
    tab.until(f"{SHOWN}.includes('of 2 line 2000')")
    tab(lambda page: page.fill(".log-search", "needle"))
    tab.until("document.querySelector('.log-count').textContent.endsWith(' of 3')")
    tab.until("document.querySelector('.log-marked:not([hidden])')?.textContent.endsWith('NEEDLE')")
    tab(lambda page: page.get_by_role("button", name="Next match").click())
    tab.until(f"{SHOWN}.includes('of 1 line 0100 <b>NEEDLE')")
    told = [(int(text.split()[3]), int(text.split()[1])) for text in shown(tab)]
    assert told == sorted(told)
    assert {number for _, number in told} == {1, 2, 3}
    tab(lambda page: page.locator(".log-box").hover())
    tab(lambda page: page.mouse.wheel(0, -4000))  # what is above is fetched from all of them
    tab.until(f"{SHOWN}.some((text) => /of 3 line 00[0-8]/.test(text))")
    told = [(int(text.split()[3]), int(text.split()[1])) for text in shown(tab)]
    assert told == sorted(told)
    tab(lambda page: page.locator(".log-row:not([hidden]) .log-place-of").nth(20).click())
    picked = tab.until("document.querySelector('.log-marked:not([hidden])')?.textContent")
    tab(lambda page: page.reload())
    tab.until("document.querySelector('.log-marked:not([hidden])') !== null")
    assert tab.ask("document.querySelector('.log-marked:not([hidden])').textContent") == picked
    tab(lambda page: page.click(".log-follow"))
    tab.until(f"{SHOWN}.includes('of 2 line 2000') && {BADGE} === 'live'")
    tab(lambda page: page.get_by_role("button", name="Those that live").click())
    tab.until(
        f"document.querySelector('#past input[value=\"3\"]').checked === false && {SHOWN}.includes('of 2 line 2000')"
    )
    site.scribe.end(replica_id=ids[1])  # while one looks: what it said last stays
    tab.until("document.getElementById('past-count').textContent === '2 ended'")
    assert tab.ask("document.querySelector('#past input[value=\"2\"]').checked")
