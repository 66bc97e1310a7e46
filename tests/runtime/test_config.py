"""ROLLCALL_* variables: what they give, and what is refused."""

from pathlib import Path

import pytest

from replicas.config import DEFAULT_HOME, SOCKET_PATH_BYTES, Config, ConfigError, unknown_variables


def test_without_variables_everything_has_a_default() -> None:
    config = Config.from_env({})
    assert config.home == DEFAULT_HOME
    assert config.long_workers >= 1
    assert config.allowed_hosts == ()
    assert not config.debug
    assert not config.https


def test_values_are_read_by_type(tmp_path: Path) -> None:
    config = Config.from_env(
        {
            "ROLLCALL_HOME": str(tmp_path / "x" / ".." / "y"),
            "ROLLCALL_MAX_LAUNCHES": "3",
            "ROLLCALL_TICK_SECONDS": "0.5",
            "ROLLCALL_HTTPS": "yes",
            "ROLLCALL_ALLOWED_HOSTS": "a.example, b.example,",
            "ROLLCALL_LOG_LEVEL": "debug",
            "ROLLCALL_PRUNE_DAYS": "",
        }
    )
    assert config.home == tmp_path / "y"
    assert config.max_launches == 3
    assert config.tick_seconds == 0.5
    assert config.https is True
    assert config.allowed_hosts == ("a.example", "b.example")
    assert config.log_level == "DEBUG"
    assert config.prune_days == 7


def test_a_relative_home_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Config.from_env({"ROLLCALL_HOME": "here"}).home == tmp_path / "here"


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("ROLLCALL_MAX_LAUNCHES", "0", "between 1 and 1000"),
        ("ROLLCALL_MAX_LAUNCHES", "many", "not a whole number"),
        ("ROLLCALL_MAX_LAUNCHES", "2.5", "not a whole number"),
        ("ROLLCALL_TICK_SECONDS", "nan", "out of bounds"),
        ("ROLLCALL_TICK_SECONDS", "inf", "out of bounds"),
        ("ROLLCALL_HTTPS", "perhaps", "neither yes nor no"),
        ("ROLLCALL_LOG_LEVEL", "LOUD", "not a level"),
        ("ROLLCALL_REPLICA_PORT_FIRST", "32001", "above ROLLCALL_REPLICA_PORT_LAST"),
        ("ROLLCALL_PUBLIC_URL", "rollcall.example.org", "no address of the web: write https://HOST"),
        ("ROLLCALL_PUBLIC_URL", "https://", "no address of the web"),
        ("ROLLCALL_PUBLIC_URL", "https://a:b@c", "no address of the web"),
        ("ROLLCALL_PUBLIC_URL", "https://a:99999", "no address of the web"),
        ("ROLLCALL_PUBLIC_URL", "https://[::", "no address of the web"),
        ("ROLLCALL_PROBE_SHARDS", "2", "set the workers to 3 or more"),
    ],
)
def test_a_wrong_value_is_refused_with_its_variable(name: str, value: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as error:
        Config.from_env({name: value})
    assert name in str(error.value)


def test_an_address_of_the_dashboard_is_taken_as_it_is() -> None:
    for url in ("", "https://rollcall.example.org", "http://[::1]:8000/behind/"):
        assert Config.from_env({"ROLLCALL_PUBLIC_URL": url}).public_url == url


def test_a_misspelt_variable_is_found_with_the_right_one() -> None:
    found = unknown_variables({"ROLLCALL_MAX_LAUNCH": "3", "ROLLCALL_HOME": "x", "ROLLCALL_QQQ": "", "PATH": "/bin"})
    assert found == {"ROLLCALL_MAX_LAUNCH": "ROLLCALL_MAX_LAUNCHES", "ROLLCALL_QQQ": ""}


def test_sockets_of_a_home_with_a_long_path_go_to_a_short_one() -> None:
    short, long = Config(Path("/srv/rollcall")), Config(Path("/srv") / ("x" * 90))
    assert short.run == Path("/srv/rollcall/run")
    assert len(str(long.run)) + 41 <= SOCKET_PATH_BYTES
    assert long.run != Config(Path("/srv") / ("y" * 90)).run
