"""What DATABASE_URL and REDIS_URL become."""

from pathlib import Path

import pytest
from django.db import connection

from controlplane.databases import database, pools
from replicas.config import Config, ConfigError

CONFIG = Config(Path("/srv/rollcall"))
POSTGRES = "postgres://someone:secret@db.example:5432/rollcall"


def test_without_an_address_it_is_sqlite_in_the_home() -> None:
    found = database(CONFIG, "", "web")
    assert found["NAME"] == Path("/srv/rollcall/db/rollcall.sqlite3")
    assert found["OPTIONS"]["transaction_mode"] == "IMMEDIATE"
    assert "journal_mode=WAL" in found["OPTIONS"]["init_command"]


def test_a_home_with_odd_characters_is_no_address() -> None:
    found = database(Config(Path("/srv/a b#c?d%20e")), "", "web")
    assert found["NAME"] == Path("/srv/a b#c?d%20e/db/rollcall.sqlite3")


def test_sqlite_by_address_gets_the_same_options() -> None:
    found = database(CONFIG, "sqlite:////data/x.sqlite3", "command")
    assert found["NAME"] == "/data/x.sqlite3"
    assert found["OPTIONS"]["transaction_mode"] == "IMMEDIATE"


@pytest.mark.parametrize(
    ("process", "kept"), [("pool", True), ("controller", True), ("web", False), ("command", False)]
)
def test_connections_are_kept_only_where_threads_are_few(process: str, kept: bool) -> None:
    for url in ("", POSTGRES):
        found = database(CONFIG, url, process)
        assert (found["CONN_MAX_AGE"] > 0) is kept
        assert ("pool" in found["OPTIONS"]) is (process == "web" and url == POSTGRES)


@pytest.mark.parametrize("url", ["mysql://x/y", "nonsense", "oracle://x"])
def test_other_databases_are_refused_in_words(url: str) -> None:
    with pytest.raises(ConfigError, match="DATABASE_URL"):
        database(CONFIG, url, "web")


def test_a_password_is_never_in_the_message() -> None:
    with pytest.raises(ConfigError) as error:
        database(CONFIG, "postgres://someone:hunter2@host:port/x", "web")
    assert "hunter2" not in str(error.value)


def test_the_pools_share_a_name_that_no_other_home_has() -> None:
    here, there = pools(CONFIG, ""), pools(Config(Path("/srv/other")), "")
    assert here["name"] != there["name"]
    assert set(here["ALT_CLUSTERS"]) == {"long", "short"}
    assert "redis" not in here


def test_redis_takes_the_place_of_the_database() -> None:
    found = pools(CONFIG, "redis://127.0.0.1:6379/0")
    assert found["redis"] == "redis://127.0.0.1:6379/0"
    assert "orm" not in found
    assert found["broker_class"].endswith("RedisBroker")


@pytest.mark.django_db
def test_the_database_of_the_tests_runs_with_these_options() -> None:
    if connection.vendor != "sqlite":
        pytest.skip("only where the database is SQLite")
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA journal_mode")
        assert cursor.fetchone() == ("wal",)
        cursor.execute("PRAGMA foreign_keys")
        assert cursor.fetchone() == (1,)
