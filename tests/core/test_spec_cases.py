"""Faults that others have met in the YAML of services, each named after what was given."""

import pytest

from replicas.core.spec import SpecErrors, parse
from tests.core.spec_texts import fault, faults, read, service, web


def test_a_key_that_does_not_exist_is_refused_with_path_line_and_nearest_key() -> None:
    assert fault(web("num_workers: 2")) == (
        "line 4, column 1: num_workers: is no key of the top level: did you mean num_nodes?"
    )
    assert fault(service("readines_probe: /")) == (
        "line 4, column 3: service.readines_probe: is no key of service: did you mean readiness_probe?"
    )
    text = service("replica_policy: {min_replicas: 1, max_replica: 2}")
    assert "service.replica_policy.max_replica: " in fault(text)
    assert fault(text).endswith("did you mean max_replicas?")


def test_a_key_of_another_section_is_sent_there() -> None:
    assert fault(web("replicas: 2")).endswith("is no key of the top level: it belongs below service")
    assert fault(web("cpus: 2")).endswith("it belongs below resources")


@pytest.mark.parametrize("value", ["yes", "NO", "true", "False", "on", "Off", "Yes", "TRUE"])
def test_an_env_that_yaml_takes_for_a_truth_value_is_to_be_quoted(value: str) -> None:
    assert fault(web(f"envs:\n  A: {value}")) == (
        f'line 5, column 6: envs.A: YAML takes {value} for a truth value: quote it, "{value}"'
    )
    assert read(web(f'envs:\n  A: "{value}"')).envs == {"A": value}


def test_an_env_number_is_taken_as_its_text() -> None:
    assert read(web("envs: {P: 5432, T: 0.7, Z: 0, N: -3}")).envs == {"P": "5432", "T": "0.7", "Z": "0", "N": "-3"}


@pytest.mark.parametrize(
    "value",
    ["1.10", "22:22", "017", "1_000", "0x1F", "0b11", "+5", "1.", ".5", "190:20:30.15", ".inf", ".NaN", "1.0e+3"],
)
def test_an_env_number_that_would_change_is_to_be_quoted(value: str) -> None:
    found = fault(web(f"envs:\n  V: {value}"))
    assert found.startswith("line 5, column 6: envs.V: YAML takes")
    assert found.endswith(f'quote it, "{value}"')
    assert read(web(f"envs:\n  V: '{value}'")).envs == {"V": value}


@pytest.mark.parametrize("value", ["2024-01-01", "2001-12-14 21:59:43.10", "2001-12-15T02:59:43.1Z"])
def test_an_env_date_is_to_be_quoted(value: str) -> None:
    assert "for a date: quote it" in fault(web(f"envs:\n  D: {value}"))


@pytest.mark.parametrize("value", ["", " ~", " null"])
def test_an_empty_env_has_to_be_given_at_apply(value: str) -> None:
    text = web(f"envs:\n  A:{value}")
    assert fault(text) == (
        'line 5, column 3: envs.A: has no value: give it at apply with --env A=VALUE, or write "" for an empty text'
    )
    assert read(text, env={"A": "x"}).envs == {"A": "x"}
    assert read(text, env={"A": ""}).envs == {"A": ""}
    assert read(web('envs: {A: ""}')).envs == {"A": ""}


def test_two_replicas_keys_are_refused_with_both_lines() -> None:
    found = fault(service("replicas: 1\nports: 80\nreplicas: 2"))
    assert found == ("line 6, column 3: service.replicas: the key stands twice, here and in line 4: remove one of them")


def test_a_broken_indent_has_line_and_column() -> None:
    found = fault("name: web\nservice:\n  replicas: 1\n ports: 80\n")
    assert found.startswith("line 4, column 2: the indent fits no line above")


def test_a_tab_in_the_indent_has_line_and_column() -> None:
    assert fault("name: web\nservice:\n\treplicas: 1\n") == (
        "line 3, column 1: a tab stands in the indent: YAML takes only spaces"
    )


def test_a_path_is_never_taken_for_a_spec() -> None:
    assert fault("examples/missing.yaml") == (
        'line 1, column 1: this is the text "examples/missing.yaml" and no spec: '
        "a spec is a mapping, which begins like `name: web`"
    )


@pytest.mark.parametrize("section", ["resources", "envs", "secrets", "file_mounts", "run", "workdir", "setup"])
def test_a_section_left_empty_is_told_clearly(section: str) -> None:
    text = f"name: web\nservice: {{}}\n{section}:\n"
    assert fault(text) == f"line 3, column 1: {section}: is empty: give it a value, or remove the line"


@pytest.mark.parametrize("key", ["name", "service", "provider"])
def test_a_field_left_empty_is_told_once(key: str) -> None:
    text = "\n".join([f"{key}:", *(line for line in ("name: web", "service: {}") if not line.startswith(key))])
    assert fault(text) == f"line 1, column 1: {key}: is empty: give it a value, or remove the line"
    assert fault(service("readiness_probe: {path: }")) == (
        "line 4, column 21: service.readiness_probe.path: is empty: give it a value, or remove the line"
    )


def test_an_empty_service_section_is_told_clearly() -> None:
    assert fault("name: web\nservice:\n") == "line 2, column 1: service: is empty: give it a value, or remove the line"


def test_an_env_that_is_a_mapping_is_refused() -> None:
    assert fault(web("envs:\n  A: {b: c}")) == "line 5, column 6: envs.A: must be a text, but is a mapping"
    assert fault(web("envs:\n  A: [1]")) == "line 5, column 6: envs.A: must be a text, but is a list"


def test_negative_replicas_are_refused() -> None:
    assert fault(service("replicas: -1")) == "line 4, column 13: service.replicas: must be 0 or more, but is -1"


def test_max_replicas_below_min_replicas_is_refused() -> None:
    text = service("replica_policy:\n  min_replicas: 3\n  max_replicas: 2\n  target_qps_per_replica: 1")
    assert fault(text) == (
        "line 6, column 19: service.replica_policy.max_replicas: must be min_replicas (3) or more, but is 2"
    )


def test_a_probe_path_without_a_slash_is_refused() -> None:
    for lines in ("readiness_probe: health", "readiness_probe:\n  path: health"):
        assert 'must begin with "/", but is the text "health": write /health' in fault(service(lines))


def test_names_that_differ_only_in_a_sign_are_different_specs() -> None:
    one, other = (parse("service: {}", name=name).spec for name in ("a-b", "a_b"))
    assert one.name != other.name
    assert one.digest() != other.digest()


def test_several_faults_are_told_at_once_in_the_order_of_the_text() -> None:
    text = "name: 1x\nnme: 2\nservice:\n  replicas: -1\n  drain_seconds: soon\nenvs: {A: yes}\n"
    found = faults(text)
    assert [line.split(":")[0] for line in found] == [
        "line 1, column 7",
        "line 2, column 1",
        "line 4, column 13",
        "line 5, column 18",
        "line 6, column 11",
    ]


def test_errors_carry_path_line_column_and_message() -> None:
    with pytest.raises(SpecErrors) as caught:
        parse(service("replicas: many"))
    (error,) = caught.value.errors
    assert (error.path, error.line, error.column) == ("service.replicas", 4, 13)
    assert error.message == "must be a whole number, but is many"
    assert str(caught.value) == str(error) == f"line 4, column 13: service.replicas: {error.message}"
