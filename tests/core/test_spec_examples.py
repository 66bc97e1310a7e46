"""YAML in the shape that people have for SkyServe runs here unchanged; so does every example of ours."""

import re
from pathlib import Path

import pytest

from replicas.core.spec import Spec, parse

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
DOCUMENTED = re.findall(r"^```yaml\n(.*?)^```", (ROOT / "docs" / "spec.md").read_text(), re.MULTILINE | re.DOTALL)

LLM = """\
# A model server with spot replicas and on-demand ones that stand in.
envs:
  MODEL: org/some-model-8B
  HF_TOKEN:
  MAX_LEN: 4096

service:
  readiness_probe:
    path: /v1/chat/completions
    post_data:
      model: $MODEL
      messages:
        - role: user
          content: Hello, who are you?
      max_tokens: 1
      temperature: 0.70
    headers:
      Authorization: Bearer $HF_TOKEN
    initial_delay_seconds: 1800
    timeout_seconds: 30
  replica_policy:
    min_replicas: 1
    max_replicas: 5
    target_qps_per_replica: 2.5
    base_ondemand_fallback_replicas: 1
    dynamic_ondemand_fallback: true
    spot_placer: dynamic_fallback
    num_overprovision: 1
    upscale_delay_seconds: 60
    downscale_delay_seconds: 600
  load_balancing_policy: least_load

resources:
  ports: 8081
  memory: 32+
  disk_size: 512
  disk_tier: best
  use_spot: True
  image_id: docker:registry.example/llm:1.10
  any_of:
    - accelerators: {L4:1, A10g:1}
      infra: gcp/us-central1
    - accelerators: A100-80GB:1
      cloud: aws
      region: us-east-1

setup: |
  pip install llm-server

run: |
  llm serve $MODEL --port 8081 --max-model-len $MAX_LEN \\
    --tensor-parallel-size $SKYPILOT_NUM_GPUS_PER_NODE
"""
PLAIN = """\
service:
  readiness_probe:
    path: /health
    initial_delay_seconds: 20
  replicas: 2
  load_balancing_policy: round_robin
resources:
  ports: 8080
  cpus: 2+

workdir: examples/http

run: python3 server.py
"""
FROM_ZERO = """\
name: zero
service:
  readiness_probe: /
  replica_policy:
    min_replicas: 0
    max_replicas: 2
    target_qps_per_replica: 1
resources: {ports: 8081, cloud: gcp, cpus: 2+}
run: python3 server.py
"""
MIXED = """\
service:
  readiness_probe: /v1/models
  load_balancing_policy: instance_aware_least_load
  replica_policy:
    min_replicas: 2
    max_replicas: 8
    target_qps_per_replica:
      H100:1: 4
      "A100": 2.5
resources:
  ports: 8000
  accelerators: [H100:1, A100:1]
run: serve
"""
SEVERAL_NODES = """\
service:
  readiness_probe:
    path: /v1/completions
    post_data: '{"model": "m", "prompt": "Hi", "max_tokens": 1}'
  replicas: 1
  tls:
    keyfile: ~/key.pem
    certfile: ~/cert.pem
num_nodes: 2
resources:
  cloud: gcp
  ports: 8000
  accelerators: A100:2
  use_spot: true
  memory: 64+
  ordered:
    - region: us-east1
    - region: us-west1
file_mounts:
  /model:
    source: gs://models/m
    mode: MOUNT
run: |
  if [ "${SKYPILOT_NODE_RANK}" == "0" ]; then serve; else sleep 20; fi
"""
POOL = """\
name: workers
---
pool:
  min_workers: 1
  max_workers: 10
  queue_length_threshold: 20
resources:
  accelerators: {H100: 1}
workdir: .
setup: pip install x
"""


@pytest.mark.parametrize(
    "text", [PLAIN, FROM_ZERO, MIXED, SEVERAL_NODES, POOL], ids=["plain", "zero", "mixed", "nodes", "pool"]
)
def test_yaml_in_the_shape_of_skyserve_runs_unchanged(text: str) -> None:
    name = None if "name:" in text else "web"
    spec = parse(text, name=name, base="/srv").spec
    assert Spec.from_json(spec.to_json()) == spec


def test_a_model_server_with_all_of_it() -> None:
    spec = parse(LLM, name="llm", base="/srv", env={"HF_TOKEN": "t"}).spec
    probe, policy = spec.service.readiness_probe, spec.service.replica_policy
    assert probe.post_data == {
        "model": "org/some-model-8B",
        "messages": [{"role": "user", "content": "Hello, who are you?"}],
        "max_tokens": 1,
        "temperature": 0.7,
    }
    assert probe.headers == {"Authorization": "Bearer t"}
    assert policy is not None
    assert (policy.min_replicas, policy.max_replicas, policy.spot_placer) == (1, 5, "dynamic_fallback")
    assert spec.port == 8081
    assert spec.envs["MAX_LEN"] == "4096"
    assert spec.resources.any_of is not None
    assert [choice.accelerators for choice in spec.resources.any_of] == [{"L4": 1, "A10g": 1}, "A100-80GB:1"]
    assert [choice.memory for choice in spec.resources.choices()] == ["32+", "32+"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_parses(path: Path) -> None:
    spec = parse(path.read_bytes(), base=str(ROOT)).spec
    assert isinstance(spec.workdir, str | None)
    assert spec.workdir is None or Path(spec.workdir).is_dir()


@pytest.mark.parametrize("text", DOCUMENTED)
def test_every_documented_example_parses(text: str) -> None:
    assert parse(text, base="/srv").spec.service.readiness_probe.path.startswith("/")


def test_there_are_examples() -> None:
    assert EXAMPLES
    assert len(DOCUMENTED) >= 3
