"""The whole way in a browser: sign in, deploy by YAML, see READY and log lines, kill a replica, see it replaced."""

import os
import re
import signal
import urllib.request
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.visitor import Visitor
from tests.support.controlplane import PASSWORD, ControlPlane
from tests.support.polling import eventually

SECONDS = 60_000
TEXT = """\
name: parrot
run: |
  exec python3 -u -c '
  import http.server, os
  class Parrot(http.server.BaseHTTPRequestHandler):
      def do_GET(self):
          self.send_response(200); self.end_headers(); self.wfile.write(b"polly")
          if self.path != "/ready": print("asked for", self.path, flush=True)
      def log_message(self, *_): pass
  print("parrot", os.environ["SKYPILOT_SERVE_REPLICA_ID"], "sits on port", os.environ["PORT"], flush=True)
  http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Parrot).serve_forever()
  '
service:
  replicas: 2
  readiness_probe:
    path: /ready
    initial_delay_seconds: 60
    endpoint_probe_interval_seconds: 1
"""


@pytest.fixture
def visitor(
    control_plane: ControlPlane, chromium: Browser, request: pytest.FixtureRequest
) -> Iterator[Callable[[], Visitor]]:
    """Makes somebody who is not signed in; in the end nothing of the service is left."""
    yield lambda: Visitor(chromium, control_plane.url.rstrip("/"), {}, request.node.name)
    control_plane.manage("down", "--all", "--purge", "--wait", check=False)


def sign_in(page: Page) -> None:
    """As the first administrator."""
    page.get_by_label("Name").fill("admin")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page).not_to_have_title("Sign in · Rollcall")  # what comes next may not cut it off


@pytest.mark.acceptance
def test_from_the_login_page_to_a_replaced_replica(control_plane: ControlPlane, visitor: Callable[[], Visitor]) -> None:
    with visitor() as someone:
        page = someone.goto("/")
        sign_in(page)
        expect(page.get_by_role("heading", name="No services yet")).to_be_visible()
        page.get_by_role("link", name="New service").click()
        page.locator(".ace-place .ace_content").wait_for()
        page.evaluate("(text) => ace.edit(document.querySelector('.ace-place')).setValue(text, -1)", TEXT)
        expect(page.locator("#verdict")).to_have_text("This creates the service parrot.")
        page.get_by_role("button", name="Create").click()

        expect(page.locator("h1")).to_contain_text("parrot")
        someone.mark()
        expect(page.locator("#replicas tr[data-state=READY]")).to_have_count(2, timeout=SECONDS)
        expect(page.locator("#status")).to_have_text("READY", timeout=SECONDS)
        expect(page.locator("#ready")).to_have_text("2 / 2")
        assert someone.marked()

        # Another window on a replica: its log as it is written.
        with visitor() as reader:
            log = reader.goto("/")
            sign_in(log)
            log.goto(page.url + "replicas/1/")
            reader.mark()
            expect(log.get_by_text(re.compile(r"parrot 1 sits on port \d+"))).to_be_visible()
            address = str(log.locator("#facts a.address").get_attribute("href"))
            for word in ("cracker", "pieces-of-eight"):
                urllib.request.urlopen(f"{address}/{word}", timeout=10).close()
                expect(log.get_by_text(f"asked for /{word}")).to_be_visible()
            log.get_by_role("tab", name="Launch").click()
            expect(log.locator(".log-row:not([hidden])").first).not_to_be_empty()
            log.get_by_role("tab", name="Run").click()
            expect(log.get_by_text("asked for /cracker")).to_be_visible()

            pid = int(log.locator("#facts div", has_text="PID").locator("dd").inner_text())
            os.kill(pid, signal.SIGKILL)
            expect(log.locator("#state")).to_have_text("FAILED", timeout=SECONDS)
            expect(log.locator("#sentence")).to_contain_text(re.compile("kill|signal|9", re.I))
            expect(log.locator("#last-lines")).to_contain_text("asked for /pieces-of-eight")
            assert reader.marked()

        expect(page.locator('#replicas tr[data-row="3"] .badge')).to_have_text("READY", timeout=SECONDS)
        expect(page.locator("#ready")).to_have_text("2 / 2")
        expect(page.locator("#past-count")).to_have_text("1 ended replica")
        expect(page.locator('#replicas tr[data-row="2"] .badge')).to_have_text("READY")
        assert someone.marked()

        page.get_by_role("button", name="Scale").click()
        page.get_by_role("dialog").get_by_label("Replicas").fill("1")
        page.get_by_role("dialog").get_by_role("button", name="Scale").click()
        expect(page.locator("#replicas tbody tr")).to_have_count(1, timeout=SECONDS)
        page.get_by_role("button", name="Take down").click()
        page.get_by_role("dialog").get_by_role("button", name="Take down").click()
        expect(page.locator("#status")).to_have_text("DOWN", timeout=SECONDS)
        assert someone.marked()
        eventually(lambda: not control_plane.replicas(), 20, "nothing of it runs")
