"""Who gets traffic, asked from outside every 50 ms: what is listed by the rows, and whether it answers."""

import socket
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

from tests.support.looking import Looking
from tests.support.rows import Row, Rows

SECONDS = 0.05
LISTED = """
SELECT r.number, r.url, r.version_number AS version, o.mode, o.switched_at, o.to_version, o.held,
  v.process_digest AS process, t.process_digest AS own
FROM replicas_replica r
JOIN replicas_service s ON s.id = r.service_id
JOIN replicas_serviceversion v ON v.id = r.version_id
JOIN replicas_rollout o ON o.id = (SELECT MAX(id) FROM replicas_rollout WHERE service_id = s.id)
JOIN replicas_serviceversion t ON t.service_id = s.id AND t.number = o.to_version
WHERE s.name = ? AND r.state = 'READY'
"""


@dataclass(frozen=True, slots=True)
class Dip:
    """Fewer than wanted got traffic at a moment."""

    at: float
    wanted: int
    listed: tuple[int, ...]
    silent: tuple[int, ...]


class Capacity(Looking):
    """Samples a service until told to stop; keeps each sample that is below its floor."""

    def __init__(self, rows: Rows, service: str, floor: int) -> None:
        super().__init__("capacity", SECONDS)
        self.rows = rows
        self.service = service
        self.floor = floor
        self.samples = 0
        self.least = 10**6
        self.dips: list[Dip] = []

    def look(self) -> None:
        """One sample: of the listed ones those count that answer. Who has left meanwhile is no longer asked for."""
        listed = self.listed()
        silent = [row for row in listed if not answers(row["url"])]
        if silent:
            still = {row["number"] for row in self.listed()}
            silent = [row for row in silent if row["number"] in still]
        self.samples += 1
        serving = len(listed) - len(silent)
        self.least = min(self.least, serving)
        if serving < self.floor:
            numbers = tuple(row["number"] for row in listed), tuple(row["number"] for row in silent)
            self.dips.append(Dip(time.monotonic(), self.floor, *numbers))

    def listed(self) -> list[Row]:
        """The READY replicas that get traffic by the latest rollout, told without the product's own rule."""
        return [row for row in self.rows.query(LISTED, self.service) if is_listed(row)]


def is_listed(row: Row) -> bool:
    """By mode: rolling lists all but those held back; blue-green one set or the other."""
    held = str(row["version"]) in row["held"].strip("[]").replace(" ", "").split(",")
    if row["mode"] != "blue_green":
        return not held
    if row["switched_at"]:
        return bool(row["process"] == row["own"])
    return not held and row["version"] != row["to_version"]


def answers(url: str) -> bool:
    """True when a request gets an answer."""
    where = urlsplit(url)
    try:
        with socket.create_connection((where.hostname or "", where.port or 0), timeout=5) as connection:
            connection.settimeout(5)
            connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
            return connection.recv(64).startswith(b"HTTP/1.1 200")
    except OSError:
        return False
