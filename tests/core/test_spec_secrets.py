"""Secrets and envs: given in the text, at apply, or kept from the version before; never stored in the clear."""

import pytest

from replicas.core.spec import Spec, expand, parse
from tests.core.spec_texts import fault, faults, read, web

TEXT = """\
# a comment stays
name: web   # and this
service: {readiness_probe: {path: /, headers: {Authorization: "Bearer $TOKEN"}}}
secrets:
  TOKEN: hf_0123456789abcdef  # the token
  "QUOTED": 'it''s'
  DOUBLE: "a\\tb"
  KEY: |
    -----BEGIN-----
    abc

  FOLDED: >-
    one
    two
  EMPTY: ""
  GIVEN:
run: serve
"""
VALUES = {
    "TOKEN": "hf_0123456789abcdef",
    "QUOTED": "it's",
    "DOUBLE": "a\tb",
    "KEY": "-----BEGIN-----\nabc\n",
    "FOLDED": "one two",
    "EMPTY": "",
    "GIVEN": "later",
}
MASKED = """\
# a comment stays
name: web   # and this
service: {readiness_probe: {path: /, headers: {Authorization: "Bearer $TOKEN"}}}
secrets:
  TOKEN: "***"  # the token
  "QUOTED": "***"
  DOUBLE: "***"
  KEY: "***"

  FOLDED: "***"
  EMPTY: "***"
  GIVEN:
run: serve
"""


def test_values_are_taken_out_of_the_text_and_all_else_stays() -> None:
    parsed = parse(TEXT, secrets={"GIVEN": "later"})
    assert parsed.secrets == VALUES
    assert parsed.text == MASKED


def test_the_spec_has_the_names_only() -> None:
    parsed = parse(TEXT, secrets={"GIVEN": "later"})
    assert parsed.spec.secrets == sorted(VALUES)
    form = str(parsed.spec.to_json())
    assert not any(value in form for value in VALUES.values() if len(value) > 3)
    assert Spec.from_json(parsed.spec.to_json()) == parsed.spec


def test_an_edited_text_keeps_the_values_behind_the_stars() -> None:
    again = parse(MASKED.replace("run: serve", "run: serve --fast"), kept_secrets=VALUES)
    assert again.secrets == VALUES
    assert again.text == MASKED.replace("run: serve", "run: serve --fast")


def test_an_edited_value_comes_before_the_kept_one_and_a_given_one_before_both() -> None:
    edited = MASKED.replace('TOKEN: "***"', "TOKEN: new")
    assert parse(edited, kept_secrets=VALUES).secrets["TOKEN"] == "new"
    given = parse(edited, kept_secrets=VALUES, secrets={"TOKEN": "newest"})
    assert given.secrets["TOKEN"] == "newest"
    assert "new" not in given.text


def test_stars_without_a_kept_value_are_refused() -> None:
    found = fault(web('secrets:\n  A: "***"'))
    assert found == (
        "line 5, column 6: secrets.A: *** stands for a value that is not known here: "
        "write one, or give it at apply with --secret A=VALUE"
    )


@pytest.mark.parametrize("lines", ["secrets: {A: }", "secrets: {A: null}", "secrets: [A]"])
def test_a_secret_without_a_value_has_to_be_given(lines: str) -> None:
    assert "A: has no value: write one, or give it at apply with --secret A=VALUE" in fault(web(lines))
    parsed = parse(web(lines), secrets={"A": "x"})
    assert parsed.secrets == {"A": "x"}
    assert parsed.text == web(lines)
    assert parse(web(lines), kept_secrets={"A": "y"}).secrets == {"A": "y"}


def test_given_secrets_and_envs_add_to_those_of_the_text() -> None:
    parsed = parse(web("envs: {A: 1}"), env={"A": "2", "B": "yes"}, secrets={"C": "3"})
    assert parsed.spec.envs == {"A": "2", "B": "yes"}
    assert (parsed.spec.secrets, parsed.secrets) == (["C"], {"C": "3"})


def test_a_kept_env_stands_in_for_an_empty_one_only() -> None:
    assert read(web("envs: {A: , B: 2}"), kept_env={"A": "1", "B": "1", "C": "1"}).envs == {"A": "1", "B": "2"}
    assert read(web("envs: {A: }"), kept_env={"A": "1"}, env={"A": "3"}).envs == {"A": "3"}


@pytest.mark.parametrize(
    ("env", "secrets", "found"),
    [
        ({"1A": "x"}, {}, "is no name of a variable"),
        ({}, {"A B": "x"}, "is no name of a variable"),
        ({"ROLLCALL_HOME": "x"}, {}, "the control plane's own"),
        ({"A": "a\0b"}, {}, "must not contain the character NUL"),
        ({}, {"A": "a\udc80b"}, "half of a surrogate pair"),
        ({"A": "x"}, {"A": "y"}, "keep it either in envs or in secrets"),
    ],
)
def test_what_is_given_is_checked_too(env: dict[str, str], secrets: dict[str, str], found: str) -> None:
    assert found in fault(web(), env=env, secrets=secrets)


def test_a_name_is_an_env_or_a_secret() -> None:
    assert "envs.A: is a secret, too" in fault(web("envs: {A: x}\nsecrets: {A: y}"))
    assert "envs.A: is a secret, too" in fault(web("secrets: {A: y}"), env={"A": "x"})


@pytest.mark.parametrize(
    "lines",
    [
        "secrets: {A: &a value}\nenvs: {B: *a}",
        "envs: {B: &a value}\nsecrets: {A: *a}",
        "secrets: &a {A: value}",
        "config: {x: &x {A: value}}\nsecrets: {<<: *x}",
        "config: {x: &x {A: value}}\nsecrets: *x",
        "secrets: {A: !!str value}",
    ],
)
def test_a_value_cannot_be_shown_through_an_alias(lines: str) -> None:
    assert any(
        "must be written out: aliases, anchors and tags could show a value" in line for line in faults(web(lines))
    )


def test_a_long_value_that_stands_elsewhere_too_is_refused() -> None:
    text = TEXT.replace("run: serve", "run: serve --token hf_0123456789abcdef")
    found = fault(text, secrets={"GIVEN": "later"})
    assert "secrets.TOKEN: its value stands elsewhere in the text, too: write ${TOKEN} there" in found


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ("secrets: {A: yes}", "YAML may take the value for something other than a text: put it in quotes"),
        ("secrets: {A: 1.10}", "put it in quotes"),
        ("secrets: {A: {b: c}}", "must be a text, not a list or a mapping"),
        ("secrets: text", "must be a mapping of names and texts, or a list of names"),
        ("secrets: [[a]]", "a list of secrets holds only names"),
        ("secrets: {1A: x}", "is no name of a variable"),
        ("secrets: {" + ", ".join(f"A{n}: x" for n in range(201)) + "}", "has 201 names: at most 200"),
    ],
)
def test_wrong_secrets_are_refused(lines: str, found: str) -> None:
    assert found in fault(web(lines))


@pytest.mark.parametrize(
    "lines",
    ["secrets: {A: SeCrEt, B: yes}", "secrets: {A: SeCrEt}\nnme: x", 'secrets: {A: "SeCrEt\\0"}', "secrets: SeCrEt"],
)
def test_no_error_tells_a_value(lines: str) -> None:
    found = faults(web(lines))
    assert found
    assert "SeCrEt" not in "\n".join(found)


def test_a_number_as_a_secret_is_its_text() -> None:
    assert parse(web("secrets: {PIN: 5432}")).secrets == {"PIN": "5432"}


def test_envs_are_filled_in_and_secrets_stay_names() -> None:
    text = """\
name: web
envs: {DIR: code, PORT_: 8080, N: 3, V: "1.10"}
secrets: {TOKEN: abc}
workdir: ${DIR}/x
file_mounts: {/data/$DIR: s3://$DIR/$TOKEN, /s: $TOKEN/x}
resources: {ports: $PORT_, labels: {v: $V}, cpus: "${N}+"}
service:
  replicas: $N
  readiness_probe:
    path: /$DIR/$UNKNOWN
    headers: {A: "Bearer ${TOKEN}", V: $V}
run: echo $DIR
"""
    form = read(text).to_json()
    assert form["workdir"] == "/srv/code/x"
    assert form["file_mounts"] == {"/data/code": "s3://code/$TOKEN", "/s": "$TOKEN/x"}
    assert form["resources"] == {"ports": ["8080"], "labels": {"v": "1.10"}, "cpus": "3+"}
    assert form["service"]["replicas"] == 3
    assert form["service"]["readiness_probe"]["path"] == "/code/$UNKNOWN"
    assert form["service"]["readiness_probe"]["headers"] == {"A": "Bearer ${TOKEN}", "V": "1.10"}
    assert form["run"] == "echo $DIR"
    assert expand(form["service"]["readiness_probe"]["headers"], {"TOKEN": "abc"})["A"] == "Bearer abc"


def test_keys_that_become_the_same_are_refused() -> None:
    found = fault(web("envs: {A: x, B: x}\nfile_mounts: {/$A: /a, /$B: /b}"))
    assert "file_mounts: has two keys that are the same once their variables are filled in" in found


def test_expand_leaves_other_variables_and_types_alone() -> None:
    value = {"$A": ["$A-${A}-$AB-$$A", 5, None, True], "b": "${A"}
    assert expand(value, {"A": "x"}) == {"x": ["x-x-$AB-$x", 5, None, True], "b": "${A"}


def test_relative_paths_need_a_directory_to_start_from() -> None:
    text = web("workdir: code\nfile_mounts: {/a: b, /c: {source: d}, /e: /f, /g: ~/h, /i: s3://j}")
    found = faults(text, base=None)
    assert [line.split(": ")[1] for line in found] == ["workdir", 'file_mounts["/a"]', 'file_mounts["/c"].source']
    assert all(
        "is relative, and there is no directory here to start from: write it from / on" in line for line in found
    )
    assert read(web("workdir: /code"), base=None).workdir == "/code"
