"""What must be true when nobody acts: each check looks from outside and gives sentences about what is wrong."""

import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from controlplane import processes
from replicas.gateway import runtime
from replicas.providers import logs
from tests.chaos import logcheck
from tests.chaos.cast import CAST, Part
from tests.chaos.chains import Chains, differences
from tests.chaos.operator import Wish
from tests.chaos.sampling import shims
from tests.chaos.world import World, patiently
from tests.support.capacity import Capacity
from tests.support.rows import LIVE, Row

AT_WORK = ("STARTING", "READY", "NOT_READY", "DRAINING")
PIPE_SECONDS = 5.0  # what is written is in the log after so long
MAINTENANCE = 0b11  # bits of HAProxy's administrative state


# --- processes ----------------------------------------------------------------------------------------------------


def strangers(world: World) -> list[str]:
    """Processes without a live row, live rows without a process, two shims of one, a process outside the supervisor."""
    before = live_rows(world)
    running, watched = world.plane.replicas(), Counter(shims(str(world.plane.home)).values())
    after = live_rows(world)
    wrong = [
        f"replica {uid} has processes {pids} and no live row" for uid, pids in running.items() if uid not in before
    ]
    for uid, row in after.items():
        if row["state"] in AT_WORK and uid not in running and before.get(uid, row)["state"] == row["state"]:
            wrong.append(f"{row['name']} {row['number']} is {row['state']} and has no process")
        if row["state"] in AT_WORK and row["pid"] and uid in running and row["pid"] not in running[uid]:
            wrong.append(f"{row['name']} {row['number']} has processes {running[uid]}, the row says {row['pid']}")
    wrong += [f"replica {uid} has {count} shims" for uid, count in watched.items() if count > 1]
    return wrong + untied(world)


def live_rows(world: World) -> dict[str, Row]:
    """The live rows of local replicas, by uid."""
    found = world.rows.query(
        "SELECT r.uid, r.number, r.state, r.pid, s.name FROM replicas_replica r JOIN replicas_service s"
        f" ON s.id = r.service_id WHERE r.provider = 'local' AND r.state IN ({', '.join('?' * len(LIVE))})",
        *LIVE,
    )
    return {row["uid"]: row for row in found}


def untied(world: World) -> list[str]:
    """Processes of the control plane that are not below its supervisor."""
    assert world.plane.process
    return [
        f"process {pid} of the control plane is not below the supervisor"
        for pid in world.plane.control_plane()
        if world.plane.process.pid not in above(pid)
    ]


def above(pid: int) -> Iterator[int]:
    """The process, its parent, and so on; the supervisor itself for one that has just ended."""
    while pid > 1:
        yield pid
        stat = processes.stat(pid)
        pid = int(stat[1]) if stat else 0


# --- what was wished ----------------------------------------------------------------------------------------------


def unfulfilled(world: World, part: Part, wish: Wish) -> list[str]:
    """Why a service is not what was wished of it."""
    row, live = world.rows.service(part.name), world.rows.replicas(part.name, *LIVE)
    if wish.up is False:
        calm = row["desired"] == "DOWN" and row["status"] == "DOWN" and not live
        return [] if calm else [f"{part.name} is to be down: {shown(row, live)}"]
    if row["desired"] != "UP" or wish.target not in (None, row["target"]):
        return [f"{part.name} is to have {wish.target} replicas: {shown(row, live)}"]
    if part.hopeless and row["target"]:
        given_up = row["status"] == "FAILED" and "Launches have stopped" in row["reason"] and not live
        return [] if given_up else [f"{part.name} is to be given up: {shown(row, live)}"]
    return [f"{part.name}: {shown(row, live)}"] if not served(world, part, row, live) else []


def served(world: World, part: Part, row: Row, live: list[Row]) -> bool:
    """Whether all are ready, of the version that is wanted, and nothing is moved any more. Of a restless one, which
    dies too fast for that, one has to be ready."""
    states = [each["state"] for each in live]
    if part.restless:
        return "READY" in states or not row["target"]
    if states != ["READY"] * row["target"]:
        return False
    (rollout,) = world.rows.query(
        "SELECT state, reason FROM replicas_rollout WHERE service_id = ? ORDER BY id DESC LIMIT 1", row["id"]
    )
    counted = (row["ready"], row["live"]) == (row["target"], row["target"])
    if row["target"] == 0:
        return counted
    if rollout["state"] == "FAILED":
        return counted and bool(rollout["reason"])
    own = {each["version_number"] for each in live} == {row["active"]}
    return counted and own and rollout["state"] != "PROGRESSING"


def shown(row: Row, live: list[Row]) -> str:
    """A service in a line."""
    states = ", ".join(f"{each['number']} {each['state']} v{each['version_number']}" for each in live)
    return (
        f"{row['desired']} {row['status']} target {row['target']} version {row['active']} ready {row['ready']}"
        f" live {row['live']}: {row['reason']} [{states}]"
    )


# --- traffic ------------------------------------------------------------------------------------------------------


def misled(world: World) -> list[str]:
    """Services whose members in HAProxy are not the ready replicas that are listed."""
    wrong = []
    for part in CAST:
        if not part.local:
            continue
        wanted = {f"r{row['number']}" for row in Capacity(world.rows, part.name, 0).listed()}
        have = members(world, world.rows.service(part.name)["id"])
        if have != wanted:
            wrong.append(f"{part.name}: HAProxy gives traffic to {sorted(have)}, ready and listed are {sorted(wanted)}")
    return wrong


def members(world: World, service_id: int) -> set[str]:
    """The servers of a service that are in traffic, by HAProxy's own words; none where it does not know the service."""
    try:
        said = runtime.ask(world.plane.run / "haproxy.sock", f"show servers state b{service_id}", seconds=5)
    except runtime.Unreachable as error:
        return {f"({error})"}
    rows = [line.split() for line in said.splitlines() if line[:1].isdigit() and len(line.split()) > 20]
    return {row[3] for row in rows if not int(row[6]) & MAINTENANCE}


# --- logs ---------------------------------------------------------------------------------------------------------


class Logs:
    """Checks the logs of replicas; one that has ended is read once."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.bytes = 0
        self.checked: set[str] = set()

    def broken(self) -> list[str]:
        """Logs that are not what was written."""
        wrong = []
        for part in CAST:
            for row in self.world.rows.replicas(part.name) if part.local and not part.hopeless else ():
                if row["log"] and row["uid"] not in self.checked:
                    wrong += [f"log of {part.name} {row['number']}: {text}" for text in self._read(row)]
        return wrong

    def _read(self, row: Row) -> list[str]:
        said = spoken(row) if row["state"] in ("READY", "NOT_READY") else 0
        if not said and not Path(row["log"]).exists():
            return []
        patiently(lambda: [""] if logs.end(Path(row["log"])) < said * logcheck.LINE else [], PIPE_SECONDS, 0.02)
        length, wrong = logcheck.written(Path(row["log"]))
        self.bytes += length
        if row["ended_at"]:
            self.checked.add(row["uid"])
        if not wrong and length < said * logcheck.LINE and spoken(row):
            wrong = f"has {length} bytes, {said} lines of {logcheck.LINE} bytes were written before"
        return [wrong] if wrong else []


def spoken(row: Row) -> int:
    """How many lines the replica says that it has written; 0 when it does not answer."""
    try:
        with urllib.request.urlopen(f"{row['url']}/lines", timeout=5) as answer:
            return int(answer.read())
    except (OSError, ValueError):
        return 0


# --- history ------------------------------------------------------------------------------------------------------


class History:
    """The events since the last look: their chains, and whether the websocket told the same."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.chains = Chains()
        self._told = 0  # of the reader's events, so many are compared

    def news(self) -> list[str]:
        """What is wrong with the new ones."""
        reader = self.world.reader
        if reader.resets:
            return [f"the feed told to begin anew: {reader.resets}"]
        stored = self.world.rows.events(self.chains.cursor)
        last = stored[-1]["id"] if stored else self.chains.cursor
        read = [event for event in list(reader.events)[self._told :] if event["id"] <= last]
        self._told += len(read)
        return self.chains.follow(stored) + differences(stored, read)

    def behind(self) -> list[str]:
        """How far the websocket is behind."""
        (newest,) = self.world.rows.query("SELECT MAX(id) AS id FROM replicas_event")
        reader = self.world.reader
        if reader.cursor >= newest["id"] or reader.resets:
            return []
        return [f"the websocket has told up to {reader.cursor} of {newest['id']}"]


def damaged(world: World) -> list[str]:
    """What SQLite itself finds wrong with the database."""
    (said,) = world.rows.query("PRAGMA quick_check")
    wrong = [] if said["quick_check"] == "ok" else [f"the database: {said['quick_check']}"]
    dangling = world.rows.query("PRAGMA foreign_key_check")
    return wrong + [f"a row refers to one that is not there: {row}" for row in dangling]


def stirring(world: World, since: int) -> list[str]:
    """Events of services that should rest, after that one."""
    restless = {part.name for part in CAST if part.restless}
    news = [event for event in world.rows.events(since) if event["service_name"] not in restless]
    return [
        f"event {event['id']}: {event['service_name']} {event['kind']} {event['trigger']} {event['reason'][:80]}"
        for event in news
    ]
