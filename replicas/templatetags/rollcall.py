"""Template filters of the dashboard."""

from django import template
from django.utils.safestring import SafeString, mark_safe
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import YamlLexer

register = template.Library()
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
    return mark_safe(highlight(text, lexer, Lines()))  # noqa: S308  (pygments escapes all text)
