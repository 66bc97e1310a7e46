"""A database with all tables and nothing in them, made once for all tests of a process: migrating takes seconds."""

import os
import sqlite3
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def place_database(home: Path) -> None:
    """Put one into a home that has none."""
    (home / "db").mkdir(mode=0o700, exist_ok=True)
    (home / "db" / "rollcall.sqlite3").write_bytes(_migrated())


def migrate(environment: dict[str, str]) -> None:
    """Bring the database of an environment up to date, in a process of its own."""
    command = [sys.executable, "manage.py", "migrate", "-v0", "--skip-checks"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, timeout=120)


@cache
def _migrated() -> bytes:
    """A database with all tables and nothing in them."""
    with tempfile.TemporaryDirectory(prefix="rc-", dir="/tmp") as home:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ROLLCALL_")}
        environment = kept | {"DJANGO_SETTINGS_MODULE": "tests.settings", "ROLLCALL_HOME": home}
        migrate(environment)
        with sqlite3.connect(Path(home, "db", "rollcall.sqlite3")) as database:
            content: bytes = database.serialize()
        database.close()
    return content
