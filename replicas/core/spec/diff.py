"""What changed between two specs, field by field."""

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
