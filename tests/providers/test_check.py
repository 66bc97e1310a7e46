"""What the local provider refuses, and how it says so."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from replicas.core.spec.task import Spec
from replicas.providers import local_check
from replicas.providers.local_check import amount, complaints, fixed_port, limits, size

BASE = Path(__file__).parents[2]


def form(**fields: Any) -> dict[str, Any]:
    """The JSON form of a spec, as the provider gets it."""
    return Spec.from_json({"name": "web", "run": "serve --port $PORT", **fields}).to_json()


def test_an_ordinary_service_is_carried() -> None:
    spec = form(
        workdir="/srv/app",
        setup="pip install x",
        envs={"A": "b"},
        file_mounts={"~/data": "/srv/data", "table.csv": "/srv/table.csv"},
        resources={"cpus": "1", "memory": "0.5", "ports": ["8080"], "disk_size": "10"},
        service={"replicas": 3},
    )
    assert complaints(spec) == []


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"num_nodes": 2}, "num_nodes: "),
        ({"workdir": {"url": "https://example.com/x.git", "ref": "main"}}, "workdir: "),
        ({"file_mounts": {"data": "s3://bucket/x"}}, "file_mounts: data: "),
        ({"file_mounts": {"data": "https://example.com/x"}}, "file_mounts: data: "),
        ({"file_mounts": {"data": {"name": "b", "store": "s3"}}}, "file_mounts: data: "),
        ({"file_mounts": {"/data": "/srv/data"}}, "file_mounts: /data: "),
        ({"volumes": {"/mnt": "disk"}}, "volumes: "),
        ({"volume_mounts": [{"path": "/mnt"}]}, "volume_mounts: "),
        ({"pool": {"workers": 2}}, "pool: "),
        ({"service": {"pool": {"workers": 2}}}, "service.pool: "),
        ({"service": {"workers": 2}}, "service.workers: "),
        ({"managed_secrets": ["key"]}, "managed_secrets: "),
        ({"api_server_access": True}, "api_server_access: "),
        ({"event_callback": "echo"}, "event_callback: "),
        ({"resources": {"accelerators": "A100:8"}}, "resources.accelerators: "),
        ({"resources": {"cloud": "aws"}}, "resources.cloud: aws "),
        ({"resources": {"infra": "aws/us-east-1"}}, "resources.infra: "),
        ({"resources": {"region": "us-east-1"}}, "resources.region: "),
        ({"resources": {"instance_type": "m5.large"}}, "resources.instance_type: "),
        ({"resources": {"use_spot": True}}, "resources.use_spot: "),
        ({"resources": {"image_id": "docker:python:3.12"}}, "resources.image_id: "),
        ({"resources": {"cpus": "100000"}}, "resources.cpus: "),
        ({"resources": {"cpus": "100000+"}}, "resources.cpus: "),
        ({"resources": {"memory": "1000000"}}, "resources.memory: "),
        ({"resources": {"memory": "900TB+"}}, "resources.memory: "),
    ],
)
def test_what_needs_another_provider_is_refused_by_name(fields: dict[str, Any], words: str) -> None:
    found = complaints(form(**fields))
    assert len(found) == 1, found
    assert found[0].startswith(words)
    assert "another provider" in found[0]


def test_every_fault_is_told_at_once() -> None:
    spec = form(num_nodes=2, resources={"accelerators": "A100", "use_spot": True})
    assert len(complaints(spec)) == 3


def test_what_asks_for_nothing_is_carried() -> None:
    assert complaints(form(num_nodes=1, resources={"use_spot": False, "cloud": "local"})) == []


def test_one_of_several_choices_is_enough() -> None:
    resources = {"memory": "0.25", "any_of": [{"accelerators": "A100"}, {"cpus": "1"}]}
    assert complaints(form(resources=resources)) == []
    assert limits(form(resources=resources)) == local_check.Limits(1.0, 1 << 28)
    resources["any_of"] = [{"accelerators": "A100"}, {"use_spot": True}]
    assert complaints(form(resources=resources))[0].startswith("resources.accelerators")


def test_a_mix_with_spot_is_refused_also_where_a_choice_is_on_demand() -> None:
    policy = {"min_replicas": 2, "base_ondemand_fallback_replicas": 1, "dynamic_ondemand_fallback": True}
    spec = form(resources={"any_of": [{"use_spot": True}, {}]}, service={"replica_policy": policy})
    assert [said.partition(":")[0] for said in complaints(spec)] == [
        "service.replica_policy.base_ondemand_fallback_replicas",
        "service.replica_policy.dynamic_ondemand_fallback",
    ]
    del spec["service"]
    assert complaints(spec) == []


def test_a_minimum_is_compared_with_the_machine_and_limits_nothing() -> None:
    spec = form(resources={"cpus": "1+", "memory": "0.1+"})
    assert complaints(spec) == []
    assert not limits(spec)


def test_exact_amounts_are_limits() -> None:
    assert limits(form(resources={"cpus": "0.5", "memory": "512MB"})) == local_check.Limits(0.5, 512 << 20)
    assert not limits(form())


@pytest.mark.parametrize(
    ("text", "count"),
    [("16", 16 << 30), ("16+", 16 << 30), ("64GB", 64 << 30), ("512M", 512 << 20), ("1.5TiB", 3 << 39), ("100B", 100)],
)
def test_sizes(text: str, count: int) -> None:
    assert size(text) == count


def test_amounts() -> None:
    assert (amount("4"), amount("0.5"), amount("4+")) == (4.0, 0.5, 4.0)
    with pytest.raises(ValueError, match="no size"):
        size("lots")


def test_a_port_in_the_command_is_refused_for_several_replicas() -> None:
    spec = form(run="python app.py --port 8080", resources={"ports": ["8080"]}, service={"replicas": 2})
    found = complaints(spec)
    assert len(found) == 1
    assert "8080" in found[0]
    assert "$PORT" in found[0]


def test_a_port_in_the_command_is_given_to_a_single_replica() -> None:
    hard = {"run": "python app.py --port 8080", "resources": {"ports": ["8080"]}}
    assert complaints(form(**hard, service={"replicas": 1})) == []
    assert fixed_port(form(**hard, service={"replicas": 1})) == 8080
    assert fixed_port(form(**{**hard, "run": "python app.py --port $PORT"})) is None
    assert fixed_port(form(**{**hard, "run": "python app.py"})) is None
    assert fixed_port(form(run="python app.py --port 8080")) is None, "nothing says that it is the replica's"


def test_a_port_in_the_command_by_way_of_a_variable() -> None:
    envs = {"LISTEN_ON": "8080"}
    named = form(run="app --port $LISTEN_ON", envs=envs, resources={"ports": ["8080"]}, service={"replicas": 1})
    assert fixed_port(named) == 8080
    assert fixed_port({**named, "envs": {"LISTEN_ON": "9090"}}) is None


def test_a_port_that_only_a_choice_of_resources_has() -> None:
    resources = {"any_of": [{"ports": ["8080"]}, {"ports": ["9090"]}]}
    assert fixed_port(form(run="app --port 8080", resources=resources, service={"replicas": 1})) == 8080


def test_launching_does_not_load_the_parser() -> None:
    """It costs each worker most of a second and many megabytes."""
    code = (
        "import sys; from replicas.providers import local, local_check;"
        " asked = {'run': 'python app.py', 'resources': {'ports': ['8080']}, 'service': {'replicas': 2}};"
        " assert local_check.fixed_port(asked) is None; sys.exit('pydantic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=BASE, check=False).returncode == 0


def test_a_missing_run_is_told() -> None:
    spec = form()
    del spec["run"]
    assert complaints(spec) == ["run: is missing, and it is what a replica is: add the command that serves"]


@pytest.mark.parametrize("field", ["run", "setup", "envs.LARGE"])
def test_what_no_process_can_be_given_is_named(field: str) -> None:
    """Linux: MAX_ARG_STRLEN."""
    name = "LARGE=" if field == "envs.LARGE" else ""
    for length, faults in (
        (131071, []),
        (131072, [f"{field}: has 131072 bytes, and a process is given at most 131071"]),
    ):
        text = "é" * 100 + "x" * (length - 200 - len(name))
        spec = form(**({"envs": {"LARGE": text}} if name else {field: text}))
        assert [each.split(": keep it")[0] for each in complaints(spec)] == faults
