"""Pages stay true without a reload: over the websocket, over a lost server, over missing events."""

import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.conftest import Desk
from tests.browser.visitor import CUT_OFF, Visitor
from tests.web.site import Scribe

Visit = Callable[..., Visitor]


def row(page: Page, name: str) -> Any:
    """The row of a service, or of a replica by its number."""
    return page.locator(f'tr[data-row="{name}"]')


def test_the_list_of_services_follows(visit: Visit, clerk: Scribe, name: str) -> None:
    with visit() as visitor:
        page = visitor.goto("/")
        visitor.mark()
        clerk.deploy(name=name, replicas=3)
        mine = row(page, name)
        expect(mine.locator(".badge")).to_have_text("CONTROLLER_INIT")
        expect(mine.locator(".cell.hollow")).to_have_count(3)
        clerk.ready(name=name)
        clerk.report(name=name, status="READY", reason="1 of 3 ready")
        expect(mine.locator(".badge")).to_have_text("READY")
        expect(mine.locator(".cell[data-state=READY]")).to_have_count(1)
        expect(mine.locator(".ready .figure")).to_have_text("1 / 3")
        expect(mine.locator(".reason")).to_have_text("1 of 3 ready.")
        clerk.report(name=name, status="FAILED", reason="0 of 3 ready; all failed")
        expect(page).to_have_title(re.compile(r"▲ \d+ in trouble"))
        expect(page.locator("link[rel=icon]")).to_have_attribute("href", re.compile("icon-trouble"))
        clerk.report(name=name, status="READY", reason="1 of 3 ready")
        expect(page).to_have_title("Services · Rollcall")
        assert visitor.marked()


def test_whose_a_service_is_follows(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name)
    with visit() as visitor:
        page = visitor.goto(f"/services/{name}/")
        expect(page.locator("#connection")).to_have_text("Live")
        expect(page.locator("#owner-fact")).to_be_hidden()
        visitor.mark()
        clerk.give(name=name, owner="olga")
        expect(page.locator("#owner")).to_have_text("olga")
        assert visitor.marked()


def test_the_timeline_shows_what_is_asked_for(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name)
    number = clerk.pending(name=name)
    with visit() as visitor:
        page = visitor.goto(f"/services/{name}/")
        events, choice = page.locator("#events li"), page.get_by_label("Events that are shown")
        expect(events).to_have_count(2)
        choice.select_option("Of replicas")
        expect(events).to_have_count(1)
        clerk.scale(name=name, target=5)
        clerk.provisioning(name=name, number=number)
        expect(events).to_have_text([re.compile("launch begun"), re.compile("created")])
        choice.select_option("Of the autoscaler")
        expect(page.locator("#no-events")).to_be_visible()
        expect(page).to_have_url(re.compile(r"\?events=autoscaler$"))


def test_the_filter_is_in_the_address_and_stays_while_rows_change(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name)
    clerk.deploy(name=f"{name}-other")
    with visit() as visitor:
        page = visitor.goto("/")
        page.get_by_role("searchbox").fill(f"{name}-o")
        expect(row(page, name)).to_have_count(0)
        expect(row(page, f"{name}-other")).to_be_visible()
        clerk.scale(name=f"{name}-other", target=4)
        expect(row(page, f"{name}-other").locator(".ready .figure")).to_have_text("0 / 4")
        expect(page).to_have_url(re.compile(rf"\?q={name}-o$"))
        page.reload()
        expect(row(page, name)).to_have_count(0)
        expect(row(page, f"{name}-other")).to_be_visible()
        page.get_by_role("searchbox").fill("nothing-like-it")
        expect(page.get_by_text("No service matches the filter.")).to_be_visible()


def test_a_replica_is_followed_from_wish_to_history(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name, replicas=1)
    with visit() as visitor:
        page = visitor.goto(f"/services/{name}/")
        visitor.mark()
        expect(page.get_by_text("No replica is alive.")).to_be_visible()
        number = clerk.pending(name=name)
        state = row(page, number).locator(".badge")
        expect(state).to_have_text("PENDING")
        expect(page.locator("#operations")).to_contain_text(f"Launch of replica {number}")
        clerk.provisioning(name=name, number=number)
        expect(state).to_have_text("PROVISIONING")
        clerk.waiting(name=name, number=number, reason="setup of version 1")
        expect(page.locator("#operations .waits")).to_have_text("Waits for: setup of version 1")
        clerk.go_on(name=name, number=number)
        clerk.launched(name=name, number=number, port=20123)
        expect(state).to_have_text("STARTING")
        expect(page.locator("#flight")).to_be_hidden()
        expect(row(page, number).locator(".url a")).to_have_attribute("href", "http://127.0.0.1:20123")
        clerk.probed(name=name, number=number)
        expect(state).to_have_text("READY")
        expect(row(page, number).locator(".probe b")).to_have_text("passed, 12 ms")
        clerk.exited(name=name, number=number)
        expect(state).to_have_text("SHUTTING_DOWN")
        expect(row(page, number).locator(".why bdi")).to_have_text("FAILED: Run exited with code 7.")
        clerk.down(name=name, number=number)
        expect(page.locator("#past-count")).to_have_text("1 ended replica")
        page.locator("#past summary").click()
        expect(page.locator("#history .badge")).to_have_text("FAILED")
        latest = page.locator("#events li").first
        expect(latest).to_contain_text(f"Replica {number} gone")
        assert visitor.marked()


def test_a_replicas_page_follows(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name)
    number = clerk.pending(name=name)
    with visit() as visitor:
        page = visitor.goto(f"/services/{name}/replicas/{number}/")
        visitor.mark()
        expect(page.locator("#state")).to_have_text("PENDING")
        expect(page).to_have_title(f"#{number} PENDING · {name} · Rollcall")
        expect(page.get_by_role("tab", name="Launch")).to_have_attribute("aria-selected", "true")
        expect(page.get_by_text("It was not probed yet.")).to_be_visible()
        clerk.provisioning(name=name, number=number)
        expect(page.locator("#start-list")).to_contain_text("so far")
        clerk.launched(name=name, number=number)
        expect(page.get_by_role("tab", name="Run")).to_have_attribute("aria-selected", "true")
        clerk.probed(name=name, number=number, ok=True, detail="GET /healthz: 200")
        expect(page.locator("#state")).to_have_text("READY")
        expect(page.locator("#start-list li")).to_have_count(3)
        expect(page.locator("#start-end")).to_contain_text("ready for the first time")
        expect(page.locator("#probe-detail")).to_have_text("GET /healthz: 200.")
        expect(page.locator("#probe-excerpt")).to_have_text("ok\n")
        clerk.exited(name=name, number=number)
        expect(page.locator("#last-lines")).to_contain_text("Traceback: no such model")
        expect(page.locator("#sentence")).to_have_text("FAILED: Run exited with code 7.")
        clerk.down(name=name, number=number)
        expect(page.locator("#state")).to_have_text("FAILED")
        expect(page).to_have_title(f"▲ #{number} FAILED · {name} · Rollcall")
        expect(page.get_by_role("button", name="Terminate")).to_be_hidden()
        assert visitor.marked()


def test_of_a_page_that_nobody_sees_the_title_is_kept_true_and_nothing_else(
    visit: Visit, clerk: Scribe, name: str
) -> None:
    clerk.deploy(name=name, replicas=1)
    number = clerk.pending(name=name)
    with visit() as visitor:
        page = visitor.goto(f"/services/{name}/")
        state, icon = row(page, number).locator(".badge"), page.locator("link[rel=icon]")
        expect(state).to_have_text("PENDING")
        expect(page).to_have_title(f"{name} · 0 / 1 ready · Rollcall")
        expect(page.locator("#connection")).to_have_text("Live")
        visitor.be_seen(False)
        page.evaluate(
            """() => {
              window.drawn = [];
              const all = { subtree: true, childList: true, attributes: true, characterData: true };
              const note = (found) => window.drawn.push(...found.map(({ target }) => target.id || target.nodeName));
              new MutationObserver(note).observe(document.querySelector("main"), all);
            }"""
        )
        clerk.provisioning(name=name, number=number)
        clerk.launched(name=name, number=number)
        clerk.probed(name=name, number=number)
        clerk.report(name=name, status="FAILED", reason="the probe lies")
        expect(page).to_have_title(f"▲ {name} · 1 / 1 ready · Rollcall")
        expect(icon).to_have_attribute("href", re.compile("icon-trouble"))
        assert page.evaluate("() => window.drawn") == []
        expect(state).to_have_text("PENDING")
        visitor.be_seen(True)
        expect(state).to_have_text("READY")
        expect(page.locator("#sentence")).to_have_text("The probe lies.")
        visitor.goto(f"/services/{name}/logs")
        expect(page).to_have_title(f"▲ Logs · {name} · Rollcall")


def test_what_came_just_before_a_page_was_hidden_is_in_its_title(visit: Visit, clerk: Scribe, name: str) -> None:
    """The frame that was to draw it does not come any more."""
    clerk.deploy(name=name, replicas=1)
    with visit() as visitor:
        page = visitor.goto(f"/services/{name}/")
        expect(page).to_have_title(f"{name} · 0 / 1 ready · Rollcall")
        expect(page.locator("#connection")).to_have_text("Live")
        asked = page.evaluate_handle(
            """() => {
              const asked = { times: 0 };
              window.requestAnimationFrame = () => (asked.times += 1);
              return asked;
            }"""
        )
        clerk.report(name=name, status="FAILED", reason="the probe lies")
        page.wait_for_function("(asked) => asked.times > 0", arg=asked, polling=50)
        expect(page).to_have_title(f"{name} · 0 / 1 ready · Rollcall")
        visitor.be_seen(False)
        expect(page).to_have_title(f"▲ {name} · 0 / 1 ready · Rollcall")


def test_operations_are_followed(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name)
    with visit() as visitor:
        page = visitor.goto("/operations/")
        visitor.mark()
        number = clerk.pending(name=name)
        mine = page.locator("#live tr", has_text=f"Launch of {name} #{number}")
        expect(mine.locator(".badge")).to_have_text("QUEUED")
        clerk.provisioning(name=name, number=number)
        expect(mine.locator(".badge")).to_have_text("RUNNING")
        clerk.waiting(name=name, number=number, reason="a free port")
        expect(mine.locator(".why")).to_have_text("Waits for: a free port.")
        clerk.cancel(name=name, number=number)
        expect(mine.locator(".badge")).to_have_text("CANCELLING")
        other = clerk.ready(name=name)
        done = page.locator("#past tr", has_text=f"Launch of {name} #{other}")
        expect(done.locator(".badge")).to_have_text("SUCCEEDED")
        expect(done.locator(".memory")).to_have_text("42 MB")
        assert visitor.marked()


def test_a_new_version_is_shown_without_a_reload(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name)
    with visit() as visitor:
        page = visitor.goto(f"/services/{name}/")
        visitor.mark()
        clerk.restart(name=name)
        expect(page.locator(".spec-facts")).to_contain_text("Version 2 by bob")
        expect(page.locator("#version")).to_have_text("v2")
        assert visitor.marked()


def test_focus_and_selection_stay_while_rows_come_and_go(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name, replicas=3)
    first, second = clerk.ready(name=name), clerk.ready(name=name)
    with visit() as visitor:
        page = visitor.goto(f"/services/{name}/")
        link = row(page, first).locator("a[data-main]")
        link.focus()
        third = clerk.ready(name=name)
        expect(row(page, third).locator(".badge")).to_have_text("READY")
        clerk.exited(name=name, number=second)
        clerk.down(name=name, number=second)
        clerk.probed(name=name, number=first, ok=False, detail="no answer")
        expect(row(page, first).locator(".badge")).to_have_text("NOT_READY")
        expect(link).to_be_focused()


def test_a_lost_server_is_told_and_the_page_catches_up(visit: Visit, desk: Desk, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name)
    number = clerk.ready(name=name)
    with visit() as visitor:
        visitor.expected = [r"WebSocket connection", CUT_OFF]
        page = visitor.goto(f"/services/{name}/")
        visitor.mark()
        connection = page.locator("#connection")
        expect(connection).to_have_text("Live")
        desk.kill()
        expect(connection).to_have_text(re.compile(r"Reconnecting since \d\d?:\d\d:\d\d"))
        expect(connection).to_have_text(re.compile(r", [1-9]\d* s old$"))
        expect(connection).to_have_attribute("title", re.compile("What you see is as of"))
        clerk.exited(name=name, number=number)
        another = clerk.ready(name=name)
        desk.start()
        expect(connection).to_have_text("Live")
        expect(row(page, number).locator(".badge")).to_have_text("SHUTTING_DOWN")
        expect(row(page, another).locator(".badge")).to_have_text("READY")
        assert visitor.marked()


def test_missing_events_make_the_page_start_over_from_a_snapshot(
    visit: Visit, desk: Desk, clerk: Scribe, name: str
) -> None:
    clerk.deploy(name=name)
    number = clerk.ready(name=name)
    with visit() as visitor:
        visitor.expected = [r"WebSocket connection", CUT_OFF]
        page = visitor.goto(f"/services/{name}/")
        visitor.mark()
        expect(page.locator("#connection")).to_have_text("Live")
        desk.kill()
        clerk.exited(name=name, number=number)
        clerk.scale(name=name, target=5)
        clerk.prune_events(up_to=clerk.newest() - 1)
        desk.start()
        expect(row(page, number).locator(".badge")).to_have_text("SHUTTING_DOWN")
        expect(page.locator("#ready")).to_have_text("0 / 5")
        expect(page.locator("#connection")).to_have_text("Live")
        clerk.scale(name=name, target=6)
        expect(page.locator("#ready")).to_have_text("0 / 6")
        assert visitor.marked()


def test_whoever_is_signed_out_elsewhere_is_told(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name)
    with visit() as visitor:
        # Its plots may have asked before the feed was told, and a feed that was cut off meanwhile dials in vain.
        visitor.expected += [r"\b401\b.*", "Unexpected response code: 403"]
        page = visitor.goto(f"/services/{name}/")
        expect(page.locator("#connection")).to_have_text("Live")
        session = next(each for each in visitor.context.cookies() if "session" in each["name"])
        clerk.end_session(key=session["value"])
        connection = page.locator("#connection")
        expect(connection).to_have_text("Signed out", timeout=15_000)
        expect(connection).to_have_attribute("href", f"/login?next=%2Fservices%2F{name}%2F")


def test_a_forgotten_service_says_so_and_comes_back_under_its_name(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name)
    with visit() as visitor:
        visitor.expected.append(r"\b404\b.*samples\.json")  # its plots may have asked before the feed was told
        page = visitor.goto(f"/services/{name}/")
        visitor.mark()
        clerk.take_down(name=name, purge=True)
        clerk.forget(name=name)
        expect(page.locator("#sentence")).to_contain_text("This service was forgotten")
        expect(page.get_by_role("button", name="Take down")).to_be_hidden()
        clerk.deploy(name=name, replicas=7)
        expect(page.locator("#ready")).to_have_text("0 / 7")
        assert visitor.marked()
