"""What changed between two specs, field by field, and between two texts, line by line."""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from replicas.core.spec.errors import Path, clip, path_text


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field that differs. `old` is None where the field is new, `new` is None where it is gone."""

    path: str
    old: Any
    new: Any


def diff(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[FieldChange]:
    """The fields that differ between two JSON forms of specs, in the order of the new one, then what is gone."""
    return list(_changes(old, new, ()))


def _changes(old: Any, new: Any, path: Path) -> Iterator[FieldChange]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in [*new, *(key for key in old if key not in new)]:
            yield from _changes(old.get(key), new.get(key), (*path, key))
    elif _sections(old) and _sections(new) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from _changes(before, after, (*path, index))
    elif old != new or isinstance(old, bool) != isinstance(new, bool):
        yield FieldChange(path_text(path), old, new)


def _sections(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, Mapping) for item in value)


def describe(changes: Iterable[FieldChange]) -> list[str]:
    """One line for each change, for people: "service.replicas: 2 → 3"."""
    return [_line(change) for change in changes]


MOST_LINES = 4000  # of a text: comparing takes time that grows with the square


@dataclass(frozen=True, slots=True)
class LineChange:
    """A line of two texts laid over each other: `kind` is same, old or new; numbers from 1, None where it is not."""

    kind: str
    old: int | None
    new: int | None
    text: str


def line_changes(old: str, new: str) -> list[LineChange] | None:
    """The lines of both texts in order, each told apart; None where they are too long to be compared."""
    before, after = old.splitlines(), new.splitlines()
    if max(len(before), len(after)) > MOST_LINES:
        return None
    found: list[LineChange] = []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, before, after).get_opcodes():
        if kind == "equal":
            found += [LineChange("same", a + n + 1, c + n + 1, before[a + n]) for n in range(b - a)]
            continue
        found += [LineChange("old", n + 1, None, before[n]) for n in range(a, b)]
        found += [LineChange("new", None, n + 1, after[n]) for n in range(c, d)]
    return found


def _line(change: FieldChange) -> str:
    if change.old is None:
        return f"{change.path}: added, {_shown(change.new)}"
    if change.new is None:
        return f"{change.path}: removed, was {_shown(change.old)}"
    if isinstance(change.old, str) and isinstance(change.new, str) and "\n" in change.old + change.new:
        lines = list(difflib.ndiff(change.old.splitlines()[:500], change.new.splitlines()[:500]))
        added, removed = (sum(line.startswith(sign) for line in lines) for sign in ("+ ", "- "))
        return f"{change.path}: {added} lines added, {removed} removed"
    return f"{change.path}: {_shown(change.old)} → {_shown(change.new)}"


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "{" + clip(", ".join(f"{key}: {_shown(item)}" for key, item in value.items())) + "}"
    if isinstance(value, list):
        return "[" + clip(", ".join(_shown(item) for item in value)) + "]"
    return f'"{clip(value)}"' if isinstance(value, str) else str(value)
