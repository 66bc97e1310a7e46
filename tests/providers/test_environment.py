"""The environment of replicas: clean, and the same whatever the control plane's is."""

import os
from pathlib import Path

import pytest

from replicas.providers import environment
from tests.providers.cast import Cast

HOME, OWN = Path("/rollcall"), Path("/rollcall/replicas/r1/home")


def test_nothing_of_the_control_planes_is_in_it(local: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SECRET_KEY", "DATABASE_URL", "REDIS_URL", "ROLLCALL_SECRET_KEY", "PYTHONPATH", "LD_PRELOAD_X"):
        monkeypatch.setenv(name, "leaked")
    monkeypatch.setenv("VIRTUAL_ENV", "/leaked/venv")
    monkeypatch.setenv("PATH", f"/leaked/venv/bin:{os.environ['PATH']}")
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "leaked.settings")
    launched = local.launch(local.order(run="env -0 | tr '\\0' '\\n'; echo; echo end; sleep 1000"))
    shown = local.printed(launched.handle, b"end").decode()
    assert "leaked" not in shown
    assert "DJANGO" not in shown
    assert "VIRTUAL_ENV" not in shown


def test_a_replica_gets_what_is_promised(local: Cast) -> None:
    order = local.order("r7", number=7, env={"MODEL": "small", "EMPTY": ""}, secrets={"KEY": "s3cr3t-v4lue"})
    launched = local.launch(order)
    content = Path(f"/proc/{launched.pid}/environ").read_bytes().decode().split("\0")
    given = dict(each.split("=", 1) for each in content if each)
    replica = local.home / "replicas" / "r7"
    assert given.pop("LANG")
    assert given.pop("XDG_CACHE_HOME").endswith("/.cache")
    assert given.pop("XDG_CONFIG_HOME").endswith("/.config")
    assert given.pop("PATH").startswith(environment.SYSTEM_PATH)
    assert {name: value for name, value in given.items() if name not in ("PWD", "SHLVL", "_", "OLDPWD")} == {
        "HOME": str(replica / "home"),
        "PYTHONUNBUFFERED": "1",
        "PORT": launched.url.rpartition(":")[2],
        "SKYPILOT_SERVE_REPLICA_ID": "7",
        "SKYPILOT_NUM_NODES": "1",
        "SKYPILOT_NODE_IPS": "127.0.0.1",
        "SKYPILOT_NODE_RANK": "0",
        "SKYPILOT_NUM_GPUS_PER_NODE": "0",
        "SKYPILOT_TASK_ID": "web-1-7-r7",
        "ROLLCALL_HOME": str(local.home),
        "ROLLCALL_REPLICA_UID": "r7",
        "ROLLCALL_SERVICE": "web",
        "MODEL": "small",
        "EMPTY": "",
        "KEY": "s3cr3t-v4lue",
    }


def test_the_shim_is_not_counted_as_a_process_of_the_replica(local: Cast) -> None:
    launched = local.launch(local.order())
    content = Path(f"/proc/{launched.handle['shim_pid']}/environ").read_bytes()
    assert b"ROLLCALL_SHIM_UID=r1" in content
    assert f"ROLLCALL_HOME={local.home}".encode() in content
    assert b"ROLLCALL_REPLICA_UID" not in content


def test_the_spec_wins_but_for_our_own_names(local: Cast) -> None:
    env = {"LANG": "de_DE.UTF-8", "PATH": "/opt/bin", "PORT": "1", "ROLLCALL_REPLICA_UID": "other", "HOME": "/root/x"}
    given = environment.of_run(local.order(env=env), HOME, OWN, None, 20001)
    assert (given["LANG"], given["PATH"], given["HOME"]) == ("de_DE.UTF-8", "/opt/bin", "/root/x")
    assert (given["PORT"], given["ROLLCALL_REPLICA_UID"]) == ("20001", "r1")


def test_a_virtual_environment_is_first_on_the_path(local: Cast) -> None:
    order = local.order(env={"PATH": "/opt/bin"})
    given = environment.of_run(order, HOME, OWN, Path("/venv"), 20001)
    assert (given["PATH"], given["VIRTUAL_ENV"]) == ("/venv/bin:/opt/bin", "/venv")


def test_a_setup_for_all_replicas_has_the_number_of_none(local: Cast) -> None:
    order = local.order(env={"A": "b"}, secrets={"KEY": "value"})
    shared = environment.of_setup(order, HOME, OWN, Path("/venv"), per_version=True)
    assert shared["ROLLCALL_SETUP_VERSION"] == "v1"
    assert (shared["A"], shared["KEY"]) == ("b", "value")
    assert not {"ROLLCALL_REPLICA_UID", "SKYPILOT_SERVE_REPLICA_ID", "SKYPILOT_TASK_ID", "PORT"} & set(shared)
    own = environment.of_setup(order, HOME, OWN, Path("/venv"), per_version=False)
    assert (own["ROLLCALL_REPLICA_UID"], own["SKYPILOT_SERVE_REPLICA_ID"]) == ("r1", "1")
    assert "ROLLCALL_SETUP_VERSION" not in own


def test_a_machine_whose_python_is_elsewhere_gets_it_last(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(environment, "SYSTEM_PATH", str(tmp_path))
    folders = environment.path().split(":")
    assert folders[0] == str(tmp_path)
    assert (Path(folders[1]) / "python3").exists()


def test_the_operators_home_is_known_without_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME")
    assert environment.operator_home().is_absolute()
