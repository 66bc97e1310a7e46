"""Acting on pages: every act asks first, is posted once, answers with a toast, and leaves the page where it is."""

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.visitor import Visitor
from tests.web import people
from tests.web.site import Scribe

Visit = Callable[..., Visitor]


def toast(page: Page, text: str) -> None:
    """The page says this."""
    expect(page.locator("#toasts .toast").filter(has_text=text)).to_be_visible()


def test_scaling_asks_posts_once_and_is_seen(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name, replicas=2)
    with visit() as visitor:
        page = visitor.goto(f"/services/{name}/")
        visitor.mark()
        posts: list[str] = []
        page.on("request", lambda request: posts.append(request.url) if request.method == "POST" else None)
        page.get_by_role("button", name="Scale").click()
        dialog = page.get_by_role("dialog", name=f"Scale {name}")
        field = dialog.get_by_label("Replicas")
        expect(field).to_have_value("2")
        expect(field).to_be_focused()
        field.fill("5")
        dialog.get_by_role("button", name="Scale").dblclick()
        toast(page, f"{name} is to have 5 replicas.")
        expect(dialog).to_be_hidden()
        expect(page.locator("#ready")).to_have_text("0 / 5")
        assert len(posts) == 1
        assert clerk.target_of(name=name) == 5
        assert visitor.marked()


def test_a_release_is_taken_back(visit: Visit, clerk: Scribe, name: str) -> None:
    policy = "  replica_policy: {min_replicas: 1, max_replicas: 8, target_qps_per_replica: 5}"
    clerk.apply(text=people.text(name).replace("  replicas: 2", policy))
    clerk.scale(name=name, target=3)
    with visit() as visitor:
        page = visitor.goto(f"/services/{name}/")
        visitor.mark()
        fixed = page.locator("#pinned-fact")
        page.get_by_role("button", name="Release").click()
        toast(page, f"The load decides again how many replicas {name} has.")
        expect(fixed).to_be_hidden()
        page.locator("#toasts").get_by_role("button", name="Undo").click()
        toast(page, f"{name} is to have 3 replicas.")
        expect(fixed).to_be_visible()
        assert clerk.target_of(name=name) == 3
        assert visitor.marked()


def test_a_dialog_can_be_left_in_every_way_and_nothing_happens(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name)
    with visit() as visitor:
        page = visitor.goto(f"/services/{name}/")
        opener = page.get_by_role("button", name="Take down")
        dialog = page.get_by_role("dialog", name=f"Take down {name}?")
        for leave in (
            lambda: page.keyboard.press("Escape"),
            lambda: dialog.get_by_role("button", name="Leave it").click(),
            lambda: page.mouse.click(5, 400),
        ):
            opener.click()
            expect(dialog).to_be_visible()
            leave()
            expect(dialog).to_be_hidden()
        assert clerk.count_events(trigger="down_requested", name=name) == 0


def test_a_choice_to_forget_is_not_kept_for_the_next_time(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name)
    with visit() as visitor:
        page = visitor.goto(f"/services/{name}/")
        opener = page.get_by_role("button", name="Take down")
        box = page.locator("#dialog-down input[name=purge]")
        opener.click()
        box.check()
        page.keyboard.press("Escape")
        opener.click()
        expect(box).not_to_be_checked()


def test_what_is_down_can_be_forgotten_and_not_taken_down_again(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name)
    with visit() as visitor:
        page = visitor.goto(f"/services/{name}/")
        expect(page.get_by_role("button", name="Forget")).to_be_hidden()
        page.get_by_role("button", name="Take down").click()
        page.get_by_role("dialog").get_by_role("button", name="Take down").click()
        head = page.locator(".head")
        expect(head.get_by_role("button", name="Take down")).to_be_hidden()
        head.get_by_role("button", name="Forget").click()
        page.get_by_role("dialog", name=f"Forget {name}?").get_by_role("button", name="Forget").click()
        toast(page, f"{name} is going down and is forgotten then.")


def test_one_replica_is_terminated_from_its_row(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name)
    first, second = clerk.ready(name=name), clerk.ready(name=name)
    with visit() as visitor:
        page = visitor.goto(f"/services/{name}/")
        visitor.mark()
        button = page.get_by_role("button", name=f"Terminate replica {second} of {name}")
        button.click()
        dialog = page.get_by_role("dialog", name=f"Terminate replica {second} of {name}?")
        dialog.get_by_role("button", name="Terminate").click()
        toast(page, f"Replica {second} of {name} is going to be terminated.")
        expect(button).to_be_disabled()
        expect(page.get_by_role("button", name=f"Terminate replica {first} of {name}")).to_be_enabled()
        expect(page.locator(f'tr[data-row="{second}"] .why')).to_contain_text("Terminated by visitor")
        assert visitor.marked()


def test_a_launch_is_cancelled_where_it_is_in_flight(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name)
    number = clerk.pending(name=name)
    with visit() as visitor:
        page = visitor.goto(f"/services/{name}/")
        page.locator("#operations").get_by_role("button", name="Cancel").click()
        dialog = page.get_by_role("dialog", name=f"Cancel the launch of replica {number}?")
        dialog.get_by_role("button", name="Cancel the launch").click()
        toast(page, f"The launch of replica {number} of {name} is being cancelled. While {name} wants as many replicas")
        expect(page.locator("#flight")).to_be_hidden()
        expect(page.get_by_text("No replica is alive.")).to_be_visible()


def test_what_is_refused_is_said_and_stays_until_it_is_read(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name)
    with visit() as visitor:
        visitor.expected = ["409"]
        page = visitor.goto(f"/services/{name}/")
        page.get_by_role("button", name="Restart").click()
        clerk.restart(name=name)
        expect(page.locator("#version")).to_have_text("v2")
        page.get_by_role("dialog").get_by_role("button", name="Restart").click()
        toast(page, "at version 2 by now")
        message = page.get_by_role("alert")
        message.get_by_role("button", name="Close").click()
        expect(message).to_have_count(0)
        assert clerk.count_events(trigger="restarted", name=name) == 1


def test_a_server_that_does_not_answer_is_said(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name)
    with visit() as visitor:
        visitor.expected = ["ERR_FAILED"]
        page = visitor.goto(f"/services/{name}/")
        page.route("**/restart", lambda route: route.abort())
        page.get_by_role("button", name="Restart").click()
        page.get_by_role("dialog").get_by_role("button", name="Restart").click()
        toast(page, "The server did not answer.")
        assert clerk.count_events(trigger="restarted", name=name) == 0


def test_who_may_only_look_has_nothing_to_press(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name)
    number = clerk.ready(name=name)
    clerk.pending(name=name)
    with visit(["view_service"]) as visitor:
        for path in ("/", f"/services/{name}/", f"/services/{name}/replicas/{number}/", "/operations/"):
            page = visitor.goto(path)
            expect(page.locator("#connection")).to_have_text("Live")
            for button in ("Scale", "Restart", "Take down", "Terminate", "Cancel", "Retry now"):
                expect(page.get_by_role("button", name=button)).to_have_count(0)
            expect(page.get_by_role("link", name=re.compile("Edit|New service"))).to_have_count(0)


def test_signing_in_and_out(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name)
    clerk.user(name=f"person-{name}", permissions=["view_service"])
    with visit(None) as visitor:
        page = visitor.goto(f"/services/{name}/")
        expect(page).to_have_title("Sign in · Rollcall")
        page.get_by_label("Name").fill(f"person-{name}")
        page.get_by_label("Password").fill("wrong")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_contain_text("correct username and password")
        page.get_by_label("Password").fill("correct horse")
        page.get_by_role("button", name="Sign in").click()
        expect(page.locator("h1")).to_contain_text(name)
        page.locator("summary", has_text=f"person-{name}").click()
        visitor.expected += [r"\b401\b.*samples\.json"]  # the plots may ask once more meanwhile
        page.get_by_role("button", name="Sign out").click()
        expect(page).to_have_title("Sign in · Rollcall")
