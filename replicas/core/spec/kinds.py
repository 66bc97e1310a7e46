"""The types of the fields: each converts a value of the tree or of the JSON form, and says what editors may accept."""

import json
import re
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, PlainValidator, WithJsonSchema

from replicas.core.spec.errors import Refused, clip, refuse
from replicas.core.spec.scalars import (
    Plain,
    as_flag,
    as_free,
    as_number,
    as_text,
    as_whole,
    describe,
    each,
)

YEAR = 366 * 24 * 3600
MOST_REPLICAS = 100_000
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_ACCELERATOR = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*(:[0-9]+(\.[0-9]+)?)?")
_PORTS = re.compile(r"([1-9][0-9]{0,4})(?:-([1-9][0-9]{0,4}))?")
_HASH_ON = re.compile(r"source|path|(header|cookie):[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_LONGEST_JSON = 32 * 1024
_AMOUNT = re.compile(r"([0-9]{1,4})%")


class Section(BaseModel):
    """A mapping with fixed fields, immutable once read."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, defer_build=True)


def _bounded(convert: Callable[[object], float], low: float | None, high: float | None, above: float | None) -> Any:
    def check(value: object) -> float:
        number = convert(value)
        if low is not None and number < low:
            raise refuse(f"must be {low} or more, but is {number}")
        if above is not None and number <= above:
            raise refuse(f"must be more than {above}, but is {number}")
        if high is not None and number > high:
            raise refuse(f"must be at most {high}, but is {clip(str(number))}")
        return number

    return PlainValidator(check)


def _bounds(kind: str, **limits: float) -> Any:
    return WithJsonSchema({"type": kind, **limits})


def as_choice(*names: str) -> Callable[[object], str]:
    """One of the names, in any case (as SkyPilot has it)."""

    def check(value: object) -> str:
        text = as_text(value).lower()
        if text not in names:
            raise refuse(f"must be one of {', '.join(names)}, but is {describe(value)}")
        return text

    return check


def names_of(*names: str) -> Any:
    """What editors may offer for `as_choice`."""
    return WithJsonSchema({"type": "string", "enum": list(names)})


def _line(value: object) -> str:
    text = as_text(value)
    if not text.strip():
        raise refuse("is empty: give it a value, or remove the line")
    return text


def _path(value: object) -> str:
    text = as_text(value)
    if not text.startswith("/"):
        raise refuse(f'must begin with "/", but is {describe(text)}: write /{clip(text)}')
    if " " in text:
        raise refuse("must have no spaces: write them as %20")
    if found := re.search(r"[\s\x00-\x1f\x7f]", text):
        raise refuse(f"must have no control characters or line breaks: remove {found[0]!r}")
    return text


def env_name(name: str) -> str:
    """The name of an environment variable that a replica can get. Raises Refused."""
    if not _ENV_NAME.fullmatch(name):
        raise refuse("is no name of a variable: use letters, digits and _, and begin with a letter or _")
    if name.startswith("ROLLCALL_"):
        raise refuse("names that begin with ROLLCALL_ are the control plane's own: take another name")
    return name


def _env_value(value: object) -> str:
    if value is None:
        raise refuse('is empty: write "" for an empty text')
    return as_text(value)


def _envs(value: object) -> dict[str, str]:
    return each(value, _env_value, "names and texts")


def _header_value(value: object) -> str:
    text = as_text(value)
    if re.search(r"[\r\n]", text):
        raise refuse("a header must be one line")
    return text


def _headers(value: object) -> dict[str, str]:
    headers = each(value, _header_value, "header names and texts")
    wrong = [name for name in headers if not _HEADER_NAME.fullmatch(name)]
    if wrong:
        raise Refused(*(((name,), "is no name of an HTTP header: use letters, digits and -") for name in wrong))
    return headers


def _post_data(value: object) -> Any:
    data = _read_json(value) if isinstance(value, str) else value
    if not isinstance(data, dict | list):
        raise refuse(f"must be a JSON object or list, in quotes or written as YAML, but is {describe(value)}")
    return as_free(data)


def _read_json(text: str) -> Any:
    if len(text) > _LONGEST_JSON:
        raise refuse(f"must have at most {_LONGEST_JSON // 1024} KiB: a probe is to be small")
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise refuse(f"is not JSON ({clip(str(error))}): correct it, or write it as a YAML mapping") from None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def port_range(text: str) -> tuple[int, int]:
    """First and last port of "8080" or "8000-8010". Raises Refused."""
    found = _PORTS.fullmatch(text)
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    if not 1 <= first <= last <= 65535:
        raise refuse(f'must be a port from 1 to 65535 or a range such as "8000-8010", but is {clip(text)}')
    return first, last


def _port_text(value: object) -> str:
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str):
        raise refuse(f"must be a port, but is {describe(value)}")
    port_range(text.strip())
    return text.strip()


def _ports(value: object) -> list[str]:
    if not isinstance(value, list | tuple):
        return [_port_text(value)]
    ports = each(dict(enumerate(value)), _port_text, "ports")
    return list(ports.values())


def _amount(value: object) -> int | str:
    text = value if isinstance(value, str) else ""
    if _AMOUNT.fullmatch(text):
        return str(text)
    try:
        number = as_whole(value)
    except Refused:
        raise refuse(f"must be a whole number or a percentage such as 25%, but is {describe(value)}") from None
    if not 0 <= number <= MOST_REPLICAS:
        raise refuse(f"must be from 0 to {MOST_REPLICAS}, but is {number}")
    return number


def _size(pattern: str, example: str) -> Callable[[object], str]:
    rule = re.compile(pattern, re.IGNORECASE)

    def check(value: object) -> str:
        text = str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
        if not isinstance(text, str) or not rule.fullmatch(text):
            raise refuse(f"must be like {example}, but is {describe(value)}")
        return str(text)

    return check


def _accelerator_count(value: object) -> float:
    count = 1 if value is None else as_number(value)
    if count <= 0:
        raise refuse(f"must be more than 0, but is {count}")
    return count


def _accelerator(value: object) -> str:
    text = as_text(value)
    if not _ACCELERATOR.fullmatch(text):
        raise refuse(f"must be like A100 or A100:8, but is {describe(value)}")
    return text if ":" in text else f"{text}:1"


def _accelerators(value: object) -> Any:
    if isinstance(value, list | tuple):
        return list(each(dict(enumerate(value)), _accelerator, "accelerators").values())
    if not isinstance(value, dict):
        return _accelerator(value)
    counts = each(value, _accelerator_count, "accelerators and counts")
    result: dict[str, float] = {}
    for name, count in counts.items():
        try:
            kind, _, own = _accelerator(name).partition(":")
        except Refused as refused:
            raise Refused(((name,), refused.problems[0][1])) from None
        result[kind] = as_number(Plain(own)) if ":" in name else count
    return result


def _qps(value: object) -> Any:
    if not isinstance(value, dict):
        return _positive(value)
    rates = each(value, _positive, "accelerators and rates")
    wrong = [name for name in rates if not _ACCELERATOR.fullmatch(name)]
    if not rates or wrong:
        if not wrong:
            raise refuse("is empty: give a number, or a rate for each accelerator")
        raise Refused(*(((name,), "must be an accelerator such as A100 or A100:8") for name in wrong))
    return rates


def _positive(value: object) -> float:
    number = as_number(value)
    if number <= 0:
        raise refuse(f"must be more than 0, but is {number}")
    return number


def shape(value: object) -> str:
    """Which branch of a text-or-mapping field a value is."""
    return "<text>" if isinstance(value, str) else "<fields>"


def free_map(value: object) -> dict[str, Any]:
    """A mapping without fixed fields."""
    if not isinstance(value, dict):
        raise refuse(f"must be a mapping, but is {describe(value)}")
    return dict(as_free(value))


def free_list(value: object) -> list[Any]:
    """A list of anything."""
    if not isinstance(value, list | tuple):
        raise refuse(f"must be a list, but is {describe(value)}")
    return list(as_free(value))


def _hash_on(value: object) -> str:
    text = as_text(value)
    if not _HASH_ON.fullmatch(text):
        raise refuse(f"must be source, path, header:NAME or cookie:NAME, but is {describe(value)}")
    return text


_TEXT = {"type": "string"}
_TEXTS = {"type": "object", "additionalProperties": {"type": ["string", "integer", "number"]}}
_AMOUNT_SCHEMA = {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": "^[0-9]{1,4}%$"}]}
_PORT_SCHEMA = {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 65535}, {"type": "string"}]}

Text = Annotated[str, PlainValidator(as_text), WithJsonSchema(_TEXT)]
Line = Annotated[str, PlainValidator(_line), WithJsonSchema({"type": "string", "minLength": 1})]
Flag = Annotated[bool, PlainValidator(as_flag), WithJsonSchema({"type": "boolean"})]
Count = Annotated[int, _bounded(as_whole, 0, MOST_REPLICAS, None), _bounds("integer", minimum=0, maximum=MOST_REPLICAS)]
Ordinal = Annotated[
    int, _bounded(as_whole, 1, MOST_REPLICAS, None), _bounds("integer", minimum=1, maximum=MOST_REPLICAS)
]
Port = Annotated[int, _bounded(as_whole, 1, 65535, None), _bounds("integer", minimum=1, maximum=65535)]
Priority = Annotated[int, _bounded(as_whole, -1000, 1000, None), _bounds("integer", minimum=-1000, maximum=1000)]
Seconds = Annotated[int | float, _bounded(as_number, 0, YEAR, None), _bounds("number", minimum=0, maximum=YEAR)]
Interval = Annotated[
    int | float, _bounded(as_number, None, YEAR, 0), _bounds("number", exclusiveMinimum=0, maximum=YEAR)
]
Cost = Annotated[int | float, _bounded(as_number, None, 1e9, 0), _bounds("number", exclusiveMinimum=0)]
Rate = Annotated[int | float, _bounded(as_number, None, 1e9, 0), _bounds("number", exclusiveMinimum=0)]
Amount = Annotated[int | str, PlainValidator(_amount), WithJsonSchema(_AMOUNT_SCHEMA)]
UrlPath = Annotated[str, PlainValidator(_path), WithJsonSchema({"type": "string", "pattern": "^/"})]
HashOn = Annotated[
    str, PlainValidator(_hash_on), WithJsonSchema({"type": "string", "pattern": f"^({_HASH_ON.pattern})$"})
]
Envs = Annotated[
    dict[str, str],
    PlainValidator(_envs),
    WithJsonSchema({"type": "object", "additionalProperties": {"type": ["string", "integer", "number", "null"]}}),
]
Labels = Annotated[
    dict[str, str], PlainValidator(lambda value: each(value, as_text, "labels and texts")), WithJsonSchema(_TEXTS)
]
Headers = Annotated[dict[str, str], PlainValidator(_headers), WithJsonSchema(_TEXTS)]
PostData = Annotated[Any, PlainValidator(_post_data), WithJsonSchema({"type": ["string", "object", "array"]})]
FreeMap = Annotated[dict[str, Any], PlainValidator(free_map), WithJsonSchema({"type": "object"})]
FreeList = Annotated[list[Any], PlainValidator(free_list), WithJsonSchema({"type": "array"})]
Ports = Annotated[
    list[str],
    PlainValidator(_ports),
    WithJsonSchema({"anyOf": [*_PORT_SCHEMA["anyOf"], {"type": "array", "items": _PORT_SCHEMA}]}),
]
Cpus = Annotated[
    str,
    PlainValidator(_size(r"(0|[1-9][0-9]{0,8})(\.[0-9]{1,9})?\+?", "4, 0.5 or 4+")),
    WithJsonSchema({"type": ["string", "number"]}),
]
Memory = Annotated[
    str,
    PlainValidator(_size(r"(0|[1-9][0-9]{0,14})(\.[0-9]{1,9})?([KMGTP]i?B?|B)?\+?", "16, 16+ or 64GB")),
    WithJsonSchema({"type": ["string", "number"]}),
]
DiskSize = Annotated[
    str,
    PlainValidator(_size(r"(0|[1-9][0-9]{0,14})([KMGTP]i?B?|B)?", "256 or 256GB")),
    WithJsonSchema({"type": ["string", "integer"]}),
]
Accelerators = Annotated[
    Any,
    PlainValidator(_accelerators),
    WithJsonSchema(
        {
            "anyOf": [
                _TEXT,
                {"type": "object", "additionalProperties": {"type": ["number", "null"]}},
                {"type": "array", "items": _TEXT},
            ]
        }
    ),
]
Rates = Annotated[
    Any,
    PlainValidator(_qps),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0},
                {"type": "object", "additionalProperties": {"type": "number", "exclusiveMinimum": 0}},
            ]
        }
    ),
]
