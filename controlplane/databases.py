"""Where rows and the pools' messages live: DATABASE_URL and REDIS_URL, with the options that hold under load."""

from typing import Any

import dj_database_url

from replicas.config import Config, ConfigError

# IMMEDIATE takes the write lock when a transaction begins: a reader that turns writer halfway is what SQLite answers
# with "database is locked", whatever the timeout.
SQLITE_OPTIONS = {
    "timeout": 20,
    "transaction_mode": "IMMEDIATE",
    "init_command": (
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA busy_timeout=20000; "
        "PRAGMA foreign_keys=ON; PRAGMA temp_store=MEMORY;"
    ),
}
POSTGRESQL_POOL = {"min_size": 2, "max_size": 8, "timeout": 10}
KEEP_SECONDS = 600


def database(config: Config, url: str, process: str) -> dict[str, Any]:
    """The entry of Django's DATABASES for `url` (empty: SQLite in the home) in a process of the given kind.

    Connections are kept in processes whose threads are few: a pool's, the controller. Under ASGI a kept connection
    leaks with its thread, so web has a pool of connections instead. Raises ConfigError.
    """
    kept = KEEP_SECONDS if process in {"pool", "controller"} else 0
    keeping = {"CONN_MAX_AGE": kept, "CONN_HEALTH_CHECKS": kept > 0}
    if not url:
        path = config.home / "db" / "rollcall.sqlite3"
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": path, "OPTIONS": SQLITE_OPTIONS} | keeping
    try:
        found: dict[str, Any] = dict(dj_database_url.parse(url)) | keeping
    except ValueError as error:
        raise ConfigError(
            f"DATABASE_URL cannot be read ({error}). Use postgres://USER:PASSWORD@HOST:PORT/NAME, "
            "or leave it unset for SQLite in the home."
        ) from None
    options = dict(found.get("OPTIONS", {}))
    if found["ENGINE"] == "django.db.backends.sqlite3":
        options = SQLITE_OPTIONS | options
    elif found["ENGINE"] == "django.db.backends.postgresql":
        if process == "web":
            options.setdefault("pool", dict(POSTGRESQL_POOL))
    else:
        raise ConfigError(
            f"DATABASE_URL names {found['ENGINE']}, which Rollcall does not support. Use SQLite or PostgreSQL."
        )
    return found | {"OPTIONS": options}


def pools(config: Config, redis_url: str) -> dict[str, Any]:
    """django-q2's settings: the pools `long` and `short`. A message only rings for a row; the rows are the truth.

    So messages are small and few in memory (`queue_limit`), are acknowledged whatever happens, and results are not
    looked at. `save_limit` 0 spares a count and a delete per task; `prune` removes the rows.
    """
    settings: dict[str, Any] = {
        "name": config.cluster_name,
        "label": "Job queue",
        "workers": config.short_workers,
        "poll": 0.2,
        "bulk": 1,
        "save_limit": 0,
        "timeout": 60,
        "retry": 300,
        "max_attempts": 1,
        "ack_failures": True,
        "catch_up": False,
        "scheduler": False,
        "log_level": "WARNING",
        "ALT_CLUSTERS": {
            "long": {
                "workers": config.long_workers,
                "queue_limit": 1,
                "timeout": 3600,
                "retry": 90000,
                "recycle": 50,
            },
            "short": {
                "workers": config.short_workers,
                "queue_limit": 4,
                "timeout": 60,
                "retry": 300,
            },
        },
    }
    if redis_url:
        return settings | {"redis": redis_url, "broker_class": "replicas.jobs.redis_broker.RedisBroker"}
    return settings | {"orm": "default", "broker_class": "replicas.jobs.broker.BellBroker"}
