"""The home: private, safe to make twice and at once."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from controlplane.home import HomeError, prepare, secret_key
from replicas.config import Config

MAKE_KEY = """
import sys
from pathlib import Path
from controlplane.home import prepare, secret_key
from replicas.config import Config
config = Config(Path(sys.argv[1]))
prepare(config)
sys.stdin.read()
print(secret_key(config))
"""


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_home_is_for_its_owner_alone(tmp_path: Path) -> None:
    config = Config(tmp_path / "deep" / "home")
    prepare(config)
    prepare(config)
    assert {mode(path) for path in [config.home, *config.home.iterdir()]} == {0o700}
    secret_key(config)
    assert mode(config.home / "secret_key") == 0o600


def test_all_who_race_for_the_key_get_the_same(tmp_path: Path) -> None:
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", MAKE_KEY, str(tmp_path / "home")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in range(6)
    ]
    keys = {racer.communicate(b"go")[0] for racer in racers}
    assert len(keys) == 1
    assert len(keys.pop()) > 60
    assert [path.name for path in (tmp_path / "home").glob("secret_key*")] == ["secret_key"]


def test_a_home_with_a_long_path_gets_its_sockets_elsewhere(tmp_path: Path) -> None:
    config = Config(tmp_path / ("x" * 100))
    prepare(config)
    try:
        assert mode(config.run) == 0o700
        assert (config.home / "run").resolve() == config.run
        config.run.chmod(0o755)
        with pytest.raises(HomeError, match="open to others"):
            prepare(config)
    finally:
        shutil.rmtree(config.run)


def test_a_link_in_the_place_of_the_sockets_is_refused(tmp_path: Path) -> None:
    config = Config(tmp_path / ("y" * 100))
    config.run.symlink_to(tmp_path)
    try:
        with pytest.raises(HomeError, match="Remove it"):
            prepare(config)
    finally:
        config.run.unlink()


def test_a_home_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HomeError, match="ROLLCALL_HOME") as error:
        prepare(Config(tmp_path / "file" / "home"))
    assert str(tmp_path / "file" / "home") in str(error.value)


def test_a_key_cut_short_is_not_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = Config(tmp_path)

    def refuse(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="No space"):
        secret_key(config)
    assert not list(tmp_path.iterdir())
