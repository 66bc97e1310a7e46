"""Takes the line that HAProxy streams for each request: into a file for each service, and into figures."""

import contextlib
import os
import socket
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from replicas.core.latency import counted

READ_BYTES = 256 * 1024
MOST_READ = 8 * 1024 * 1024  # in one go: the rest waits in HAProxy's ring
LOG_BYTES = 16 * 1024 * 1024
KEPT = 2
NOBODY = "<NOSRV>"  # in the place of a server, as HAProxy writes it
SERVER_FAULTS = {"S", "s"}  # the server's side closed, or its time was over


@dataclass(slots=True)
class Tally:
    """What the lines since the last sample said of one service. `times`: by milliseconds from request to last byte,
    of the requests that a replica had or that waited for one.

    `replicas` and `failures`: requests by replica, and those of them that it failed: it took no connection, ended it
    too early or was silent for too long.
    """

    codes: list[int] = field(default_factory=lambda: [0] * 5)
    times: Counter[int] = field(default_factory=Counter)
    replicas: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)

    @property
    def count(self) -> int:
        """How many requests have ended."""
        return sum(self.codes)

    def add(self, status: int, milliseconds: int, replica: str, ended: str = "--") -> None:
        """One request that has ended; `ended` is HAProxy's termination state (8.5 of its manual)."""
        self.codes[min(max(status // 100, 1), 5) - 1] += 1
        if replica != NOBODY or ended[1:2] == "Q":  # else we refused it at once, which says nothing of its latency
            self.times[milliseconds] += 1
        self.replicas[replica] += 1
        if ended[:1] in SERVER_FAULTS:
            self.failures[replica] += 1

    def percentile(self, share: float) -> float | None:
        """The time under which this share of the requests were; None without any."""
        count = self.times.total()
        rank = min(int(share * count), count - 1)
        before = 0
        for milliseconds in sorted(self.times):
            before += self.times[milliseconds]
            if before > rank:
                return float(milliseconds)
        return None

    @property
    def buckets(self) -> dict[str, int]:
        """How many took how long, so that it can be added to that of other seconds: see `core.latency`."""
        return counted(self.times)


class Reader:
    """Listens on `path`; files are `directory/NAME.log`. `name_of`: a service's name by its id, None if unknown."""

    def __init__(self, path: Path, directory: Path, name_of: Callable[[int], str | None]) -> None:
        self.directory = directory
        self.name_of = name_of
        self.tallies: dict[int, Tally] = {}
        self.links: dict[socket.socket, bytes] = {}
        self.path = path
        path.unlink(missing_ok=True)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.setblocking(False)
        self.listener.bind(str(path))
        self.listener.listen(8)

    def close(self) -> None:
        """Stop listening; HAProxy keeps lines in its ring until somebody listens again."""
        for link in (self.listener, *self.links):
            link.close()

    def drain(self) -> bool:
        """Take all that has come. True when there is more than one reading takes."""
        with contextlib.suppress(BlockingIOError):
            while True:
                link, _ = self.listener.accept()
                link.setblocking(False)
                self.links[link] = b""
        lines: dict[int, list[bytes]] = {}
        more = False
        for link in list(self.links):
            more |= self._read(link, lines)
        for service, found in lines.items():
            name = self.name_of(service)
            if name is not None:
                append(self.directory / f"{name}.log", b"\n".join(found) + b"\n")
        return more

    def take(self) -> dict[int, Tally]:
        """The figures since this was asked last, by the service's id."""
        taken, self.tallies = self.tallies, {}
        return taken

    def _read(self, link: socket.socket, lines: dict[int, list[bytes]]) -> bool:
        """Take what one worker has sent."""
        parts, length = [self.links[link]], 0
        over = False
        while length < MOST_READ and not over:
            try:
                part = link.recv(READ_BYTES)
            except BlockingIOError:
                break
            except OSError:
                part = b""
            over = not part
            parts.append(part)
            length += len(part)
        *whole, rest = b"".join(parts).split(b"\n")
        for line in whole:
            self._line(line, lines)
        if over:
            del self.links[link]
            link.close()
        else:
            self.links[link] = rest
        return length >= MOST_READ

    def _line(self, line: bytes, lines: dict[int, list[bytes]]) -> None:
        """`SERVICE STATUS MILLISECONDS SERVER STATE {JSON}`; whatever else HAProxy says is not about a request."""
        words = line.split(b" ", 5)
        if len(words) < 6 or not words[5].startswith(b"{"):
            return
        try:
            service, status, milliseconds = int(words[0]), int(words[1]), int(words[2])
        except ValueError:
            return
        tally = self.tallies.setdefault(service, Tally())
        replica, ended = (word.decode("utf-8", "replace") for word in words[3:5])
        tally.add(max(status, 0), max(milliseconds, 0), replica.removeprefix("r"), ended)
        lines.setdefault(service, []).append(words[5])


def append(path: Path, data: bytes) -> None:
    """Add to a log that is put aside when it is full. On a full disk the lines are lost, and the gateway goes on."""
    with contextlib.suppress(OSError):
        with open(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab", buffering=0) as file:
            file.write(data)
            size = os.fstat(file.fileno()).st_size
        if size > LOG_BYTES:
            for number in range(KEPT, 1, -1):
                with contextlib.suppress(FileNotFoundError):
                    os.replace(f"{path}.{number - 1}", f"{path}.{number}")
            os.replace(path, f"{path}.1")
