"""The services that ship with Rollcall, as texts to start from."""

from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

EMPTY = """\
name: my-service

service:
  readiness_probe: /
  replicas: 2

run: |
  python3 -m http.server "$PORT" --bind 127.0.0.1
"""


@dataclass(frozen=True, slots=True)
class Example:
    """`name` is the file's name without its ending; `title` its first comment."""

    name: str
    title: str
    text: str


def base() -> Path:
    """Where relative paths start in texts that are written in the browser; the examples count on it."""
    return Path(settings.BASE_DIR)


def examples() -> list[Example]:
    """All of them, by name."""
    return [_read(path) for path in sorted((base() / "examples").glob("*.yaml"))]


def example(name: str) -> Example | None:
    """The one of this name."""
    return next((each for each in examples() if each.name == name), None)


def _read(path: Path) -> Example:
    text = path.read_text(encoding="utf-8")
    first = text.split("\n", 1)[0]
    title = first.lstrip("# ").strip() if first.startswith("#") else path.stem
    return Example(path.stem, title, text)
