"""Requests that went through the gateway, as the plots of a real control plane show them."""

import contextlib
import re
import urllib.error
import urllib.request

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.test_deploy import sign_in
from tests.browser.visitor import Visitor
from tests.support.controlplane import ControlPlane

SECONDS = 60_000
TEXT = """\
name: counted
run: exec python3 -m http.server "$PORT" --bind 127.0.0.1
service:
  replicas: 1
  drain_seconds: 1
  readiness_probe:
    path: /
    initial_delay_seconds: 60
    endpoint_probe_interval_seconds: 1
"""


@pytest.mark.acceptance
def test_requests_are_seen_in_the_plots(
    control_plane: ControlPlane, chromium: Browser, request: pytest.FixtureRequest
) -> None:
    file = control_plane.home / "counted.yaml"
    file.write_text(TEXT)
    control_plane.manage("apply", str(file), "--wait")
    try:
        with Visitor(chromium, control_plane.url.rstrip("/"), {}, request.node.name) as visitor:
            page = visitor.goto("/services/counted/")
            sign_in(page)
            visitor.mark()
            expect(page.locator('.key[data-series="ready"] b')).to_have_text("1", timeout=SECONDS)
            # Silence is measured, too: it is a line at zero, and no gap.
            expect(page.locator('.key[data-series="asked"] b')).to_have_text("0", timeout=SECONDS)
            expect(page.locator("#plot-note")).to_have_text("")
            address = page.locator("#endpoint a").get_attribute("href")
            for path in ("/", "/missing") * 20:
                with contextlib.suppress(urllib.error.HTTPError):
                    urllib.request.urlopen(f"{address}{path}", timeout=20).close()
            for series in ("2xx", "4xx"):
                drawn = page.locator(f'.plot path[data-series="{series}"]')
                expect(drawn).to_have_attribute("d", re.compile(r"^M.*Z$"), timeout=SECONDS)
            expect(page.locator('.plot path[data-series="5xx"]')).to_have_attribute("d", "")
            assert visitor.marked()
    finally:
        control_plane.manage("down", "counted", "--purge", "--wait", check=False)
