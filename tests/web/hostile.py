"""Texts that a page must show as texts."""

SCRIPT = "<script>window.pwned = 1</script>"
IMAGE = '"\'><img src=x onerror="window.pwned = 1">'
END = "</script><!--<script>window.pwned = 1</script>"
TEMPLATE = "{{ 7|add:7 }} {% load x %} ${7*7}"
ADDRESS = "javascript:window.pwned=1"
TURNED = "abc\u202e gnp.exe \u2066\u200f\u202d"
CONTROLS = "bell \x07 escape \x1b[31m nul-less \x08 line \u2028 end"
LONG = "x" * 5000
ALL = {
    "script": SCRIPT,
    "image": IMAGE,
    "end": END,
    "template": TEMPLATE,
    "address": ADDRESS,
    "turned": TURNED,
    "controls": CONTROLS,
    "long": LONG,
}
# What a name could be at worst, if the parser let it through: no slash, at most 200 characters.
NAMES = {key: value.replace("/", "|")[:150] for key, value in ALL.items()}
