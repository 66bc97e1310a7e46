"""Every field of the task, resources and service sections: its default and what it takes."""

from typing import Any

import pytest

from tests.core.spec_texts import read, service, web


def _at(form: Any, path: str) -> Any:
    for part in path.split("."):
        form = form.get(part) if isinstance(form, dict) else None
    return form


DEFAULTS = {
    "provider": "local",
    "num_nodes": 1,
    "envs": {},
    "secrets": [],
    "file_mounts": {},
    "resources": {},
    "setup_scope": "version",
    "workdir": None,
    "setup": None,
    "service.readiness_probe.path": "/",
    "service.readiness_probe.scheme": "http",
    "service.readiness_probe.insecure_tls": False,
    "service.readiness_probe.initial_delay_seconds": 1200,
    "service.readiness_probe.timeout_seconds": 15,
    "service.readiness_probe.endpoint_probe_interval_seconds": 10,
    "service.readiness_probe.consecutive_failure_threshold_timeout": 180,
    "service.readiness_probe.post_data": None,
    "service.readiness_probe.headers": {},
    "service.liveness_probe": None,
    "service.load_balancer.stream_timeout_seconds": 120,
    "service.replicas": 1,
    "service.replica_policy": None,
    "service.ports": None,
    "service.endpoint_port": None,
    "service.load_balancing_policy": "least_load",
    "service.tls": None,
    "service.drain_seconds": 30,
    "service.max_launches": None,
    "service.rollout.mode": "rolling",
    "service.rollout.max_surge": "25%",
    "service.rollout.max_unavailable": 0,
    "service.rollout.canary": None,
    "service.rollout.bake_seconds": None,
    "service.rollout.auto_rollback": True,
    "service.rollout.progress_deadline_seconds": None,
    "service.rollout.min_ready_seconds": 10,
    "service.rollout.max_failures": 3,
    "service.rollout.keep_old_seconds": 0,
    "service.restart.backoff_seconds": 10,
    "service.restart.max_backoff_seconds": 300,
    "service.restart.reset_after_seconds": 600,
    "service.restart.max_never_ready": 5,
}


@pytest.mark.parametrize("path", DEFAULTS)
def test_default(path: str) -> None:
    assert _at(read(web()).to_json(), path) == DEFAULTS[path]


TASK_TAKES: list[tuple[str, str, Any]] = [
    ("provider: skypilot\nresources: {ports: 80}", "provider", "skypilot"),
    ("workdir: .", "workdir", "/srv"),
    ("workdir: ../code/", "workdir", "/code"),
    ("workdir: /opt/code", "workdir", "/opt/code"),
    ("workdir: ~/code", "workdir", "~/code"),
    ("workdir: {url: https://host/x.git, ref: v1}", "workdir", {"url": "https://host/x.git", "ref": "v1"}),
    ("num_nodes: 2", "num_nodes", 2),
    ("setup: |\n  one\n  two\n", "setup", "one\ntwo\n"),
    ("setup_scope: replica", "setup_scope", "replica"),
    ("file_mounts: {/a: b, c: s3://bucket}", "file_mounts", {"/a": "/srv/b", "c": "s3://bucket"}),
    (
        "file_mounts: {/a: {source: b, mode: MOUNT, persistent: true}}",
        "file_mounts",
        {"/a": {"source": "/srv/b", "mode": "MOUNT", "persistent": True}},
    ),
    ("file_mounts: {/a: {source: [b, ~/c]}}", "file_mounts", {"/a": {"source": ["/srv/b", "~/c"]}}),
    (
        "fake: {start_seconds: 2, exit_code: 7, stubborn: true}",
        "fake",
        {"start_seconds": 2, "exit_code": 7, "stubborn": True},
    ),
    ("config: {kubernetes: {provision_timeout: 600}}", "config", {"kubernetes": {"provision_timeout": 600}}),
    ("volumes: {/data: store}", "volumes", {"/data": "store"}),
    ("volume_mounts: [{path: /data, volume_name: x}]", "volume_mounts", [{"path": "/data", "volume_name": "x"}]),
    ("managed_secrets: [A, {B: {mount_path: /b}}]", "managed_secrets", ["A", {"B": {"mount_path": "/b"}}]),
    ("inputs: {s3://in: 1.5}", "inputs", {"s3://in": 1.5}),
    ("outputs: {s3://out: 1}", "outputs", {"s3://out": 1}),
    ("file_mounts_mapping: {a: b}", "file_mounts_mapping", {"a": "b"}),
    ("api_server_access: true", "api_server_access", True),
    ("event_callback: echo done", "event_callback", "echo done"),
    ("_metadata: {x: null}", "_metadata", {"x": None}),
]
RESOURCES_TAKE: list[tuple[str, str, Any]] = [
    *((f"{key}: text", key, "text") for key in ("cloud", "region", "zone", "infra", "instance_type", "disk_tier")),
    *((f"{key}: text", key, "text") for key in ("network_tier", "local_disk", "priority_class", "job_recovery")),
    ("cpus: 4", "cpus", "4"),
    ("cpus: 0.5", "cpus", "0.5"),
    ("cpus: 4+", "cpus", "4+"),
    ('cpus: "4+"', "cpus", "4+"),
    ("memory: 16", "memory", "16"),
    ("memory: 8+", "memory", "8+"),
    ("memory: 64GB", "memory", "64GB"),
    ("use_spot: true", "use_spot", True),
    ("use_spot: True", "use_spot", True),
    ("use_spot: no", "use_spot", False),
    (
        "job_recovery: {strategy: null, max_restarts_on_errors: 3}",
        "job_recovery",
        {"strategy": None, "max_restarts_on_errors": 3},
    ),
    ("volumes: [{name: a, auto_delete: true}]", "volumes", [{"name": "a", "auto_delete": True}]),
    ("disk_size: 256", "disk_size", "256"),
    ("disk_size: 1TB", "disk_size", "1TB"),
    ("ephemeral_storage: 10", "ephemeral_storage", "10"),
    ("max_hourly_cost: 1.5", "max_hourly_cost", 1.5),
    ("ports: 8080", "ports", ["8080"]),
    ('ports: "8080"', "ports", ["8080"]),
    ("ports: [8080]", "ports", ["8080"]),
    ("ports: null", "ports", None),
    ("labels: {team: a, tier: 1}", "labels", {"team": "a", "tier": "1"}),
    ("accelerators: A100", "accelerators", "A100:1"),
    ("accelerators: A100-80GB:8", "accelerators", "A100-80GB:8"),
    ("accelerators: {A100: 8}", "accelerators", {"A100": 8}),
    ("accelerators: {A100: 0.5}", "accelerators", {"A100": 0.5}),
    ("accelerators: {T4:8, L4:1, A10g}", "accelerators", {"T4": 8, "L4": 1, "A10g": 1}),
    ("accelerators: [H100:1, L4]", "accelerators", ["H100:1", "L4:1"]),
    (
        "accelerator_args: {tpu_vm: false, runtime_version: x}",
        "accelerator_args",
        {"tpu_vm": False, "runtime_version": "x"},
    ),
    ("image_id: docker:python:3.12", "image_id", "docker:python:3.12"),
    ("image_id: {eu: ami-1}", "image_id", {"eu": "ami-1"}),
    ("autostop: 10", "autostop", "10"),
    ("autostop: 10m", "autostop", "10m"),
    ("autostop: false", "autostop", False),
    ("autostop: {idle_minutes: 10, down: true}", "autostop", {"idle_minutes": 10, "down": True}),
    ("priority: -5", "priority", -5),
    ("any_of: [{region: a}, {region: b}]", "any_of", [{"region": "a"}, {"region": "b"}]),
    ("ordered: [{infra: aws}]", "ordered", [{"infra": "aws"}]),
]
SERVICE_TAKES: list[tuple[str, str, Any]] = [
    ("readiness_probe: /health", "readiness_probe.path", "/health"),
    ("readiness_probe: {path: '/a?b=c'}", "readiness_probe.path", "/a?b=c"),
    ("readiness_probe: {path: /, initial_delay_seconds: 0}", "readiness_probe.initial_delay_seconds", 0),
    ("readiness_probe: {path: /, timeout_seconds: 2.5}", "readiness_probe.timeout_seconds", 2.5),
    (
        "readiness_probe: {path: /, endpoint_probe_interval_seconds: 1}",
        "readiness_probe.endpoint_probe_interval_seconds",
        1,
    ),
    (
        "readiness_probe: {path: /, consecutive_failure_threshold_timeout: 0}",
        "readiness_probe.consecutive_failure_threshold_timeout",
        0,
    ),
    (
        "readiness_probe: {path: /, post_data: {n: 1, s: x, f: 0.70, b: true, z: null}}",
        "readiness_probe.post_data",
        {"n": 1, "s": "x", "f": 0.7, "b": True, "z": None},
    ),
    ("readiness_probe: {path: /, post_data: '{\"a\": [1]}'}", "readiness_probe.post_data", {"a": [1]}),
    ("readiness_probe: {path: /, post_data: {}}", "readiness_probe.post_data", {}),
    ("readiness_probe: {path: /, headers: {X-A: b, X-N: 5}}", "readiness_probe.headers", {"X-A": "b", "X-N": "5"}),
    ("readiness_probe: {path: /, scheme: HTTPS, insecure_tls: true}", "readiness_probe.scheme", "https"),
    ("readiness_probe: {path: /, scheme: https, insecure_tls: true}", "readiness_probe.insecure_tls", True),
    ("liveness_probe: /alive", "liveness_probe.path", "/alive"),
    ("liveness_probe: {path: /a, timeout_seconds: 1}", "liveness_probe.timeout_seconds", 1),
    ("load_balancer: {stream_timeout_seconds: 600}", "load_balancer.stream_timeout_seconds", 600),
    ("replicas: 0", "replicas", 0),
    ("replicas: 3", "replicas", 3),
    ("replica_policy: {min_replicas: 0}", "replica_policy.max_replicas", 0),
    ("replica_policy: {min_replicas: 2}", "replica_policy.max_replicas", 2),
    ("replica_policy: {min_replicas: 2}", "replica_policy.upscale_delay_seconds", 300),
    ("replica_policy: {min_replicas: 2}", "replica_policy.downscale_delay_seconds", 1200),
    ("replica_policy: {min_replicas: 2}", "replicas", None),
    (
        "replica_policy: {min_replicas: 1, max_replicas: 4, target_qps_per_replica: 2.5, num_overprovision: 1}",
        "replica_policy.target_qps_per_replica",
        2.5,
    ),
    (
        "load_balancing_policy: instance_aware_least_load\n"
        "replica_policy: {min_replicas: 1, max_replicas: 4, target_qps_per_replica: {A100: 10, L4:2: 2.5}}",
        "replica_policy.target_qps_per_replica",
        {"A100": 10, "L4:2": 2.5},
    ),
    ("load_balancing_policy: Round_Robin", "load_balancing_policy", "round_robin"),
    ("ports: 65535", "ports", 65535),
    ("endpoint_port: 9000", "endpoint_port", 9000),
    ("tls: {keyfile: k.pem, certfile: /c.pem}", "tls", {"keyfile": "/srv/k.pem", "certfile": "/c.pem"}),
    ("drain_seconds: 0", "drain_seconds", 0),
    ("max_launches: 2", "max_launches", 2),
    ("rollout: {mode: blue_green, keep_old_seconds: 60}", "rollout.mode", "blue_green"),
    ("rollout: {max_surge: 1, max_unavailable: 50%}", "rollout.max_unavailable", "50%"),
    ("rollout: {max_surge: 0, max_unavailable: 1}", "rollout.max_surge", 0),
    ("rollout: {canary: 10%, bake_seconds: 60}", "rollout.canary", "10%"),
    ("rollout: {auto_rollback: false}", "rollout.auto_rollback", False),
    ("rollout: {progress_deadline_seconds: 60}", "rollout.progress_deadline_seconds", 60),
    ("rollout: {min_ready_seconds: 5}", "rollout.min_ready_seconds", 5),
    ("restart: {backoff_seconds: 1, max_backoff_seconds: 2}", "restart.backoff_seconds", 1),
    ("restart: {max_never_ready: 2, reset_after_seconds: 5}", "restart.max_never_ready", 2),
    ("workers: 2", "workers", 2),
    ("pool: {workers: 2}", "pool.workers", 2),
]


@pytest.mark.parametrize(("lines", "path", "value"), TASK_TAKES)
def test_the_task_takes(lines: str, path: str, value: Any) -> None:
    assert _at(read(web(lines)).to_json(), path) == value


@pytest.mark.parametrize(("lines", "path", "value"), RESOURCES_TAKE)
def test_resources_take(lines: str, path: str, value: Any) -> None:
    assert _at(read(web(f"resources: {{{lines}}}")).to_json(), f"resources.{path}") == value


@pytest.mark.parametrize(("lines", "path", "value"), SERVICE_TAKES)
def test_the_service_takes(lines: str, path: str, value: Any) -> None:
    assert _at(read(service(lines)).to_json(), f"service.{path}") == value


def test_a_pool_takes_workers_or_a_range() -> None:
    spec = read("name: p\npool: {min_workers: 1, max_workers: 3, queue_length_threshold: 5}")
    assert spec.pool is not None
    assert (spec.target, spec.most, spec.pool.queue_length_threshold) == (1, 3, 5)
    assert read("name: p\npool: {workers: 4}").target == 4
