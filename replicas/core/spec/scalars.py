"""What a plain (unquoted) value may become: a text, a truth value or a number, never one of them silently.

YAML 1.1, which SkyPilot's loader follows, turns `NO` into False, 22:22 into 1342 and 1.10 into 1.1. Here the field
decides: where a text is expected, a plain value is taken only if no reader could take it for something else.
"""

import math
import re
from collections.abc import Callable
from typing import Any, TypeVar

import yaml

from replicas.core.spec.errors import Path, Refused, clip, refuse

_Value = TypeVar("_Value")

_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
_NUMBER = re.compile(r"[-+]?((0|[1-9][0-9]{0,30})(\.[0-9]{0,30})?|\.[0-9]{1,30})([eE][-+]?[0-9]{1,3})?")
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_DEEPEST = 32
_LONGEST_GUESS = 100  # characters: no number, date or truth value is longer
TRUE = frozenset({"true", "yes", "on"})
FALSE = frozenset({"false", "no", "off"})
_KINDS = {
    "bool": "a truth value",
    "int": "a number",
    "float": "a number",
    "timestamp": "a date",
}


class Plain(str):
    """An unquoted value as it stands in the text: the field it is for decides what it is."""

    __slots__ = ()


class Expanded(str):
    """A value that came out of `${NAME}`: taken as it is where a text is expected, read where a number is."""

    __slots__ = ()


def yaml_kind(text: str) -> str:
    """What YAML 1.1 makes of a plain text: str, bool, int, float, timestamp, null, merge or value."""
    if not text or len(text) > _LONGEST_GUESS:
        return "null" if not text else "str"
    resolvers = yaml.SafeLoader.yaml_implicit_resolvers
    for tag, pattern in [*resolvers.get(text[0], ()), *resolvers.get(None, ())]:
        if pattern.match(text):
            return str(tag).rpartition(":")[2]
    return "str"


def quote_reason(text: str) -> str | None:
    """Why a plain text has to be quoted where a text is expected, or None if every reader takes it as it stands."""
    kind = yaml_kind(text)
    if kind not in _KINDS:
        return None
    if kind == "int" and re.fullmatch(r"0|-?[1-9][0-9]*", text):
        return None
    if kind == "float" and _NUMBER.fullmatch(text) and repr(float(text)) == text:
        return None
    what = "a number in base 60" if ":" in text and kind in ("int", "float") else _KINDS[kind]
    return f'YAML takes {text} for {what}: quote it, "{text}"'


def describe(value: object) -> str:
    """What a value is, for a message."""
    if value is None:
        return "empty"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, Plain | bool | int | float):
        return clip(str(value))
    return f'the text "{clip(str(value))}"'


def as_text(value: object) -> str:
    """A text; a plain value only where it cannot be taken for something else."""
    if isinstance(value, Plain):
        reason = quote_reason(value)
        if reason:
            raise refuse(reason)
    elif not isinstance(value, str):
        raise refuse(f"must be a text, but is {describe(value)}")
    if _UNSTORABLE.search(value):
        raise refuse("must not contain the character NUL or half of a surrogate pair")
    return str(value)


def as_flag(value: object) -> bool:
    """A truth value, written without quotes."""
    if isinstance(value, bool):
        return value
    if isinstance(value, Plain | Expanded) and value.lower() in TRUE | FALSE:
        return value.lower() in TRUE
    if isinstance(value, str) and value.lower() in TRUE | FALSE:
        raise refuse(f"must be true or false, but is a text: write {value.lower()} without quotes")
    raise refuse(f"must be true or false, but is {describe(value)}")


def as_whole(value: object) -> int:
    """A whole number, written in plain decimal digits without quotes."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, Plain | Expanded):
        if _WHOLE.fullmatch(value):
            return int(value)
        if yaml_kind(value) == "int":
            raise refuse(f"must be a whole number in plain decimal digits, but is {clip(value)}")
    raise refuse(f"must be a whole number, but is {describe(value)}{_unquote(value)}")


def as_number(value: object) -> float:
    """A finite number; whole ones come back as int, so that 1200 stays 1200."""
    if isinstance(value, Plain | Expanded):
        if yaml_kind(value) == "float" and not value[-1].isdigit() and value[-1] != ".":
            raise refuse(f"must be a finite number, but is {value}")
        if not _NUMBER.fullmatch(value):
            raise refuse(f"must be a number, but is {describe(value)}")
        value = int(value) if _WHOLE.fullmatch(value) else float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise refuse(f"must be a number, but is {describe(value)}{_unquote(value)}")
    if not math.isfinite(value):
        raise refuse("must be a finite number")
    return int(value) if float(value).is_integer() and abs(value) < 1e15 else value


def _unquote(value: object) -> str:
    return ": remove the quotes" if type(value) is str and _NUMBER.fullmatch(value) else ""


def as_free(value: object) -> Any:
    """A value of a section without fixed fields, as JSON: what YAML 1.1 and JSON agree on, and else "quote it"."""
    problems: list[tuple[Path, str]] = []
    result = _free(value, (), problems)
    if problems:
        raise Refused(*problems)
    return result


def _free(value: object, path: Path, problems: list[tuple[Path, str]]) -> Any:
    if len(path) > _DEEPEST:
        problems.append(((), f"is nested more than {_DEEPEST} levels deep"))
        return None
    if isinstance(value, dict):
        return {str(key): _free(item, (*path, key), problems) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_free(item, (*path, index), problems) for index, item in enumerate(value)]
    if value is None or isinstance(value, bool):
        return value
    try:
        return _free_scalar(value)
    except Refused as refused:
        problems.extend((path, message) for _, message in refused.problems)
        return None


def _free_scalar(value: object) -> Any:
    if isinstance(value, int):
        return _short(value)
    if isinstance(value, float):
        return as_number(value)
    if not isinstance(value, Plain):
        return as_text(value)
    if value in ("true", "True", "false", "False"):
        return value.lower() == "true"
    kind = yaml_kind(value)
    if kind in ("int", "float") and _NUMBER.fullmatch(value):
        return as_number(value)
    if kind in ("int", "float"):
        raise refuse(f"must be a decimal number of at most 31 digits, or a text in quotes, but is {clip(value)}")
    return as_text(value)


def _short(number: int) -> int:
    if abs(number) >= 10**31:
        raise refuse("must be a number of at most 31 digits, or a text in quotes")
    return number


def each(value: object, convert: Callable[[object], _Value], what: str) -> dict[str, _Value]:
    """The values of a mapping, each converted; every fault is reported at its key."""
    if not isinstance(value, dict):
        raise refuse(f"must be a mapping of {what}, but is {describe(value)}")
    result: dict[str, _Value] = {}
    problems: list[tuple[Path, str]] = []
    for key, item in value.items():
        try:
            result[str(key)] = convert(item)
        except Refused as refused:
            problems.extend(((key, *at), message) for at, message in refused.problems)
    if problems:
        raise Refused(*problems)
    return result
