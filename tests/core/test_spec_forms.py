"""The JSON form, digests, differences and the published schema."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from replicas.core.spec import FieldChange, Spec, describe, diff, schema, schema_text
from tests.core.spec_texts import read, service, web

ROOT = Path(__file__).resolve().parents[2]
FULL = """\
name: web
workdir: {url: https://host/x.git}
envs: {A: x}
secrets: {S: y}
file_mounts: {/a: b, /c: {source: [d]}}
resources: {accelerators: {A100: 2}, ports: 80, use_spot: true, any_of: [{region: x}, {region: y}], autostop: 5}
service:
  readiness_probe: {path: /, post_data: {a: [1, null]}, headers: {X: y}}
  liveness_probe: /alive
  replica_policy: {min_replicas: 1, max_replicas: 3, target_qps_per_replica: 1.5}
  rollout: {max_surge: 1, canary: 50%}
  tls: {keyfile: k, certfile: c}
fake: {steps: [1, two, null]}
_metadata: {x: 1}
"""


@pytest.mark.parametrize("text", [web(), FULL, "name: p\npool: {workers: 2}"])
def test_the_json_form_is_json_and_leads_back(text: str) -> None:
    spec = read(text)
    form = json.loads(json.dumps(spec.to_json()))
    assert form == spec.to_json()
    again = Spec.from_json(form)
    assert again == spec
    assert again.to_json() == form
    assert again.digest() == spec.digest()


def test_a_json_form_that_is_none_is_refused() -> None:
    with pytest.raises(ValidationError):
        Spec.from_json({"name": "web", "replicas": 2})


def test_what_is_written_and_what_is_the_default_have_one_digest() -> None:
    written = service("readiness_probe: {path: /, timeout_seconds: 15.0}\nreplicas: 1\ndrain_seconds: 3e1")
    assert read(written).digest() == read(web()).digest()
    assert read(service("replica_policy: {min_replicas: 2}")).digest() == (
        read(service("replica_policy: {min_replicas: 2, max_replicas: 2}")).digest()
    )


@pytest.mark.parametrize(
    "line",
    [
        "readiness_probe: /x",
        "replicas: 3",
        "drain_seconds: 1",
        "rollout: {max_surge: 2}",
        "ports: 80",
        "endpoint_port: 90",
    ],
)
def test_a_change_of_the_service_section_leaves_the_process_alone(line: str) -> None:
    one, other = read(web()), read(service(line))
    assert one.digest() != other.digest()
    assert one.process_digest() == other.process_digest()


@pytest.mark.parametrize(
    "line",
    [
        "envs: {A: x}",
        "secrets: {A: x}",
        "setup: x",
        "workdir: /x",
        "resources: {cpus: 1}",
        "provider: fake",
        "num_nodes: 2",
    ],
)
def test_every_other_change_is_one_of_the_process(line: str) -> None:
    assert read(web()).process_digest() != read(web(line)).process_digest()


def test_the_name_is_in_both_digests() -> None:
    one, other = read(web()), read(web(), name="other")
    assert one.digest() != other.digest()
    assert one.process_digest() != other.process_digest()


def test_the_port_is_one_of_the_process_where_the_provider_opens_just_that() -> None:
    one, other = (read(web("provider: docker", service=f"{{ports: {port}}}")) for port in (80, 81))
    assert one.process_digest() != other.process_digest()


def test_a_spec_cannot_be_changed() -> None:
    spec = read(web())
    with pytest.raises(ValidationError):
        spec.name = "other"
    with pytest.raises(ValidationError):
        spec.service.drain_seconds = 1


def _between(old: str, new: str) -> list[FieldChange]:
    return diff(read(old).to_json(), read(new).to_json())


def test_equal_specs_do_not_differ() -> None:
    assert _between(FULL, FULL) == []


def test_differences_are_told_field_by_field() -> None:
    old = web("envs: {A: x, B: y}\nresources: {any_of: [{region: a}, {region: b}]}", service="{replicas: 2}")
    new = web("envs: {A: z, C: y}\nresources: {any_of: [{region: a}, {region: c}]}", service="{replicas: 3, ports: 80}")
    assert _between(old, new) == [
        FieldChange("envs.A", "x", "z"),
        FieldChange("envs.C", None, "y"),
        FieldChange("envs.B", "y", None),
        FieldChange("resources.any_of[1].region", "b", "c"),
        FieldChange("service.replicas", 2, 3),
        FieldChange("service.ports", None, 80),
    ]


def test_differences_for_people() -> None:
    old = web(
        "envs: {A: x}\nsetup: |\n  one\n  two\n",
        service="{replicas: 2, liveness_probe: /a, rollout: {auto_rollback: true}}",
    )
    new = web(
        "setup: |\n  one\n  three\n  four\nsecrets: [T]\n", service="{replicas: 3, rollout: {auto_rollback: false}}"
    )
    given = {"T": "v"}
    found = diff(read(old).to_json(), read(new, secrets=given).to_json())
    assert describe(found) == [
        'envs.A: removed, was "x"',
        'secrets: [] → ["T"]',
        "setup: 2 lines added, 1 removed",
        "service.replicas: 2 → 3",
        "service.rollout.auto_rollback: true → false",
        *[line for line in describe(found) if line.startswith("service.liveness_probe")],
    ]
    assert any(line.startswith("service.liveness_probe: removed, was {path: ") for line in describe(found))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({}, {}),
        ({"a": 1}, {"a": True}),
        ({"a": [1]}, {"a": [1, 2]}),
        ({"a": {}}, {"a": 5}),
        ({"a": [{"b": 1}]}, {"a": []}),
    ],
)
def test_a_difference_is_found_exactly_where_there_is_one(old: dict[str, Any], new: dict[str, Any]) -> None:
    changes = diff(old, new)
    assert bool(changes) == (old is not new and str(old) != str(new))
    assert len(describe(changes)) == len(changes)


def test_the_published_schema_is_the_one_of_the_models() -> None:
    published = (ROOT / "docs" / "spec.schema.json").read_text()
    assert published == schema_text(), "write it anew: python -m replicas.core.spec > docs/spec.schema.json"


def test_the_schema_knows_every_section_and_allows_no_other_key() -> None:
    found = schema()
    assert found["additionalProperties"] is False
    assert {"name", "service", "pool", "resources", "envs", "_metadata"} <= set(found["properties"])
    definitions = found["$defs"]
    assert all(part["additionalProperties"] is False for part in definitions.values())
    assert definitions["Service"]["properties"]["replicas"] == {
        "description": "Number of replicas, 1 if not given. Excludes replica_policy.",
        "maximum": 100000,
        "minimum": 0,
        "type": "integer",
    }
    probe = definitions["Service"]["properties"]["readiness_probe"]
    assert probe["anyOf"][0] == {"type": "string", "pattern": "^/"}
    assert '"null"' not in json.dumps(definitions["Service"])


def test_every_field_of_the_schema_is_documented() -> None:
    text = (ROOT / "docs" / "spec.md").read_text()
    found = schema()
    fields = {*found["properties"], *(name for part in found["$defs"].values() for name in part["properties"])}
    assert sorted(name for name in fields if f"`{name}`" not in text) == []
