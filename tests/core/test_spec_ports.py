"""A run that hard-codes its port: found where several replicas would share a host, and nowhere else."""

import pytest

from replicas.core.spec import hardcoded_port
from tests.core.spec_texts import read


def _told(run: str, *, service: str = "ports: 8080, replicas: 2", more: str = "") -> str | None:
    lines = "".join(f"  {line}\n" for line in run.splitlines())
    return hardcoded_port(read(f"name: web\n{more}\nservice: {{{service}}}\nrun: |\n{lines}"))


@pytest.mark.parametrize(
    "run",
    [
        "python -m http.server 8080",
        "serve --port 8080",
        "serve --port=8080",
        "serve -p 8080",
        "serve --host 0.0.0.0 --port 8080 --workers 2",
        "serve --listen 0.0.0.0:8080",
        "gunicorn --bind=:8080 app",
        "serve tcp://0.0.0.0:8080",
        "serve http://[::]:8080",
        "serve \\\n  --port 8080 \\\n  --fast",
        "# takes $PORT, one day\nserve 8080",
        "serve --server-port 8080 --metrics http://other:8080",
    ],
)
def test_a_literal_port_is_told(run: str) -> None:
    assert _told(run) == (
        "run listens on port 8080 whatever the replica, but 2 replicas share this host and only one of them can have "
        "that port: use $PORT in place of 8080, or set the number of replicas to 1"
    )


@pytest.mark.parametrize(
    "run",
    [
        "serve --port $PORT",
        "serve --port ${PORT}",
        "serve --port ${PORT:-8080}",
        "PORT=8080 serve",
        "python -c 'import os; os.environ[\"PORT\"]' 8080",
        "serve",
        "python server.py",
        "serve --port 18080",
        "serve --port 8080.5",
        "serve --port 80801",
        "serve v8080",
        "curl http://db:8080/x; serve",
        "serve --upstream http://localhost:8080",
        "serve --max-model-len 8080",
        "serve --max-model-len=8080",
        "# serve 8080\nserve",
    ],
)
def test_all_else_is_no_alarm(run: str) -> None:
    assert _told(run) is None


def test_one_replica_may_have_the_port() -> None:
    assert _told("serve 8080", service="ports: 8080, replicas: 1") is None
    assert _told("serve 8080", service="ports: 8080, replicas: 0") is None


def test_the_most_replicas_count() -> None:
    policy = "replica_policy: {min_replicas: 1, max_replicas: 3, target_qps_per_replica: 1}"
    assert "but 3 replicas share this host" in str(_told("serve 8080", service=f"ports: 8080, {policy}"))


def test_the_port_of_the_resources_counts_and_one_that_comes_by_an_env() -> None:
    assert _told("serve 8081", service="replicas: 2", more="resources: {ports: 8081}") is not None
    assert _told("serve $MINE", service="replicas: 2", more="resources: {ports: 8081}\nenvs: {MINE: 8081}") is not None


def test_without_a_port_or_a_run_or_on_machines_of_their_own_there_is_nothing_to_tell() -> None:
    assert _told("serve 8080", service="replicas: 2") is None
    assert _told("serve 8080", more="provider: skypilot") is None
    assert _told("serve 8080", more="provider: fake") is None
    assert hardcoded_port(read("name: web\nservice: {ports: 80, replicas: 2}")) is None
