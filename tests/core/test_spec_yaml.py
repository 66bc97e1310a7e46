"""The YAML itself: limits, keys, aliases, documents, characters, and where errors are."""

import pytest

from replicas.core.spec.loader import MAX_ALIASES, MAX_BYTES, MAX_DEPTH, MAX_NODES
from tests.core.spec_texts import fault, faults, read, service, web
from tests.support.patience import spent

SOON = 0.1  # seconds of CPU for any text


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "line 1, column 1: the text is empty"),
        ("# nothing\n", "line 1, column 1: the text is empty"),
        ("---\n", "line 1, column 1: the text is empty"),
        ("- a\n- b\n", "line 1, column 1: this is a list and no spec"),
        ("a: b: c", "line 1, column 5: a `:` stands where no key can be"),
        ("name: web\nrun\nservice: {}", "line 2, column 1: this is no `key: value`: a `:` is missing"),
        ("name: 'web\nrun: x\n", "line 3, column 1: a quote is opened and never closed (it belongs to what begins in"),
        ("name: @web", "line 1, column 7: no value can begin with @: quote it"),
        ("name: web\nenvs: {A: b\nrun: x", "line 3, column 4: a `{` is opened and not closed by `}`"),
        ("name: web\nenvs: [a\n", "line 3, column 1: a `[` is opened and not closed by `]`"),
        ("name: ***", "line 1, column 8: `*` and `&` begin an alias or an anchor: quote the text"),
        ("name: a\n...\nb: c", "line 3, column 1: the text goes on after its end"),
        ("- a\nb: c", "line 2, column 1: the indent fits no line above: a list goes on with `- `"),
        ('name: "\\q"', "line 1, column 8: this is not YAML: found unknown escape character"),
    ],
)
def test_broken_yaml_is_told_with_line_column_and_what_to_do(text: str, found: str) -> None:
    assert fault(text).startswith(found)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (b"name: web\n# caf\xe9\n", "line 2, column 6: the text is not UTF-8 from here on: save it as UTF-8"),
        ("name: web".encode("utf-16"), "line 1, column 1: the text is UTF-16: save it as UTF-8"),
        ("name: web\r\nrun: a\x07b", "line 2, column 7: the character U+0007 cannot stand in YAML"),
        ("name: web\n\x00", "line 2, column 1: the character U+0000 cannot stand in YAML"),
        ("name: \ud800", "line 1, column 7: the character U+D800 cannot stand in YAML"),
    ],
)
def test_bytes_and_characters_that_are_no_text_are_refused(source: str | bytes, found: str) -> None:
    assert fault(source).startswith(found)


def test_a_byte_order_mark_windows_line_ends_and_any_language_are_fine() -> None:
    spec = read("\ufeffname: web\r\nservice: {}\r\nenvs:\r\n  A: 日本 😀\r\n".encode())
    assert spec.envs == {"A": "日本 😀"}


def test_a_nul_by_escape_is_refused() -> None:
    assert "must not contain the character NUL" in fault(web('envs: {A: "a\\0b"}'))


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ("envs: {NO: x}", "envs.NO: the key must be a text, but YAML takes NO for a truth value: quote it"),
        ("envs: {2024-01-01: x}", "the key must be a text, but YAML takes 2024-01-01 for a date"),
        ("envs: {~: x}", "envs: a key is empty"),
        ("envs: {[a]: x}", "envs: a key must be a text, not a list or a mapping"),
        ("? {a: b}\n: x", "a key must be a text, not a list or a mapping"),
        ("envs: {1A: x}", 'envs["1A"]: is no name of a variable'),
        ("envs: {ROLLCALL_HOME: x}", "envs.ROLLCALL_HOME: names that begin with ROLLCALL_"),
    ],
)
def test_keys_are_texts(lines: str, found: str) -> None:
    assert any(found in line for line in faults(web(lines)))


def test_tags_are_not_taken_except_for_a_plain_text() -> None:
    assert "envs.A: tags such as tag:yaml.org,2002:int are not taken" in fault(web("envs: {A: !!int 5}"))
    assert "tags such as tag:yaml.org,2002:python/obje" in fault(
        web("run: !!python/object:os.system x").replace("run: serve\n", "")
    )
    assert read(web("envs: {A: !!str 1.10}")).envs == {"A": "1.10"}


def test_anchors_aliases_and_merge_keys_work() -> None:
    spec = read(
        web(
            """
            config:
              common: &common {region: eu, zone: a}
              copy: *common
              own:
                <<: *common
                zone: b
            """
        )
    )
    assert spec.config == {
        "common": {"region": "eu", "zone": "a"},
        "copy": {"region": "eu", "zone": "a"},
        "own": {"region": "eu", "zone": "b"},
    }


def test_the_first_of_several_merged_mappings_counts() -> None:
    spec = read(web("config: {a: &a {x: 1}, b: &b {x: 2, y: 3}, c: {<<: [*a, *b]}}"))
    assert spec.config is not None
    assert spec.config["c"] == {"x": 1, "y": 3}


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ("config: {a: *nowhere}", "line 4, column 13: config.a: *nowhere refers to no anchor &nowhere above"),
        ("config: &a {b: *a}", "line 4, column 16: config.b: *a refers to the part that it stands in"),
        ("config: {<<: 5}", "line 4, column 14: config: `<<` takes the alias of a mapping"),
        ("config: {<<: [5]}", "`<<` takes the alias of a mapping"),
    ],
)
def test_wrong_aliases_are_refused(lines: str, found: str) -> None:
    assert found in fault(web(lines))


def _bomb() -> str:
    rows = "".join(
        f"{name}: &{name} [{', '.join([f'*{base}'] * 10)}]\n" for base, name in zip("abcdefgh", "bcdefghi", strict=True)
    )
    return f"a: &a [x, x]\n{rows}"


def _merge_bomb() -> str:
    rows = "".join(f"a{i + 1}: &a{i + 1} {{<<: [*a{i}, *a{i}], z{i}: 1}}\n" for i in range(40))
    return "a0: &a0 {" + ", ".join(f"k{i}: 1" for i in range(100)) + "}\n" + rows


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("# " + "x" * MAX_BYTES, "the text is larger than 256 KiB"),
        ("# " + "é" * (MAX_BYTES // 2), "the text is larger than 256 KiB"),
        ("config: " + "[" * (MAX_DEPTH + 5), f"nested more than {MAX_DEPTH} levels deep"),
        ("".join("  " * depth + "a:\n" for depth in range(MAX_DEPTH + 5)), f"nested more than {MAX_DEPTH} levels deep"),
        ("config: [" + "a," * MAX_NODES + "]", f"more than {MAX_NODES} parts"),
        ("a: &a x\nb: [" + "*a," * (MAX_ALIASES + 1) + "]", f"more than {MAX_ALIASES} aliases"),
        (_bomb(), "the aliases make the text too large"),
        (_merge_bomb(), "the aliases make the text too large"),
        ("a: &a " + "x" * 60_000 + "\nb: [" + "*a, " * 50 + "]", "the aliases make the text too large"),
        (web("envs: {A: " + "x" * 50_000 + "}\nworkdir: /" + "$A" * 100), "is larger than 1024 KiB once its variables"),
        (web("envs: {A: x}\nworkdir: /" + "$A" * 20_000), "once its variables are filled in"),
    ],
)
def test_limits_hold_at_once(text: str, found: str) -> None:
    assert found in fault(text)
    assert spent(lambda: faults(text), SOON) < SOON


@pytest.mark.parametrize("line", ["k{}: 1", "  A{}: yes", "{}x: {{}}"])
def test_thousands_of_faults_are_told_as_the_first_fifty(line: str) -> None:
    text = "name: web\nenvs:\n  B: x\n" + "\n".join(line.format(number) for number in range(2400))
    found = faults(text)
    assert spent(lambda: faults(text), SOON) < SOON
    assert len(found) == 51
    assert found[-1].endswith("more errors follow from here on")


def test_a_first_document_with_only_a_name_names_the_second() -> None:
    assert read("name: web\n---\nservice: {}\n").name == "web"
    assert read("---\nname: other\n---\nname: web\nservice: {}\n").name == "web"


@pytest.mark.parametrize(
    "text",
    ["name: a\nservice: {}\n---\nname: b\nservice: {}\n", "name: a\n---\nservice: {}\n---\nservice: {}\n"],
)
def test_more_documents_are_refused_at_the_line_of_the_extra_one(text: str) -> None:
    line = text[: text.rindex("---")].count("\n") + 2
    assert fault(text) == (
        f"line {line}, column 1: a second document begins here: one text is one service, apply each by itself"
    )


def test_paths_name_list_items_and_odd_keys() -> None:
    assert "resources.any_of[1].prts: " in fault(
        web("resources:\n  any_of:\n  - {ports: 80}\n  - {ports: 80, prts: 81}")
    )
    assert 'file_mounts["/a.b"].sorce: ' in fault(web('file_mounts:\n  "/a.b": {sorce: /x}'))
    assert "line 5, column 23: config.list[0][1].x: " in fault(web("config:\n  list: [[{y: 1}, {x: 22:22}]]"))


def test_an_error_in_a_merged_part_is_where_the_part_is_written() -> None:
    text = service("readiness_probe: &probe {path: /, timeout_seconds: soon}\nliveness_probe: *probe")
    assert {line.split(":")[0] for line in faults(text)} == {"line 4, column 54"}
