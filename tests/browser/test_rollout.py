"""Rollouts in a browser: planned in the editor, watched in the panel, steered, aborted, rolled back."""

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.test_deploy import sign_in
from tests.browser.visitor import Visitor
from tests.support.controlplane import ControlPlane
from tests.web import hostile, people
from tests.web.site import Scribe

SECONDS = 60_000
TEXT = """\
name: parrot
envs:
  GREETING: hello
run: exec python3 -m http.server "$PORT" --bind 127.0.0.1
service:
  replicas: 2
  drain_seconds: 1
  readiness_probe:
    path: /
    initial_delay_seconds: 60
    endpoint_probe_interval_seconds: 1
  rollout:
    min_ready_seconds: 1
"""
CANARY = TEXT.replace("hello", "good evening") + "    canary: 1\n"


@pytest.fixture
def visitor(
    control_plane: ControlPlane, chromium: Browser, request: pytest.FixtureRequest
) -> Iterator[Callable[[], Visitor]]:
    """Makes somebody who is not signed in; in the end nothing of the service is left."""
    yield lambda: Visitor(chromium, control_plane.url.rstrip("/"), {}, request.node.name)
    control_plane.manage("down", "--all", "--purge", "--wait", check=False)


def panel_says(page: Page, state: str, what: str) -> None:
    """Wait until the panel is so far."""
    expect(page.locator("#rollout-what")).to_have_text(what, timeout=SECONDS)
    expect(page.locator("#rollout-state")).to_have_text(state, timeout=SECONDS)


def cells(page: Page, side: str) -> list[str]:
    """The replicas of a side, as the panel has them."""
    found: list[str] = page.locator(f'.side[data-side="{side}"] .cell[href]').evaluate_all(
        "(nodes) => nodes.map((node) => node.title)"
    )
    return found


def press(page: Page, name: str, *, sure: str | None = None) -> None:
    """Press a button of the panel, and the one in the dialog that asks whether one is sure."""
    page.locator("#rollout").get_by_role("button", name=name).click()
    if sure:
        page.get_by_role("dialog").get_by_role("button", name=sure).click()


@pytest.mark.acceptance
def test_an_update_is_planned_watched_aborted_and_rolled_back(
    control_plane: ControlPlane, visitor: Callable[[], Visitor]
) -> None:
    file = control_plane.home / "parrot.yaml"
    file.write_text(TEXT)
    control_plane.manage("apply", str(file))
    with visitor() as someone:
        page = someone.goto("/services/parrot/")
        sign_in(page)
        panel_says(page, "SUCCEEDED", "First v1, rolling")
        expect(page.locator("#rollout-when")).to_have_text(re.compile(r"^\d+ (s|min) ago$"), use_inner_text=True)
        kept = page.locator("#replicas td.number a").all_inner_texts()
        lines = plan(page)
        someone.mark()
        watch(page)
        # It is given up: the old ones, which never went, are adopted.
        press(page, "Abort", sure="Abort and go back")
        panel_says(page, "SUCCEEDED", "Rollback v2 → v3, rolling")
        expect(page.locator("#replicas tr[data-state=READY]")).to_have_count(2, timeout=SECONDS)
        expect(page.locator("#replicas td.number a")).to_have_text(kept, use_inner_text=True)
        assert someone.marked()
        bring_back(page, lines)
        someone.mark()
        expect(page.locator("#rollout-wait")).to_have_text("somebody to promote it", timeout=SECONDS)
        press(page, "Promote", sure="Promote")
        panel_says(page, "SUCCEEDED", "Update v3 → v4, rolling")
        expect(page.locator("#replicas td.version", has_text="v4")).to_have_count(2, timeout=SECONDS)
        expect(page.locator(".spec-facts")).to_contain_text("the evening has come")
        assert someone.marked()


def plan(page: Page) -> list[str]:
    """Edit the text, read the plan, apply with a reason that would be markup; the plan's lines."""
    page.get_by_role("link", name="Edit").click()
    page.locator(".ace-place .ace_content").wait_for()
    page.evaluate("(text) => ace.edit(document.querySelector('.ace-place')).setValue(text, -1)", CANARY)
    shown = page.locator("#plan")
    expect(shown).to_contain_text(
        "Rolling: 2 replicas of version 2 are launched; 2 older ones (version 1) are drained."
    )
    expect(shown).to_contain_text("At most 3 are alive at a time (max_surge 25%), and at least 2 stay ready")
    expect(shown).to_contain_text("Canary: 1 replica of version 2 at first")
    lines: list[str] = shown.locator("li").all_inner_texts()
    page.get_by_label("Why").fill(hostile.IMAGE)
    page.get_by_role("button", name="Apply").click()
    panel_says(page, "PROGRESSING", "Update v1 → v2, rolling")
    return lines


def watch(page: Page) -> None:
    """The canary proves itself beside the old ones and waits for somebody; it is paused and resumed."""
    expect(page.locator("#rollout-wait")).to_have_text("somebody to promote it", timeout=SECONDS)
    expect(page.locator("#rollout-proved")).to_have_text("1 of 1")
    expect(page.locator("#rollout-when")).to_have_text(re.compile(r"^for \d+ s$"), use_inner_text=True)
    assert cells(page, "new") == ["replica 3: READY"]
    assert len(cells(page, "old")) == 2
    expect(page.locator("#rollout-good")).to_have_text("v1")
    expect(page.locator("#events")).to_contain_text(hostile.IMAGE)
    assert page.evaluate("() => window.pwned") is None
    press(page, "Pause")
    panel_says(page, "PAUSED", "Update v1 → v2, rolling")
    expect(page.locator("#rollout").get_by_role("button", name="Pause")).to_be_hidden()
    press(page, "Resume")
    panel_says(page, "PROGRESSING", "Update v1 → v2, rolling")
    press(page, "Pause")
    panel_says(page, "PAUSED", "Update v1 → v2, rolling")
    page.locator("#toasts").get_by_role("button", name="Undo").last.click()
    panel_says(page, "PROGRESSING", "Update v1 → v2, rolling")


def bring_back(page: Page, lines: list[str]) -> None:
    """The history knows the plan and the reason; from there the second version comes back."""
    page.get_by_role("link", name="Versions").click()
    expect(page.locator("tr[data-row]")).to_have_count(3)
    expect(page.locator('tr[data-row="2"] .why')).to_have_text(hostile.IMAGE)
    expect(page.locator('tr[data-row="2"] .rollout')).to_have_text("ABORTED")
    page.get_by_role("link", name="v2").click()
    expect(page.locator("ol.plan").first.locator("li")).to_have_text(lines, use_inner_text=True)
    page.get_by_role("button", name="Roll back to it").click()
    asked = page.get_by_role("dialog")
    expect(asked.locator("#plan")).to_contain_text("2 replicas of version 4 are launched; 2 older ones")
    asked.get_by_label("Why").fill("the evening has come")
    asked.get_by_role("button", name="Roll back").click()
    expect(page.locator("#toasts")).to_contain_text("parrot goes back to version 2, as version 4.")
    page.get_by_role("link", name="parrot").click()


Visit = Callable[..., Visitor]


def moving(clerk: Scribe, name: str, more: str = "") -> None:
    """A service that has proved version 1 and is on its way to version 2, of which one replica is ready."""
    text = people.text(name, 2)
    clerk.apply(text=text)
    for _ in range(2):
        clerk.ready(name=name)
    clerk.rollout_proved(name=name, best=2)
    clerk.rollout_ended(name=name, how="succeed", reason="version 1 has taken over")
    clerk.apply(text=text.replace("server.py", "other.py") + more)
    clerk.ready(name=name)


def shows_buttons(page: Page, *names: str) -> None:
    """Wait until these buttons of the panel, and no others, can be pressed."""
    for each in ("Pause", "Resume", "Promote", "Abort"):
        button = page.locator("#rollout").get_by_role("button", name=each)
        expect(button).to_be_visible(visible=each in names)


def test_only_the_buttons_that_are_allowed_now_are_shown(visit: Visit, clerk: Scribe, name: str) -> None:
    moving(clerk, name, "  rollout:\n    mode: blue_green\n    keep_old_seconds: 300\n")
    with visit() as visitor:
        page = visitor.goto(f"/services/{name}/")
        panel_says(page, "PROGRESSING", "Update v1 → v2, blue-green")
        shows_buttons(page, "Pause", "Abort")
        expect(page.locator('.side[data-side="new"]')).to_contain_text("gets no traffic")
        expect(page.locator('.side[data-side="old"]')).to_contain_text("gets traffic")
        clerk.steer(name=name, verb="pause")
        panel_says(page, "PAUSED", "Update v1 → v2, blue-green")
        shows_buttons(page, "Resume", "Abort")
        expect(page.locator("#rollout-wait")).to_have_text("somebody to resume it")
        clerk.steer(name=name, verb="resume")
        clerk.ready(name=name)
        clerk.rollout_proved(name=name, best=2)
        clerk.rollout_switched(name=name)
        expect(page.locator('.side[data-side="new"]')).to_contain_text("gets traffic")
        expect(page.locator('.side[data-side="old"]')).to_contain_text("gets no traffic")
        shows_buttons(page, "Pause", "Promote", "Abort")
        expect(page.locator("#rollout-wait")).to_have_text("the time of the old ones to be over (300 s)")
        clerk.steer(name=name, verb="abort")
        panel_says(page, "PROGRESSING", "Rollback v2 → v3, rolling")
        shows_buttons(page, "Pause")  # it goes back already
        expect(page.locator("#rollout-reason")).to_have_text(re.compile(r"^Back to version 1: aborted by \w+\.$"))
        clerk.rollout_proved(name=name, best=2)
        clerk.rollout_ended(name=name, how="succeed", reason="version 3 has taken over")
        panel_says(page, "SUCCEEDED", "Rollback v2 → v3, rolling")
        expect(page.locator("#rollout-reason")).to_contain_text("Back to version 1: aborted by")
        expect(page.locator("#rollout-reason")).to_contain_text("Version 3 has taken over.")
        expect(page.get_by_role("link", name="Back to v2")).to_be_hidden()
        clerk.take_down(name=name)
        expect(page.locator("#rollout")).to_be_hidden()


def test_a_failure_says_why_and_offers_the_way_back(visit: Visit, clerk: Scribe, name: str) -> None:
    moving(clerk, name)
    with visit() as visitor:
        page = visitor.goto(f"/services/{name}/")
        panel_says(page, "PROGRESSING", "Update v1 → v2, rolling")
        expect(page.locator("#rollout-deadline")).to_have_text(re.compile(r"in 29 min|in 30 min"))
        clerk.rollout_ended(name=name, how="fail", reason=hostile.SCRIPT)
        panel_says(page, "FAILED", "Update v1 → v2, rolling")
        expect(page.locator("#rollout-reason")).to_contain_text(hostile.SCRIPT)
        assert page.evaluate("() => window.pwned") is None
        shows_buttons(page)
        page.get_by_role("link", name="Back to v1").click()
        expect(page.get_by_role("dialog")).to_contain_text(f"Roll {name} back to version 1?")
        expect(page.get_by_role("dialog").locator("#plan li").first).to_be_visible()


def test_the_list_tells_how_far_it_is(visit: Visit, clerk: Scribe, name: str) -> None:
    moving(clerk, name)
    with visit() as visitor:
        page = visitor.goto(f"/?q={name}")
        version = page.locator(f'tr[data-row="{name}"] .version')
        expect(version).to_have_text("v1 → v21 / 2 ready")
        clerk.ready(name=name)
        expect(version).to_have_text("v1 → v22 / 2 ready")
        clerk.steer(name=name, verb="pause")
        expect(version).to_have_text("v1 → v2paused, 2 / 2 ready")
        clerk.steer(name=name, verb="resume")
        clerk.rollout_proved(name=name, best=2)
        clerk.rollout_ended(name=name, how="succeed", reason="done")
        expect(version).to_have_text("v2")
