"""Makes docs/screenshot.png; with --all a picture of every page in both themes and two widths, and some as printed.

    .venv/bin/python docs/make_screenshots.py [--all DIRECTORY]

It runs a control plane in a throw-away home, deploys services into it, breaks one, and takes everything away again.
"""

import argparse
import json
import os
import signal
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.support.controlplane import PASSWORD, ControlPlane  # noqa: E402
from tests.support.polling import eventually  # noqa: E402

BROKEN = """\
name: embeddings
run: |
  echo "loading weights from ./weights.bin"
  echo "RuntimeError: weights.bin: no such file" >&2
  exit 1
service:
  readiness_probe: /healthz
  replicas: 2
"""
PAGES = {
    "services": "/",
    "service": "/services/http/",
    "failed": "/services/embeddings/",
    "replica": "/services/http/replicas/2/",
    "failed-replica": "/services/embeddings/replicas/1/",
    "operations": "/operations/",
    "system": "/system/",
    "new": "/new?example=ocr",
    "edit": "/services/http/edit",
    "versions": "/services/http/versions/",
    "version": "/services/http/versions/1/",
    "compare": "/services/embeddings/versions/compare?old=1&new=2",
    "missing": "/services/nothing/",
    "service-logs": "/services/http/logs",
    "notices": "/notices/",
    "password": "/password",
    "tokens": "/tokens",
    "admin": "/admin/",
    **{
        f"admin-{name}": f"/admin/replicas/{name}/"
        for name in (
            "service",
            "serviceversion",
            "rollout",
            "replica",
            "operation",
            "event",
            "noticechannel",
            "apitoken",
        )
    },
    "admin-people": "/admin/auth/user/",
    "admin-service-form": "/admin/replicas/service/1/change/",
    "admin-replica-form": "/admin/replicas/replica/1/change/",
}
WIDTHS = {"wide": (1280, 880), "phone": (390, 844)}
PRINTED = ("services", "service", "failed", "replica")
PAPER = (794, 1123)  # A4 at 96 dots per inch


@contextmanager
def deployed() -> Iterator[ControlPlane]:
    """A control plane with a healthy service that lost a replica, and one that cannot start."""
    plane = ControlPlane()
    try:
        plane.start()
        plane.manage("apply", "examples/http.yaml", "--wait")
        plane.manage("scale", "http", "4")
        broken = plane.home / "embeddings.yaml"
        for file in ("weights.npz", "weights.bin"):
            broken.write_text(BROKEN.replace("weights.bin", file))
            plane.manage("apply", str(broken), "--message", f"reads {file}")
        eventually(lambda: len(ready(plane)) == 4, 60, "four replicas are ready")
        for replica in ready(plane):
            for path in ("/", "/healthz", "/favicon.ico"):
                visit(replica["url"] + path)
        os.kill(ready(plane)[0]["pid"], signal.SIGKILL)
        eventually(lambda: max(each["number"] for each in ready(plane)) == 5, 60, "it is replaced")
        yield plane
    finally:
        if plane.url:
            plane.manage("down", "--all", "--purge", "--wait", check=False)
        plane.close()


def ready(plane: ControlPlane) -> list[dict]:
    """The ready replicas of the healthy service."""
    (service,) = [each for each in json.loads(plane.manage("status", "--json").stdout) if each["name"] == "http"]
    return [each for each in service["replicas"] if each["state"] == "READY"]


def visit(url: str) -> None:
    """Make a replica log a line."""
    try:
        urllib.request.urlopen(url, timeout=5).close()  # noqa: S310  (a replica of ours)
    except urllib.error.HTTPError as error:
        error.close()


def page_of(browser: Browser, plane: ControlPlane, theme: str, size: tuple[int, int]) -> Page:
    """A signed-in page."""
    width, height = size
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=theme, locale="en-GB")
    page.goto(plane.url + "/login")
    page.get_by_label("Name").fill("admin")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Services").wait_for()
    return page


def take(page: Page, address: str, path: Path, whole: bool = False) -> None:
    """One picture, once the page is live and at rest."""
    page.goto(address)
    live = page.locator("#connection[data-state=live]")
    if page.locator("#connection").count() and not address.endswith(("/password", "/tokens", "/nothing/")):
        live.wait_for(state="attached")  # on paper it is not shown
    page.wait_for_timeout(700)  # lines of a log are drawn a frame after they came
    path.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=path, full_page=whole)
    print(path)


def main() -> None:
    """Make the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--all", metavar="DIRECTORY", type=Path, help="also every page, in both themes and two widths")
    asked = parser.parse_args()
    with deployed() as plane, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = page_of(browser, plane, "light", WIDTHS["wide"])
        take(page, plane.url + PAGES["service"], ROOT / "docs" / "screenshot.png")
        page.context.close()
        for theme in ("light", "dark") if asked.all else ():
            for label, size in WIDTHS.items():
                page = page_of(browser, plane, theme, size)
                for name, address in PAGES.items():
                    take(page, plane.url + address, asked.all / f"{name}-{label}-{theme}.png", whole=True)
                page.context.close()
        if asked.all:
            page = page_of(browser, plane, "dark", PAPER)
            page.emulate_media(media="print")
            for name in PRINTED:
                take(page, plane.url + PAGES[name], asked.all / f"{name}-print.png", whole=True)
            page.context.close()
        browser.close()


if __name__ == "__main__":
    main()
