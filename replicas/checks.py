"""What `manage.py doctor` looks at: each check gives findings that say what is so and what to do about it."""

import os
import shutil
import socket
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from replicas import clock
from replicas.config import Config, unknown_variables
from replicas.gateway.binary import OFF, find
from replicas.models import Heartbeat, Replica
from replicas.models.fields import ALIVE
from replicas.supervision import LOCK

PARTS = ("web", "controller", "long", "short")
LATE = timedelta(seconds=8)
SCARCE_BYTES = 2 * 1024**3
EMPTY_BYTES = 200 * 1024**2
OLDEST_PYTHON = (3, 11)
OLDEST_SQLITE = (3, 35, 0)


class Level(StrEnum):
    """How bad a finding is. Only `wrong` makes the doctor fail."""

    FINE = "ok"
    NOTE = "note"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor: what was looked at, what is so, and the next step (empty when all is well)."""

    level: Level
    name: str
    detail: str
    step: str = ""


def fine(name: str, detail: str) -> Finding:
    """All is well."""
    return Finding(Level.FINE, name, detail)


def note(name: str, detail: str, step: str) -> Finding:
    """Worth knowing."""
    return Finding(Level.NOTE, name, detail, step)


def wrong(name: str, detail: str, step: str) -> Finding:
    """Something does not work, or soon will not."""
    return Finding(Level.WRONG, name, detail, step)


def examine() -> Iterator[Finding]:
    """All findings, in the order in which a person would mend things."""
    config: Config = settings.ROLLCALL
    yield python()
    yield bash()
    yield home(config.home)
    yield space(config.home, shutil.disk_usage(config.home).free)
    yield from variables(os.environ)
    yield from ports(config)
    yield gateway(config, os.environ)
    if connection.vendor == "sqlite":
        yield sqlite()
    try:
        pending = migrations()
        yield pending
        if pending.level is Level.FINE:
            yield from parts(config.run)
            yield from strays(config.home)
    except DatabaseError as error:
        yield wrong("database", f"does not answer: {first_line(error)}", "Check DATABASE_URL and that its server runs.")


def python(version: tuple[int, ...] = sys.version_info[:3]) -> Finding:
    """The interpreter is new enough."""
    text = ".".join(map(str, version))
    if version < OLDEST_PYTHON:
        return wrong("python", text, "Install Python 3.11 or newer, and run `make clean install`.")
    return fine("python", text)


def bash(find: Callable[[str], str | None] = shutil.which) -> Finding:
    """`setup` and `run` need bash."""
    path = find("bash")
    if path is None:
        return wrong("bash", "not found on the PATH", "Install bash: `setup` and `run` of a service are run by it.")
    return fine("bash", path)


def home(path: Path) -> Finding:
    """The home is ours to write to, and closed to others."""
    if not os.access(path, os.W_OK | os.X_OK):
        return wrong("home", f"{path} cannot be written to", f"Run `chown -R $USER {path}`, or set ROLLCALL_HOME.")
    if path.stat().st_mode & 0o077:
        return wrong("home", f"{path} is open to others, and holds secrets", f"Run `chmod 700 {path}`.")
    return fine("home", str(path))


def space(path: Path, free: int) -> Finding:
    """There is room for logs, snapshots and the database; `free` in bytes."""
    text = f"{free / 1024**3:.1f} GiB free at {path}"
    if free < EMPTY_BYTES:
        return wrong("disk", text, "Make room now: `manage.py prune` removes old replicas, operations and their logs.")
    if free < SCARCE_BYTES:
        return note("disk", text, "Make room: `manage.py prune` removes old replicas, operations and their logs.")
    return fine("disk", text)


def variables(environ: Mapping[str, str]) -> Iterator[Finding]:
    """No variable is misspelt."""
    for name, near in unknown_variables(environ).items():
        step = f"Did you mean {near}?" if near else "Remove it; docs/operation.md lists all variables."
        yield wrong("settings", f"{name} means nothing to Rollcall", step)


def ports(config: Config) -> Iterator[Finding]:
    """Replicas get ports that the kernel does not give to others, and there are free ones."""
    first, last = config.replica_port_first, config.replica_port_last
    ephemeral = ephemeral_range()
    if ephemeral and first <= ephemeral[1] and last >= ephemeral[0]:
        yield wrong(
            "ports",
            f"{first}-{last} for replicas overlaps {ephemeral[0]}-{ephemeral[1]}, which connections get",
            f"Set ROLLCALL_REPLICA_PORT_LAST={ephemeral[0] - 1}, or narrow net.ipv4.ip_local_port_range.",
        )
    free = sum(can_bind(port) for port in range(first, min(first + 20, last + 1)))
    if not free:
        step = "Set ROLLCALL_REPLICA_PORT_FIRST and ROLLCALL_REPLICA_PORT_LAST to a range that is free."
        yield wrong("ports", f"none of the first ports from {first} is free", step)
    else:
        yield fine("ports", f"{first}-{last} for replicas")


def ephemeral_range() -> tuple[int, int] | None:
    """The ports that the kernel gives to outgoing connections; None where it does not say."""
    try:
        first, last = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    except (OSError, ValueError):
        return None
    return int(first), int(last)


def can_bind(port: int) -> bool:
    """Whether the port is free on the loopback address."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def sqlite(version: tuple[int, ...] = sqlite3.sqlite_version_info) -> Finding:
    """SQLite is new enough."""
    text = "SQLite " + ".".join(map(str, version))
    if version < OLDEST_SQLITE:
        return wrong("database", text, "Install SQLite 3.35 or newer, or set DATABASE_URL to PostgreSQL.")
    return fine("database", text)


def migrations() -> Finding:
    """The tables are those of this version. Raises DatabaseError."""
    executor = MigrationExecutor(connection)
    pending = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if pending:
        return wrong("migrations", f"{len(pending)} are pending", "Run `make up`: it applies them.")
    return fine("migrations", "all applied")


def gateway(config: Config, environ: Mapping[str, str]) -> Finding:
    """There is an HAProxy for the services' addresses, or there is to be none."""
    if not config.gateway:
        return note("gateway", OFF, "Leave ROLLCALL_GATEWAY unset to give services an address.")
    found = find(environ)
    if not found.path:
        return note("gateway", f"services have no endpoint: {found.why}", "Services run without it.")
    return fine("gateway", found.path)


def holder(run: Path) -> bool | None:
    """Whether a supervisor holds the lock of the home; None where none ever did.

    The kernel's list is read: to try the lock would keep a supervisor from it that starts at this moment.
    """
    try:
        inode = (run / LOCK).stat().st_ino
    except OSError:
        return None
    held = (line.split() for line in Path("/proc/locks").read_text().splitlines())
    return any(words[1] == "FLOCK" and words[5].rpartition(":")[2] == str(inode) for words in held)


def parts(run: Path) -> Iterator[Finding]:
    """Each part of the control plane is at work, or none is. `run` is where the lock of the home is.

    Signs of life are some seconds old at the least; that its supervisor is gone is known at once.
    """
    if holder(run) is False:
        yield note("control plane", "does not run", "Start it: `make up`.")
        return
    now = clock.now()
    ages = {name: now - at for name, at in Heartbeat.objects.filter(name__in=PARTS).values_list("name", "at")}
    late = [name for name in PARTS if ages.get(name, timedelta.max) > LATE]
    if len(late) == len(PARTS):
        yield note("control plane", "does not run", "Start it: `make up`.")
        return
    for name in PARTS:
        if name in late:
            heard = f"last heard of {ages[name].total_seconds():.0f} s ago" if name in ages else "never heard of"
            step = "It is replaced by itself within seconds; if not, logs/control-plane.log in the home says why."
            yield wrong(name, heard, step)
        else:
            yield fine(name, f"last heard of {max(ages[name].total_seconds(), 0.0):.1f} s ago")


def strays(home: Path) -> Iterator[Finding]:
    """Every replica's process belongs to a row that is live."""
    running = processes_of(home)
    known = set(Replica.objects.filter(ALIVE, uid__in=running).values_list("uid", flat=True))
    for uid in sorted(set(running) - known):
        pids = ", ".join(map(str, sorted(running[uid])))
        yield wrong("stray", f"replica {uid} has ended, but its processes {pids} run", f"End them: kill -9 {pids}")
    if known or not running:
        yield fine("replicas", f"{len(known)} with processes on this host")


def processes_of(home: Path) -> dict[str, list[int]]:
    """The pids of each replica of this home on this host, by uid."""
    found: dict[str, list[int]] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            raw = os.fsdecode(Path(f"/proc/{name}/environ").read_bytes())
        except OSError:
            continue  # it has ended, or is another's
        carried = dict(part.split("=", 1) for part in raw.split("\0") if "=" in part)
        if carried.get("ROLLCALL_HOME") == str(home) and (uid := carried.get("ROLLCALL_REPLICA_UID")):
            found.setdefault(uid, []).append(int(name))
    return found


def first_line(error: Exception) -> str:
    """The first line of an error's text."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
