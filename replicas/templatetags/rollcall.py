"""Template filters of the dashboard."""

import re

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import YamlLexer

register = template.Library()
# They turn the direction of what follows, or are not seen at all, so that a text reads as another than it is.
UNSEEN = re.compile("[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")
LONGEST = 200_000  # characters; a longer text is shown without colours


class Lines(HtmlFormatter[str]):
    """Each line in an element of its own, for the numbers beside it and for links to it."""

    def __init__(self) -> None:
        super().__init__(cssclass="code", linespans="line", anchorlinenos=False)


@register.filter
def yaml(text: str) -> SafeString:
    """The YAML text with its colours: escaped by pygments, with classes and no styles."""
    lexer = YamlLexer(stripnl=False, ensurenl=True)
    if len(text) > LONGEST:
        from pygments.lexers.special import TextLexer

        lexer = TextLexer(stripnl=False, ensurenl=True)
    return mark_safe(_marked(highlight(text, lexer, Lines())))  # noqa: S308  (pygments escapes all text)


@register.filter
def marked(text: object) -> SafeString:
    """The text with its unseen characters marked."""
    return mark_safe(_marked(escape(text)))  # noqa: S308  (escaped above, and the marks are ours)


@register.filter
def spaced(text: object) -> str:
    """The words of a value that is written with underscores."""
    return str(text).replace("_", " ")


def _marked(html: str) -> str:
    """The HTML with each unseen character in an element that shows its code; no attribute may hold text from outside.

    A <bdi> closes what the character opens, and the character itself stays for who copies the text.
    """
    return UNSEEN.sub(lambda found: f'<bdi class="unseen" data-code="U+{ord(found[0]):04X}">{found[0]}</bdi>', html)
