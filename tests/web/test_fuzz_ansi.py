"""Any line of a log becomes pieces of text in the browser: none raises, and none is markup."""

import random

from tests.fuzz.effort import FACTOR
from tests.support.needs import needs
from tests.web.browser import Browser
from tests.web.site import Site

pytestmark = [needs("chromium")]

SEED = 20260314
PARTS = [
    "\x1b", "\x1b[", "\x1b[31m", "\x1b[0m", "\x1b[38;5;200m", "\x1b[38;2;1;2;3m", "\x1b[999999999999m", "\x1b[;;;m",
    "\x1b[K", "\x1b[2K", "\x1b[1;31", "\x1b]0;title\x07", "\x1b]8;;javascript:alert(1)\x1b\\", "\x1bP", "\x1b_", "\r",
    "\r\r", "\b", "\b" * 50, "\x00", "\x7f", "\x9b31m", "<script>alert(1)</script>", "&amp;", "\u202e", "\ufeff", "é",
    "漢", "😀", "\ud83d", "a" * 500, " ", "100%", "\t", "\x1b[1000000000C", "\x1b[m", "[31m",
]  # fmt: skip
CHECK = """async (lines) => {
  const { plain, pieces, styleAfter } = await import('/static/js/ansi.js');
  const bad = [];
  for (const line of lines) {
    try {
      const made = pieces(line, "");
      const text = made.map((piece) => piece.text).join("");
      if (text !== plain(line)) bad.push([line, "plain differs", text, plain(line)]);
      if (/[\\x00-\\x08\\x0b-\\x1f\\x7f]/.test(text)) bad.push([line, "a control character is shown", text]);
      if (!made.every((piece) => /^[a-z0-9 -]*$/.test(piece.style))) bad.push([line, "a style", made]);
      if (typeof styleAfter(line, "") !== "string") bad.push([line, "the style after it"]);
    } catch (error) { bad.push([line, String(error)]); }
  }
  return bad;
}"""


def line(chance: random.Random) -> str:
    return "".join(chance.choice(PARTS) for _ in range(chance.randrange(12)))


def test_any_line_is_shown_as_text(site: Site, viewer: str, browser: Browser) -> None:
    chance = random.Random(SEED)
    tab = browser.tab(site.origin, site.cookies(viewer))
    try:
        tab.goto("/")
        for _ in range(FACTOR):
            bad = tab(lambda page: page.evaluate(CHECK, [line(chance) for _ in range(2000)]))
            assert bad == []
    finally:
        tab.close()
