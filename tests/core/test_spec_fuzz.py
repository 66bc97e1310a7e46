"""Any text is a spec or a list of errors, soon; and what is masked, kept and read again stays the same."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replicas.core.spec import MASK, Parsed, Spec, SpecErrors, hardcoded_port, parse, schema
from replicas.core.spec.loader import load
from tests.core.test_spec_examples import LLM
from tests.fuzz.effort import fuzzed
from tests.support.patience import spent

LIMIT = 0.1  # seconds of CPU for one text
WORDS = [
    *schema()["properties"],
    *(name for part in schema()["$defs"].values() for name in part["properties"]),
    *("yes", "NO", "1.10", "22:22", "017", "2024-01-01", "~", "null", "-1", "1e999", ".nan", "25%", "/", "8080-8090"),
    *(
        "A100:8",
        "$A",
        "${A}",
        "***",
        "s3://x",
        "..",
        "aws",
        "true",
        '"',
        "'",
        "&a",
        "*a",
        "<<",
        "!!str",
        "|",
        ">-",
        "- ",
    ),
    *(
        ": ",
        "\n",
        "\n  ",
        "\n    ",
        "\n\t",
        "{",
        "}",
        "[",
        "]",
        ", ",
        "#",
        "---\n",
        "...\n",
        "? ",
        "%YAML 1.1\n",
        "\ufeff",
    ),
]
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20), st.sampled_from(WORDS))
trees = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.sampled_from(WORDS), st.text(max_size=5)), inner, max_size=5),
    ),
    max_leaves=25,
)


@pytest.fixture(autouse=True, scope="module")
def _models_built() -> None:
    parse("name: web\nservice: {}")


def _read(text: str | bytes, **kept: Any) -> Parsed | SpecErrors:
    try:
        return parse(text, base="/srv", **kept)
    except SpecErrors as errors:
        return errors


def _check(text: str | bytes) -> None:
    result = _read(text)
    assert spent(lambda: _read(text), LIMIT) < LIMIT
    if isinstance(result, SpecErrors):
        assert result.errors
        assert all(error.line >= 1 and error.column >= 1 and error.message for error in result.errors)
    else:
        hardcoded_port(result.spec)
        assert Spec.from_json(result.spec.to_json()) == result.spec


@fuzzed()
@given(st.one_of(st.text(), st.lists(st.sampled_from(WORDS), max_size=60).map("".join), st.binary()))
def test_any_text_is_a_spec_or_errors(text: str | bytes) -> None:
    _check(text)


def _flow(value: object) -> str:
    """The value as YAML in one line, with texts unquoted where that may go."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_flow(key)}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if isinstance(value, str):
        return value if value.isalnum() or value in WORDS else "'" + value.replace("'", "''") + "'"
    return "~" if value is None else str(value)


@fuzzed()
@given(st.dictionaries(st.sampled_from(list(schema()["properties"])), trees, max_size=5), trees)
def test_any_tree_is_a_spec_or_errors(tree: dict[str, object], service: object) -> None:
    lines = [f"{key}: {_flow(value)}" for key, value in {"name": "web", "service": service, **tree}.items()]
    _check("\n".join(lines))


@fuzzed()
@given(st.dictionaries(st.sampled_from([*schema()["$defs"]["Service"]["properties"]]), trees, max_size=4))
def test_any_service_section_is_a_spec_or_errors(section: dict[str, object]) -> None:
    _check(f"name: web\nservice: {_flow(section)}")


@fuzzed()
@given(st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 12), st.sampled_from(["", *WORDS])), max_size=5))
def test_any_damaged_spec_is_a_spec_or_errors(damages: list[tuple[int, int, str]]) -> None:
    text = LLM
    for start, length, word in damages:
        text = text[:start] + word + text[start + length :]
    _check(text)


values = st.text(alphabet=st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=30)


def _written(value: str, style: int) -> str:
    if style == 0:
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\ufeff", "\\uFEFF") + '"'
    if style == 1 and "\ufeff" not in value:
        return "'" + value.replace("'", "''") + "'"
    if style == 2 and value.strip() == value and value.isprintable() and value and value[0] not in "\t ":
        return f"|-\n    {value}\n"
    return '"' + "".join(f"\\U{ord(character):08X}" for character in value) + '"'


@fuzzed()
@given(
    st.dictionaries(
        st.from_regex(r"[A-Z]{1,4}", fullmatch=True), st.tuples(values, st.integers(0, 3)), min_size=1, max_size=4
    )
)
def test_masked_secrets_are_gone_and_come_back(secrets: dict[str, tuple[str, int]]) -> None:
    lines = [
        f'  "{name}": {_written(value, style)}' + (f"  # {name}" if style != 2 else "")
        for name, (value, style) in secrets.items()
    ]
    text = "name: web\nsecrets:\n" + "\n".join(lines) + "\nservice: {}\n"
    parsed = _read(text)
    if isinstance(parsed, SpecErrors):
        assert all("stands elsewhere" in error.message or MASK in error.message for error in parsed.errors), parsed
        return
    assert set(parsed.secrets) == set(secrets)
    again = _read(parsed.text, kept_secrets=parsed.secrets)
    assert isinstance(again, Parsed)
    assert (again.secrets, again.text) == (parsed.secrets, parsed.text)
    section = load(parsed.text).root.child("secrets")
    assert section is not None
    assert section.plain_value() == dict.fromkeys(secrets, MASK)
