"""What the database says, read past everything that is tested."""

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

Row = dict[str, Any]
LIVE = ("PENDING", "PROVISIONING", "STARTING", "READY", "NOT_READY", "DRAINING", "SHUTTING_DOWN")
JSON_COLUMNS = ("handle", "last_lines", "data", "checkpoint", "watch")


class Rows:
    """Read-only queries; each is one consistent read."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.path = home / "db" / "rollcall.sqlite3"

    def query(self, text: str, *values: Any) -> list[Row]:
        """The rows as dictionaries."""
        with closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, timeout=20)) as connection:
            connection.row_factory = sqlite3.Row
            found = [dict(row) for row in connection.execute(text, values)]
        for row in found:
            for name in JSON_COLUMNS:
                if isinstance(row.get(name), str):
                    row[name] = json.loads(row[name])
        return found

    def service(self, name: str) -> Row:
        """The service, with the number of its active version."""
        (row,) = self.query(
            "SELECT s.*, v.number AS active FROM replicas_service s"
            " LEFT JOIN replicas_serviceversion v ON v.id = s.version_id WHERE s.name = ?",
            name,
        )
        return row

    def replicas(self, service: str, *states: str) -> list[Row]:
        """Its replicas by number, only those in `states` if some are given."""
        found = self.query(
            "SELECT r.* FROM replicas_replica r JOIN replicas_service s ON s.id = r.service_id"
            " WHERE s.name = ? ORDER BY r.number",
            service,
        )
        return [row for row in found if not states or row["state"] in states]

    def replica(self, service: str, number: int) -> Row:
        """One replica."""
        (row,) = [row for row in self.replicas(service) if row["number"] == number]
        return row

    def operations(self, service: str | None = None, kind: str | None = None) -> list[Row]:
        """Operations by id."""
        return [
            row
            for row in self.query(
                "SELECT o.*, s.name AS service, r.number AS number, r.uid AS uid FROM replicas_operation o"
                " JOIN replicas_service s ON s.id = o.service_id JOIN replicas_replica r ON r.id = o.replica_id"
                " ORDER BY o.id"
            )
            if (service is None or row["service"] == service) and (kind is None or row["kind"] == kind)
        ]

    def operation(self, number: int) -> Row:
        """One operation."""
        (row,) = [row for row in self.operations() if row["id"] == number]
        return row

    def events(self, after: int = 0) -> list[Row]:
        """Events in the order in which they happened."""
        return self.query("SELECT * FROM replicas_event WHERE id > ? ORDER BY id", after)


def broken_chains(events: Iterable[Row]) -> list[str]:
    """What is wrong with the chains of events: revisions 1, 2, 3, ..., each beginning where the one before it ended."""
    found = []
    ordered = sorted(events, key=lambda event: (event["kind"], event["object_id"], event["id"]))
    for (kind, number), chain in groupby(ordered, key=lambda event: (event["kind"], event["object_id"])):
        links = list(chain)
        revisions = [link["revision"] for link in links]
        if revisions != list(range(1, len(links) + 1)):
            found.append(f"{kind} {number}: revisions {revisions}")
        for before, after in pairwise(links):
            if after["old"] != before["new"] and after["trigger"] != "forgotten":
                found.append(
                    f"{kind} {number}: event {before['id']} ({before['trigger']}) ends in {before['new']!r}, "
                    f"event {after['id']} ({after['trigger']}) begins in {after['old']!r}"
                )
    return found
