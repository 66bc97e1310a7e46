"""Anything sent to the API is answered as its document promises, and never by an error of the server."""

import random
import re
from typing import Any
from urllib.parse import quote

import pytest

from tests import cast
from tests.api.caller import PREFIX, Caller, document
from tests.fuzz.effort import FACTOR

pytestmark = pytest.mark.django_db

SEED = 20260314
NAMES = ["web", "other", "1", "0", "-1", "9" * 30, "%00", "é", "a" * 300, "'", "<b>", ".", "..", "a b", "web;drop", "٣"]
ATOMS = [
    *NAMES,
    "",
    None,
    True,
    False,
    0,
    1,
    -1,
    2**63,
    1e308,
    0.5,
    "auto",
    "rolling",
    "\x00",
    "\ud800",
    "name: web",
    [],
]
BODIES = [
    b"", b"{", b"[]", b"null", b"1", b'"x"', b"\xff\xfe", b"[" * 5000, b'{"a":' * 3000, b"{}", b"NaN",
    b'{"target": 1e999}',
    b'{"target": "3"}', b'{"yaml": 7}', b'{"yaml": "name: web", "mode": []}', b'{"target": 1, "target": 2}',
]  # fmt: skip
KINDS = [
    "application/json",
    "application/yaml",
    "text/plain",
    "",
    "application/json; charset=utf-16",
    "x",
    "multipart/form-data",
]


def value(chance: random.Random, depth: int = 0) -> Any:
    """Some JSON."""
    kind = chance.randrange(8 if depth < 3 else 4)
    if kind < 5:
        return chance.choice(ATOMS)
    if kind < 6:
        return [value(chance, depth + 1) for _ in range(chance.randrange(3))]
    return {str(chance.choice(words())): value(chance, depth + 1) for _ in range(chance.randrange(4))}


def spoken(atom: Any) -> str:
    """The same in an address."""
    return str(atom).replace("\ud800", "")


def words() -> list[str]:
    """What parameters and fields are called."""
    found = {"after", "limit", "x"}
    for schema in document()["components"]["schemas"].values():
        found |= set(schema.get("properties", ()))
    for methods in document()["paths"].values():
        for operation in methods.values():
            found |= {each["name"] for each in operation.get("parameters", ())}
    return sorted(found)


def test_nothing_that_is_sent_is_an_error_of_the_server() -> None:
    owner = cast.service()
    cast.ready(owner)
    caller, chance = Caller(), random.Random(SEED)
    names = words()
    every = [(path, method) for path, methods in document()["paths"].items() for method in methods]
    for number in range(300 * FACTOR):
        template, method = every[number % len(every)]
        path = re.sub(r"\{[^}]+\}", lambda _: quote(chance.choice(NAMES), safe=""), template.removeprefix(PREFIX))
        query = {chance.choice(names): spoken(chance.choice(ATOMS)) for _ in range(chance.randrange(3))}
        body, kind = chance.choice([*BODIES, value(chance), value(chance), value(chance)]), chance.choice(KINDS)
        try:
            answer = caller.ask(method.upper(), path, body if method == "post" else None, kind, query)
        except AssertionError as error:
            if "the document has no" in str(error):
                continue  # the address is none of ours
            raise AssertionError(f"{method} {path} {query} {kind} {body!r}"[:600]) from error
        assert answer.status_code < 500, f"{method} {path} {query} {kind} {body!r}: {answer.content[:300]!r}"
