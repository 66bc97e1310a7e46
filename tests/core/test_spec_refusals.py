"""What the service YAML refuses, field by field, and the rules between fields."""

import pytest

from tests.core.spec_texts import fault, read, service, web

TASK_REFUSES = [
    ("name: web-", "name", "is no name of a service"),
    ("name: 5", "name", "is no name of a service"),
    (f"name: {'a' * 64}", "name", "must have at most 63 characters, but has 64"),
    ("provider: My Cloud", "provider", "must be the name of a provider such as local"),
    ("workdir: ''", "workdir", "is empty"),
    ("workdir: {ref: v1}", "workdir.url", "is missing"),
    ("workdir: {url: x, rev: v1}", "workdir.rev", "did you mean ref?"),
    ("workdir: [a]", "workdir", "must be a mapping of fields, but is a list"),
    ("num_nodes: 0", "num_nodes", "must be 1 or more"),
    ('num_nodes: "2"', "num_nodes", 'but is the text "2": remove the quotes'),
    ("setup_scope: host", "setup_scope", "must be one of version, replica, but is host"),
    ("setup: [a]", "setup", "must be a text, but is a list"),
    ("run: true", "run", "quote it"),
    ("envs: [A]", "envs", "must be a mapping of names and texts"),
    ("file_mounts: [a]", "file_mounts", "must be a mapping of fields, but is a list"),
    ("file_mounts: {/a/../b: c}", 'file_mounts["/a/../b"]', "must not have .."),
    ("fake: 5", "fake", "must be a mapping, but is 5"),
    ("fake: {a: yes}", "fake.a", "quote it"),
    ("fake: {a: {b: [2024-01-01]}}", "fake.a.b[0]", "for a date: quote it"),
    ("volume_mounts: {a: b}", "volume_mounts", "must be a list, but is a mapping"),
    ("api_server_access: 1", "api_server_access", "must be true or false, but is 1"),
]
RESOURCES_REFUSE = [
    ("cpus: many", "cpus", "must be like 4, 0.5 or 4+"),
    ("cpus: 017", "cpus", "must be like"),
    ("cpus: -1", "cpus", "must be like"),
    ("memory: 8XB", "memory", "must be like 16, 16+ or 64GB"),
    ("disk_size: 1.5", "disk_size", "must be like 256 or 256GB"),
    ('use_spot: "true"', "use_spot", "write true without quotes"),
    ("use_spot: 1", "use_spot", "must be true or false"),
    ("max_hourly_cost: 0", "max_hourly_cost", "must be more than 0"),
    ("ports: 0", "ports", "must be a port from 1 to 65535"),
    ("ports: 70000", "ports", "must be a port"),
    ("ports: 22:22", "ports", "must be a port"),
    ('ports: ["8000-9000x"]', "ports[0]", "must be a port"),
    ("ports: 9000-8000", "ports", "must be a port"),
    ("ports: {a: b}", "ports", "must be a port, but is a mapping"),
    ("ports: []", "ports", "must open exactly one port"),
    ("ports: 8000-8010", "ports", "must open exactly one port"),
    ("ports: [8000, 8001]", "ports", "must open exactly one port"),
    ("any_of: [{ports: 80}, {ports: 81}]", "ports", "must open the same port in each choice"),
    ("any_of: [{ports: 80}, {}]", "ports", "must open the same port in each choice"),
    ("labels: {a: yes}", "labels.a", "quote it"),
    ("accelerators: {A100: 0}", "accelerators.A100", "must be more than 0"),
    ("accelerators: {A100: many}", "accelerators.A100", "must be a number"),
    ("accelerators: ['A100 x']", "accelerators[0]", "must be like A100 or A100:8"),
    ("accelerator_args: {tpu: x}", "accelerator_args.tpu", "is no key of resources.accelerator_args"),
    ("autostop: yes", "autostop", "quote it"),
    ("autostop: [1]", "autostop", "must be true, false, minutes"),
    ("priority: 1001", "priority", "must be at most 1000"),
    ("any_of: {a: b}", "any_of", "must be a list, but is a mapping"),
    ("any_of: [5]", "any_of[0]", "must be a mapping of fields, but is 5"),
    ("any_of: [{any_of: []}]", "any_of[0].any_of", "it belongs below resources"),
    ("any_of: [{}], ordered: [{}]", "ordered", "cannot stand beside any_of"),
    ("gpus: A100", "gpus", "did you mean accelerators?"),
]
SERVICE_REFUSES = [
    ("readiness_probe: {timeout_seconds: 1}", "readiness_probe.path", "is missing"),
    ("readiness_probe: [/a]", "readiness_probe", "must be a mapping of fields, but is a list"),
    ("readiness_probe: /a b", "readiness_probe.path", "must have no spaces"),
    ('readiness_probe: "/a\\eb"', "readiness_probe.path", "must have no control characters or line breaks: remove"),
    ("readiness_probe: {path: /, timeout_seconds: 0}", "readiness_probe.timeout_seconds", "must be more than 0"),
    ("readiness_probe: {path: /, timeout_seconds: .nan}", "readiness_probe.timeout_seconds", "must be a finite number"),
    (
        "readiness_probe: {path: /, timeout_seconds: -.inf}",
        "readiness_probe.timeout_seconds",
        "must be a finite number",
    ),
    (
        "readiness_probe: {path: /, timeout_seconds: 1e999}",
        "readiness_probe.timeout_seconds",
        "must be a finite number",
    ),
    ("readiness_probe: {path: /, timeout_seconds: 1_000}", "readiness_probe.timeout_seconds", "must be a number"),
    ("readiness_probe: {path: /, timeout_seconds: 1:30}", "readiness_probe.timeout_seconds", "must be a number"),
    (
        "readiness_probe: {path: /, initial_delay_seconds: -1}",
        "readiness_probe.initial_delay_seconds",
        "must be 0 or more",
    ),
    (
        "readiness_probe: {path: /, initial_delay_seconds: 1e9}",
        "readiness_probe.initial_delay_seconds",
        "must be at most",
    ),
    ("readiness_probe: {path: /, post_data: '{a'}", "readiness_probe.post_data", "is not JSON"),
    ("readiness_probe: {path: /, post_data: '{\"a\": NaN}'}", "readiness_probe.post_data", "NaN is no JSON number"),
    (
        "readiness_probe: {path: /, post_data: '{\"a\": 1e999}'}",
        "readiness_probe.post_data.a",
        "must be a finite number",
    ),
    ("readiness_probe: {path: /, post_data: '5'}", "readiness_probe.post_data", "must be a JSON object or list"),
    ("readiness_probe: {path: /, post_data: {a: NO}}", "readiness_probe.post_data.a", "quote it"),
    (
        "readiness_probe: {path: /, headers: {'X Y': z}}",
        'readiness_probe.headers["X Y"]',
        "is no name of an HTTP header",
    ),
    ('readiness_probe: {path: /, headers: {X: "a\\nb"}}', "readiness_probe.headers.X", "must be one line"),
    ("readiness_probe: {path: /, scheme: ftp}", "readiness_probe.scheme", "must be one of http, https"),
    ("readiness_probe: {path: /, insecure_tls: 'yes'}", "readiness_probe.insecure_tls", "without quotes"),
    ("liveness_probe: {path: /, initial_delay_seconds: 1}", "liveness_probe.initial_delay_seconds", "is no key of"),
    ("load_balancer: {stream_timeout_seconds: 0}", "load_balancer.stream_timeout_seconds", "must be more than 0"),
    ("replicas: 1.0", "replicas", "must be a whole number, but is 1.0"),
    ("replicas: 017", "replicas", "in plain decimal digits"),
    ("replicas: yes", "replicas", "must be a whole number"),
    ("replicas: 100001", "replicas", "must be at most 100000"),
    (f"replicas: {'9' * 5000}", "replicas", "must be a whole number"),
    ("replicas: 2\nreplica_policy: {min_replicas: 1}", "replicas", "cannot stand beside replica_policy"),
    ("replica_policy: {max_replicas: 1}", "replica_policy.min_replicas", "is missing"),
    (
        "replica_policy: {min_replicas: 1, max_replicas: 2}",
        "replica_policy.max_replicas",
        "needs target_qps_per_replica",
    ),
    (
        "replica_policy: {min_replicas: 1, num_overprovision: -1}",
        "replica_policy.num_overprovision",
        "must be 0 or more",
    ),
    (
        "replica_policy: {min_replicas: 1, target_qps_per_replica: 0}",
        "replica_policy.target_qps_per_replica",
        "more than 0",
    ),
    (
        "replica_policy: {min_replicas: 1, target_qps_per_replica: {}}",
        "replica_policy.target_qps_per_replica",
        "is empty",
    ),
    (
        "replica_policy: {min_replicas: 1, target_qps_per_replica: {A100: 1}}",
        "replica_policy.target_qps_per_replica",
        "needs load_balancing_policy: instance_aware_least_load",
    ),
    (
        "replica_policy: {min_replicas: 1, base_ondemand_fallback_replicas: 1}",
        "replica_policy.base_ondemand_fallback_replicas",
        "needs spot replicas: add use_spot: true",
    ),
    (
        "replica_policy: {min_replicas: 1, dynamic_ondemand_fallback: true}",
        "replica_policy.dynamic_ondemand_fallback",
        "needs spot replicas",
    ),
    ("replica_policy: {min_replicas: 1, spot_placer: dynamic_fallback}", "replica_policy.spot_placer", "needs spot"),
    (
        "replica_policy: {min_replicas: 1, spot_placer: best}",
        "replica_policy.spot_placer",
        "must be one of dynamic_fallback",
    ),
    (
        "replica_policy: {min_replicas: 1, upscale_delay_seconds: -1}",
        "replica_policy.upscale_delay_seconds",
        "must be 0 or",
    ),
    ("load_balancing_policy: random", "load_balancing_policy", "must be one of round_robin, least_load"),
    ("ports: 0", "ports", "must be 1 or more"),
    ("ports: 65536", "ports", "must be at most 65535"),
    ("ports: '80'", "ports", "remove the quotes"),
    ("endpoint_port: 0", "endpoint_port", "must be 1 or more"),
    ("tls: {keyfile: k}", "tls.certfile", "is missing"),
    ("https: {key: k}", "https", "did you mean tls?"),
    ("drain_seconds: -1", "drain_seconds", "must be 0 or more"),
    ("max_launches: 0", "max_launches", "must be 1 or more"),
    ("rollout: {max_surge: 0}", "rollout.max_surge", "nothing could move"),
    ("rollout: {max_surge: 0%, max_unavailable: 0%}", "rollout.max_surge", "nothing could move"),
    ("rollout: {max_surge: half}", "rollout.max_surge", "must be a whole number or a percentage such as 25%"),
    ("rollout: {max_surge: 0.5}", "rollout.max_surge", "must be a whole number or a percentage"),
    ("rollout: {max_unavailable: -1}", "rollout.max_unavailable", "must be from 0"),
    ("rollout: {max_unavailable: 101%}", "rollout.max_unavailable", "must be at most 100%"),
    ("rollout: {canary: 101%}", "rollout.canary", "must be at most 100%"),
    ("rollout: {mode: recreate}", "rollout.mode", "must be one of rolling, blue_green"),
    ("rollout: {auto_rollback: maybe}", "rollout.auto_rollback", "must be true or false"),
    ("rollout: {progress_deadline_seconds: 0}", "rollout.progress_deadline_seconds", "must be more than 0"),
    (
        "restart: {backoff_seconds: 500}",
        "restart.max_backoff_seconds",
        "must be backoff_seconds (500) or more, but is 300",
    ),
    ("restart: {max_never_ready: 0}", "restart.max_never_ready", "must be 1 or more"),
    ("workers: 1\nreplicas: 2", "workers", "cannot stand beside replicas"),
    ("pool: {workers: 1, max_workers: 2}", "pool.workers", "cannot stand beside min_workers or max_workers"),
    ("pool: {min_workers: 3, max_workers: 2}", "pool.max_workers", "must be min_workers (3) or more"),
    ("pool: {workers: -1}", "pool.workers", "must be 0 or more"),
    ("pool: {queue_length_threshold: 0}", "pool.queue_length_threshold", "must be 1 or more"),
]


@pytest.mark.parametrize(("lines", "path", "cause"), TASK_REFUSES)
def test_the_task_refuses(lines: str, path: str, cause: str) -> None:
    key = lines.split(":")[0]
    rest = {"name": "name: web", "run": "run: x", "service": "service: {}"}
    rest.pop(key, None)
    found = fault("\n".join([lines, *rest.values()]))
    assert found.startswith("line 1, column ")
    assert f": {path}: " in found
    assert cause in found


@pytest.mark.parametrize(("lines", "path", "cause"), RESOURCES_REFUSE)
def test_resources_refuse(lines: str, path: str, cause: str) -> None:
    found = fault(web(f"resources: {{{lines}}}"))
    assert found.startswith("line 4, column ")
    assert f": resources.{path}: " in found
    assert cause in found


@pytest.mark.parametrize(("lines", "path", "cause"), SERVICE_REFUSES)
def test_the_service_refuses(lines: str, path: str, cause: str) -> None:
    found = fault(service(lines))
    assert f": service.{path}: " in found
    assert cause in found


def test_json_that_is_too_deep_or_has_too_long_numbers_is_refused() -> None:
    for data, cause in (
        ("[" * 900 + "]" * 900, "is nested more than 32 levels deep"),
        ("[" * 9000 + "]" * 9000, "is not JSON"),
        ("[" + "9" * 40 + "]", "must be a number of at most 31 digits"),
        ("[" + "9" * 5000 + "]", "is not JSON"),
    ):
        found = fault(service(f"readiness_probe: {{path: /, post_data: '{data}'}}"))
        assert "service.readiness_probe.post_data" in found
        assert cause in found


def test_spot_fields_are_fine_where_a_choice_is_spot() -> None:
    policy = "{min_replicas: 1, base_ondemand_fallback_replicas: 1, spot_placer: Dynamic_Fallback}"
    for resources in ("{use_spot: true}", "{any_of: [{use_spot: false}, {use_spot: true}]}"):
        assert read(web(f"resources: {resources}", service=f"{{replica_policy: {policy}}}")).target == 1


def test_a_provider_that_opens_one_port_has_to_be_told_which() -> None:
    found = fault(web("provider: docker"))
    assert "service.ports: must say on which port a replica listens, as docker opens it: add ports: 8080" in found
    assert read(web("provider: docker", service="{ports: 80}")).port == 80
    assert read(web("provider: docker\nresources: {ports: 81}")).port == 81
    assert read(web("provider: docker\nresources: {any_of: [{ports: 82}, {ports: 82, region: x}]}")).port == 82
    assert read(web("provider: docker\nresources: {ports: 83, any_of: [{region: x}, {region: y}]}")).port == 83
    assert read(web("provider: local")).port is None
    assert read("name: p\nprovider: docker\npool: {workers: 1}").port is None


def test_a_provider_that_is_not_there_is_refused_with_the_nearest() -> None:
    text = web("provider: locl")
    assert fault(text, providers=["local", "fake"]).endswith("provider: locl is no provider here: did you mean local?")
    assert fault(web("provider: xyz"), providers=["local", "fake"]).endswith("take one of fake, local")
    assert read(web("provider: local"), providers=["local"]).provider == "local"


def test_a_spec_is_a_service_or_a_pool() -> None:
    assert "there is no `service:` section: add one" in fault("name: web\nrun: x")
    assert "pool: cannot stand beside service" in fault("name: web\nservice: {}\npool: {workers: 1}")


def test_the_name_comes_from_the_text_or_is_given() -> None:
    assert "line 1, column 1: name: is missing: add a line such as `name: web`" in fault("service: {}")
    assert read("service: {}", name="given").name == "given"
    assert read("name: web\nservice: {}", name="given").name == "given"
    assert "is no name of a service" in fault("name: web\nservice: {}", name="no good")


@pytest.mark.parametrize("name", ["a", "A1", "a-b_c.d9", "a" * 63])
def test_names_by_the_rule(name: str) -> None:
    assert read(f"name: {name}\nservice: {{}}").name == name


def test_the_target_and_the_most_replicas() -> None:
    assert read(service("replicas: 3")).target == 3
    assert read(service("replicas: 0")).target == 0
    ranged = read(service("replica_policy: {min_replicas: 2, max_replicas: 5, target_qps_per_replica: 1}"))
    assert (ranged.target, ranged.most) == (2, 5)
    assert (read(web()).target, read(web()).most) == (1, 1)


def test_the_progress_deadline_leaves_room_for_the_initial_delay() -> None:
    assert read(web()).service.progress_deadline == 1800
    assert read(service("rollout: {progress_deadline_seconds: 60}")).service.progress_deadline == 60
