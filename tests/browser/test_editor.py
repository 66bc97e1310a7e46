"""The YAML editor: faults at their lines while one types, the plan, conflicts, and without any script."""

from collections.abc import Callable

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

from tests.browser.visitor import Visitor
from tests.web import people
from tests.web.site import Scribe

Visit = Callable[..., Visitor]


def write(page: Page, text: str) -> None:
    """Replace the editor's text as by pasting."""
    page.evaluate("(text) => ace.edit(document.querySelector('.ace-place')).setValue(text, -1)", text)


def fault(page: Page) -> Locator:
    """The faults beside the editor."""
    return page.locator("#faults li")


def test_a_service_is_made_from_an_example(visit: Visit, name: str) -> None:
    with visit() as visitor:
        page = visitor.goto("/new")
        page.get_by_role("link", name="http", exact=True).click()
        expect(page.locator(".ace_content")).to_contain_text("name: http")
        page.get_by_label("Name").fill(name)
        expect(page.locator("#verdict")).to_have_text(f"This creates the service {name}.")
        expect(page.locator("#changes")).to_contain_text("2 replicas on the provider local")
        page.get_by_role("button", name="Create").click()
        expect(page.locator("h1")).to_contain_text(name)
        expect(page.locator(".toast")).to_contain_text(f"{name} is created as version 1")


def test_faults_appear_at_their_lines_and_go(visit: Visit, name: str) -> None:
    with visit() as visitor:
        page = visitor.goto("/new")
        write(page, people.text(name).replace("replicas: 2", "replicaz: 2"))
        expect(page.locator("#verdict")).to_have_text("1 fault")
        expect(fault(page)).to_contain_text("Line 8")
        expect(fault(page)).to_contain_text("replicas")
        expect(page.locator(".ace_gutter-cell.ace_error")).to_have_text("8")
        expect(page.locator(".fault-line")).to_have_count(1)
        fault(page).get_by_role("button", name="Line 8").click()
        assert page.evaluate("() => ace.edit(document.querySelector('.ace-place')).getCursorPosition().row") == 7
        write(page, people.text(name))
        expect(page.locator("#verdict")).to_have_text(f"This creates the service {name}.")
        expect(page.locator(".ace_gutter-cell.ace_error")).to_have_count(0)
        expect(page.locator(".fault-line")).to_have_count(0)
        expect(page.locator("#faults")).to_be_hidden()


def test_typing_is_checked_once_it_pauses(visit: Visit, name: str) -> None:
    with visit() as visitor:
        page = visitor.goto("/new")
        checks: list[str] = []
        page.on("request", lambda request: checks.append(request.url) if request.url.endswith("/check") else None)
        expect(page.locator("#verdict")).to_contain_text("This creates")
        checks.clear()
        page.locator(".ace-place").click()
        page.keyboard.press("Control+End")
        page.keyboard.type("retries: 3 # a key that is not there", delay=5)
        expect(page.locator("#verdict")).to_have_text("1 fault")
        assert 1 <= len(checks) <= 3


def test_an_edit_shows_what_it_changes_and_applies_it(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name, replicas=2)
    with visit() as visitor:
        page = visitor.goto(f"/services/{name}/")
        page.get_by_role("link", name="Edit").click()
        expect(page.locator("#verdict")).to_have_text(f"This changes nothing in {name}.")
        write(page, people.text(name, replicas=3))
        expect(page.locator("#changes")).to_contain_text("2 → 3")
        expect(page.locator("#plan")).to_contain_text("In place: nothing that a replica is made from changes")
        page.get_by_label("Why").fill("one more for the evening")
        page.get_by_role("button", name="Apply").click()
        expect(page.locator("#ready")).to_have_text("0 / 3")
        expect(page.locator("#events")).to_contain_text("One more for the evening.")


def test_an_edit_meets_somebody_elses(visit: Visit, clerk: Scribe, name: str) -> None:
    clerk.deploy(name=name, replicas=2)
    with visit() as visitor:
        visitor.expected = ["409"]
        page = visitor.goto(f"/services/{name}/edit")
        expect(page.locator("#connection")).to_have_text("Live")
        write(page, people.text(name, replicas=3))
        clerk.apply(text=people.text(name, replicas=9), actor="bob")
        expect(page.locator("#meanwhile")).to_contain_text("bob made version 2 meanwhile.")
        page.get_by_role("button", name="Apply").click()
        expect(page.get_by_role("alert")).to_contain_text("is at version 2 by now, not 1")
        page.get_by_label("Why").fill("mine is better")
        page.get_by_label("Why").press("Enter")  # it does not apply over another version by itself
        expect(page.get_by_role("alert")).to_contain_text("is at version 2 by now, not 1")
        expect(page.get_by_label("Why")).to_have_value("mine is better")
        page.get_by_text("What version 2 says").click()
        expect(page.locator(".notice .code")).to_contain_text("replicas: 9")
        expect(page.locator(".ace_content")).to_contain_text("replicas: 3")
        page.get_by_role("button", name="Apply over version 2").click()
        expect(page.locator("#ready")).to_have_text("0 / 3")


def test_what_was_written_outlives_the_session(visit: Visit, name: str) -> None:
    with visit() as visitor:
        visitor.expected += ["401", "403", "WebSocket"]
        page = visitor.goto("/new?example=http")
        expect(page.locator("#plan")).to_be_visible()
        cookies = visitor.context.cookies()
        visitor.context.clear_cookies()
        write(page, people.text(name))
        expect(page.locator("#verdict")).to_contain_text("could not be checked: The form is out of date")
        expect(page.locator("#verdict")).to_have_attribute("data-tone", "warn")
        expect(page.locator("#plan")).to_be_hidden()
        visitor.context.add_cookies([each for each in cookies if "csrf" in each["name"]])
        page.get_by_label("Why").fill("typed with care")
        write(page, people.text(name, replicas=3))
        expect(page.locator("#verdict")).to_contain_text("You are signed out. Sign in again.")
        page.get_by_role("button", name="Create").click()
        expect(page).to_have_title("Sign in · Rollcall")
        visitor.context.add_cookies(cookies)
        page.goto(page.url)  # as after the password
        expect(page.locator("#draft")).to_contain_text("was not sent.")
        expect(page.locator(".ace_content")).to_contain_text("name: http")
        page.get_by_role("button", name="Take it up").click()
        expect(page.locator("#verdict")).to_have_text(f"This creates the service {name}.")
        expect(page.get_by_label("Why")).to_have_value("typed with care")
        page.get_by_role("button", name="Create").click()
        expect(page.locator(".toast")).to_contain_text(f"{name} is created")
        page = visitor.goto("/new?example=http")
        expect(page.locator("#verdict")).to_contain_text("This creates")
        expect(page.locator("#draft")).to_be_hidden()


def test_a_fault_that_is_posted_comes_back_at_its_line(visit: Visit, name: str) -> None:
    with visit() as visitor:
        visitor.expected = ["422"]
        page = visitor.goto("/new")
        write(page, people.text(name).replace("replicas: 2", "replicas: two"))
        page.get_by_role("button", name="Create").click()
        expect(page.locator(".ace_gutter-cell.ace_error")).to_have_text("8")
        expect(page.locator(".ace_content")).to_contain_text("replicas: two")


def test_it_is_a_plain_text_field_without_scripts(visit: Visit, name: str) -> None:
    with visit(java_script_enabled=False) as visitor:
        visitor.expected = ["422"]
        page = visitor.goto("/new")
        page.locator("textarea").fill(people.text(name).replace("replicas: 2", "replicas: two"))
        page.get_by_role("button", name="Create").click()
        expect(fault(page)).to_contain_text("Line 8")
        page.locator("textarea").fill(people.text(name))
        page.get_by_role("button", name="Create").click()
        expect(page).to_have_title(f"{name} · Rollcall")


PLACES = [  # the text with a cursor in it, what is proposed first, what is not proposed
    ("ru^", "run", "name"),
    ("name: x\nserv^", "service", "name"),
    ("service:\n  replicas: 1\n  ^\nrun: x", "readiness_probe", "replicas"),
    ("service:\n  rollout:\n    mode: ^", "rolling", "max_surge"),
    ("service:\n  readiness_probe:\n    ^", "path", "rollout"),
    ("resources:\n  any_of:\n    - cpus: 2\n      mem^\n    - memory: 3", "memory", "cpus"),
    ("resources:\n  any_of:\n    - ^\n    - memory: 3", "cloud", "any_of"),
    ("resources:\n  use_spot: ^", "true", "use_spot"),
    ("run: |\n  echo\n^", "name", "run"),
    ("run: |\n  serv^", "", "service"),
    ("# serv^", "", "service"),
    ("envs:\n  ^", "", "name"),
    ("service: {replicas: 2, rollout: {mode: rolling, max_^", "max_surge", "mode"),
    ("service:\n  rollout: {mode: ^}", "rolling", "mode"),
    ("resources:\n  any_of:\n    - {use_^", "use_spot", "ports"),
    ("service:\n  readiness_probe: {path: '/^", "", "path"),
]


def test_the_schema_completes_at_the_cursor(visit: Visit, name: str) -> None:
    with visit() as visitor:
        page = visitor.goto("/new")
        options = page.get_by_role("option")
        place = """(text) => { const editor = ace.edit(document.querySelector('.ace-place'));
          const lines = text.split('^')[0].split('\\n');
          editor.setValue(text.replace('^', ''), -1);
          editor.moveCursorTo(lines.length - 1, lines.at(-1).length); editor.focus(); }"""
        for text, first, missing in PLACES:
            page.evaluate(place, text)
            page.keyboard.press("Control+Space")
            if first:
                expect(options.first.locator("b")).to_have_text(first)
                expect(options.get_by_text(missing, exact=True)).to_have_count(0)
            else:
                expect(page.get_by_role("listbox")).to_be_hidden()
                expect(page.get_by_text("Nothing to complete here.")).to_be_attached()
            page.keyboard.press("Escape") if first else None
        page.evaluate(place, f"name: {name}\nservice:\n  readiness_probe: /\n  r^\nrun: x\n")
        page.keyboard.press("Control+Space")
        expect(page.get_by_role("option", selected=True)).to_contain_text("replicas")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        expect(page.get_by_role("option", selected=True)).not_to_contain_text("replicas")
        page.keyboard.press("ArrowUp")
        page.keyboard.press("ArrowUp")
        page.keyboard.type("epl")
        expect(page.get_by_role("option", selected=True).locator("b")).to_have_text("replicas")
        assert Axe().run(page, "main").violations_count == 0
        page.keyboard.press("Enter")
        expect(page.get_by_role("listbox")).to_be_hidden()
        page.keyboard.type("3")
        expect(page.locator("#verdict")).to_have_text(f"This creates the service {name}.")
        expect(page.locator("#changes")).to_contain_text("3 replicas")


def test_the_keyboard_gets_out_of_the_editor(visit: Visit) -> None:
    with visit() as visitor:
        page = visitor.goto("/new")
        page.locator(".ace-place").click()
        page.keyboard.press("Escape")
        expect(page.get_by_role("button", name="Create")).to_be_focused()
