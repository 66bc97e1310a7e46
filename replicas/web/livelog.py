"""One log that somebody looks at: what a poll of its file sees, and the newest chunks, kept to be shared by viewers."""

import asyncio
import json
import os
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from replicas.providers.logs import Segment
from replicas.providers.logtimes import Stamp, stamps
from replicas.web import logfile
from replicas.web.logrows import Key, Place

QUIET_SECONDS = 1.0  # half a character at the end of an ended log is given as it is after this
READ_BYTES = 256 << 10
KEEP_BYTES = 1 << 20


class Chunk(NamedTuple):
    """Bytes from `start` to `end` as the message that carries them."""

    start: int
    end: int
    message: str


class Stood(NamedTuple):
    """What a poll saw. The current file's `identity` and first byte `base`; the log goes from `start` to `end`.

    `head` is behind what was read; `chunk` is what this poll read. `replaced`: offsets mean something else now.
    """

    identity: tuple[int, int] | None = None
    base: int = 0
    start: int = 0
    end: int = 0
    head: int = 0
    chunk: Chunk | None = None
    replaced: bool = False


NOTHING = Stood()


def chunk_of(start: int, data: bytes, times: Sequence[Stamp]) -> Chunk:
    """A chunk with its message."""
    row = {"type": "chunk"} | logfile.text_row(start, data, times)
    return Chunk(start, start + len(data), json.dumps(row, separators=(",", ":")))


def poll(path: str, last: Stood, home: Path, flush: bool) -> Stood:
    """Look at the log at `path` ("": nowhere yet) again, after `last`. Reads what is new, to the last whole character;
    with `flush` also what is left of one. Raises OSError.
    """
    if not path:
        return NOTHING
    log = Path(path)
    try:
        found = log.lstat()
    except (FileNotFoundError, NotADirectoryError):
        pass  # gone, or just now renamed: its segments tell
    else:
        same = (found.st_dev, found.st_ino) == last.identity and found.st_size == last.end - last.base
        if same and not (flush and last.head < last.end):
            return last._replace(chunk=None, replaced=False)
    try:
        with logfile.opened(log, home) as segments:
            return _read(log, segments, last, flush)
    except logfile.NoLog:
        return NOTHING._replace(replaced=last.identity is not None)


def _read(log: Path, segments: list[Segment], last: Stood, flush: bool) -> Stood:
    identities = [_identity(segment) for segment in segments]
    base, start, end = segments[-1].begin, segments[0].begin, segments[-1].end
    # The file of the last poll is still there, or was removed by rotation; else another log took its place.
    follows = last.identity in identities or start >= last.end > 0
    first_look = last.identity is None or not follows or end < last.head
    if first_look:  # what is there already, each viewer reads for itself
        edge = logfile.read(segments, end - 3, end)
        head = end - (len(edge) - logfile.whole(edge))
        return Stood(identities[-1], base, start, end, head, None, last.identity is not None)
    head = max(last.head, end - READ_BYTES)
    data = logfile.read(segments, head, end)
    if head != last.head:  # too much at once: begin at a character
        cut = next((place for place, byte in enumerate(data[:4]) if byte & 0xC0 != 0x80), 0)
        head, data = head + cut, data[cut:]
    size = len(data) if flush else logfile.whole(data)
    chunk = chunk_of(head, data[:size], stamps(log, segments, head, head + size)) if size else None
    return Stood(identities[-1], base, start, end, head + size, chunk)


def _identity(segment: Segment) -> tuple[int, int]:
    found = os.fstat(segment.descriptor)
    return found.st_dev, found.st_ino


class LiveLog:
    """A log and who waits for more of it. `generation` changes when offsets no longer mean what they meant."""

    def __init__(self, key: Key) -> None:
        self.key = key
        self.viewers = 0
        self.known = False  # rows and file were looked at
        self.stale = True  # its rows may say something new
        self.rows_read = 0.0
        self.place: Place | None = None
        self.stood = NOTHING
        self.generation = 0
        self._chunks: deque[Chunk] = deque()
        self._kept = 0
        self._grew = 0.0
        self._news = asyncio.Event()

    @property
    def exists(self) -> bool:
        """True when there is a file."""
        return self.stood.identity is not None

    @property
    def ended(self) -> bool:
        """True when its writer has ended."""
        return self.place is None or self.place.ended

    @property
    def over(self) -> bool:
        """True when its writer has ended and everything was read."""
        return self.ended and self.stood.head == self.stood.end

    @property
    def quiet(self) -> bool:
        """True when its writer has ended and nothing came for a while."""
        return self.ended and time.monotonic() - self._grew > QUIET_SECONDS

    def apply(self, place: Place | None, stood: Stood) -> None:
        """Take in what rows and file say, and wake the viewers where that is something new."""
        news = not self.known or place != self.place or stood != self.stood
        moved = self.exists and (place is None or self.place is None or place.path != self.place.path)
        if stood.replaced or moved:
            self.generation += 1
            self._clear()
        if stood.end != self.stood.end:
            self._grew = time.monotonic()
        if stood.chunk is not None:
            self._keep(stood.chunk)
        self.place, self.stood, self.known = place, stood._replace(chunk=None, replaced=False), True
        if news:
            self.wake()

    def chunk_at(self, offset: int) -> Chunk | None:
        """The kept chunk that begins at `offset`."""
        return next((chunk for chunk in reversed(self._chunks) if chunk.start == offset), None)

    def edge_after(self, offset: int) -> int:
        """The nearest place behind `offset` where a reader can join the others."""
        if self._chunks and offset < self._chunks[0].start:
            return self._chunks[0].start
        return next((chunk.end for chunk in self._chunks if chunk.end > offset), self.stood.head)

    def wake(self) -> None:
        """Let all viewers look again."""
        self._news.set()
        self._news.clear()

    async def wait(self) -> None:
        """Wait for the next `wake`."""
        await self._news.wait()

    def _keep(self, chunk: Chunk) -> None:
        if self._chunks and self._chunks[-1].end != chunk.start:
            self._clear()
        self._chunks.append(chunk)
        self._kept += chunk.end - chunk.start
        while self._kept > KEEP_BYTES and len(self._chunks) > 1:
            gone = self._chunks.popleft()
            self._kept -= gone.end - gone.start

    def _clear(self) -> None:
        self._chunks.clear()
        self._kept = 0
