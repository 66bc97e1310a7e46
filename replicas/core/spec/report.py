"""Collects the faults of a text and finds their line and column."""

import difflib
import types
import typing
from typing import Any

from pydantic import BaseModel, ValidationError

from replicas.core.spec.errors import Path, Refused, SpecError, SpecErrors, path_text
from replicas.core.spec.loader import Document, Fields, Node, Scalar
from replicas.core.spec.scalars import describe
from replicas.core.spec.task import Spec

MAX_ERRORS = 50
MOST_KEPT = 2 * MAX_ERRORS
_NOT_IN_TEXT = frozenset({"<text>", "<fields>", "[key]"})
_LONGEST_KEY = 40  # characters: longer keys are no typing errors
_OTHER_WORDS = {
    "args": "run",
    "command": "run",
    "cmd": "run",
    "cpu": "cpus",
    "env": "envs",
    "environment": "envs",
    "gpu": "accelerators",
    "gpus": "accelerators",
    "https": "tls",
    "image": "image_id",
    "mem": "memory",
    "port": "ports",
}


class Report:
    """The faults found so far in one text."""

    def __init__(self, document: Document):
        self._document = document
        self._errors = list(document.errors)

    def add(self, path: Path, message: str, *, at_key: bool = False) -> None:
        """Note a fault of the part at a path; of its key if so asked, or where the part has no text of its own."""
        if len(self._errors) > MOST_KEPT:
            return
        place = self._place(path, at_key)
        self._errors.append(SpecError(path_text(path), place.line + 1, place.column + 1, message))

    def refused(self, path: Path, refused: Refused) -> None:
        """Note what a field validator found."""
        for below, message in refused.problems:
            self.add((*path, *below), message)

    def stands(self, path: Path) -> bool:
        """True if the text has the key or item, with or without a value."""
        node: Node | None = self._document.root
        for part in path:
            node = node.child(part) if node else None
        return node is not None

    def raise_if_any(self) -> None:
        """Raise SpecErrors if anything was noted."""
        if self._errors:
            raise self.errors()

    def errors(self) -> SpecErrors:
        """What was noted, in the order of the text; beyond a number only that there is more."""
        found = list(dict.fromkeys(sorted(self._errors, key=lambda error: (error.line, error.column))))
        if len(found) > MAX_ERRORS:
            first_left_out = found[MAX_ERRORS]
            more = SpecError("", first_left_out.line, first_left_out.column, "more errors follow from here on")
            found = [*found[:MAX_ERRORS], more]
        return SpecErrors(found)

    def _place(self, path: Path, at_key: bool) -> Node:
        node = self._document.root
        for depth, part in enumerate(path):
            child = node.child(part)
            if child is None:
                return node
            bare = isinstance(child, Scalar) and child.empty
            if depth == len(path) - 1 and isinstance(node, Fields) and (at_key or bare):
                return node.fields[str(part)][0]
            node = child
        return node


def report_validation(report: Report, error: ValidationError) -> None:
    """Note what pydantic found, at its place and in our words."""
    for item in error.errors(include_url=False)[:MOST_KEPT]:
        path = tuple(part for part in item["loc"] if part not in _NOT_IN_TEXT)
        cause = item.get("ctx", {}).get("error")
        if isinstance(cause, Refused):
            report.refused(path, cause)
        elif item["type"] == "missing":
            if not report.stands(path):  # a key without a value was noted already
                report.add(path, "is missing: it has to be given")
        elif item["type"] == "extra_forbidden":
            report.add(path, _unknown_key(path), at_key=True)
        elif item["type"] in ("model_type", "model_attributes_type", "dict_type"):
            report.add(path, f"must be a mapping of fields, but is {describe(item['input'])}")
        elif item["type"] in ("tuple_type", "list_type"):
            report.add(path, f"must be a list, but is {describe(item['input'])}")
        elif item["type"] == "too_long":
            report.add(path, f"has too many entries: at most {item['ctx']['max_length']} are taken")
        else:
            report.add(path, item["msg"])


def _unknown_key(path: Path) -> str:
    """The message for a key that does not exist, with the nearest key that does."""
    key, known = str(path[-1]), _keys_at(path[:-1])
    where = path_text(path[:-1]) or "the top level"
    elsewhere = [place for place in ("service", "resources") if place != where and key in _keys_at((place,))]
    if elsewhere:
        return f"is no key of {where}: it belongs below {elsewhere[0]}"
    other = _OTHER_WORDS.get(key.lower())
    near = difflib.get_close_matches(key.lower(), known, n=1) if len(key) <= _LONGEST_KEY else []
    hint = other if other in known else near[0] if near else None
    if hint:
        return f"is no key of {where}: did you mean {hint}?"
    return f"is no key of {where}: remove it, or take one of {', '.join(sorted(known))}"


def _keys_at(path: Path) -> list[str]:
    model: type[BaseModel] | None = Spec
    for part in path:
        field = model.model_fields.get(part) if model and isinstance(part, str) else None
        if field:
            model = _model_in(field.annotation)
    return [field.alias or name for name, field in model.model_fields.items()] if model else []


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model that stands somewhere in the annotation of a field."""
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        return annotation if issubclass(annotation, BaseModel) else None
    return next(filter(None, map(_model_in, typing.get_args(annotation))), None)
