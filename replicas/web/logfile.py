"""Reads of a log by offset: pages of whole lines, its last lines, a search. Synchronous, for a thread that may block.

Offsets count bytes since the log's very beginning and mean the same byte for ever (see `providers.logs`).
"""

import os
import stat
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replicas.providers.logs import Segment, Segments
from replicas.providers.logtimes import Stamp

BLOCK = 64 << 10
PAGE_BYTES = 1 << 20
SEARCH_BLOCK = 1 << 20


class NoLog(Exception):
    """There is no such log (yet, or any more), or it is none that may be shown. The message is for the user."""


@contextmanager
def opened(log: Path, home: Path) -> Iterator[list[Segment]]:
    """All that is left of the log, open at one moment; never empty. Raises NoLog, also for what lies outside `home`."""
    inside(log, home)
    with Segments(log) as segments:
        if not segments:
            raise NoLog("There is no log yet.")
        root = str(home.resolve()) + os.sep
        for segment in segments:
            regular = stat.S_ISREG(os.fstat(segment.descriptor).st_mode)
            if not regular or not os.readlink(f"/proc/self/fd/{segment.descriptor}").startswith(root):
                raise NoLog("The log is no file of this installation.")
        yield segments


def inside(log: Path, home: Path) -> None:
    """Refuse what is no plain file below `home`, links followed. Raises NoLog."""
    try:
        found = log.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return
    if not stat.S_ISREG(found.st_mode) or not log.resolve().is_relative_to(home.resolve()):
        raise NoLog("The log is no file of this installation.")


def read(segments: Sequence[Segment], start: int, end: int) -> bytes:
    """The bytes from `start` to `end`, as far as they are there."""
    pieces = []
    for segment in segments:
        first, last = max(start, segment.begin), min(end, segment.end)
        while first < last:
            piece = os.pread(segment.descriptor, last - first, first - segment.begin)
            if not piece:
                break
            pieces.append(piece)
            first += len(piece)
    return b"".join(pieces)


def whole(data: bytes) -> int:
    """How many bytes of `data` do not belong to a UTF-8 character that its end cuts."""
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 != 0x80:
            size = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
            return len(data) - back if size > back else len(data)
    return len(data)


def text_row(start: int, data: bytes, times: Sequence[Stamp] = ()) -> dict[str, Any]:
    """`{start, end, text[, times]}` of bytes from `start` on; what is no UTF-8 is replaced.

    Where that changes the count of bytes, `breaks` has the true length of each line, so that offsets stay exact.
    `times` are `[offset, ms]`: bytes from that offset on were read then (see `providers.logtimes`).
    """
    text = data.decode(errors="replace")
    row: dict[str, Any] = {"start": start, "end": start + len(data), "text": text}
    if times:
        row["times"] = times
    if "\ufffd" in text:
        row["breaks"] = [len(line) + 1 for line in data.split(b"\n")]
    return row


def back(segments: Sequence[Segment], before: int, lines: int, most: int = PAGE_BYTES, floor: int = 0) -> int:
    """Where the last `lines` lines before `before` begin, at most `most` bytes back and not before `floor`. A line may
    end at `before`."""
    floor = max(segments[0].begin, before - most, floor)
    position, wanted = before, lines
    while position > floor:
        first = max(floor, position - BLOCK)
        block = read(segments, first, position)
        if position == before and block.endswith(b"\n"):
            wanted += 1
        place = len(block)
        while (place := block.rfind(b"\n", 0, place)) >= 0:
            wanted -= 1
            if wanted <= 0:
                return first + place + 1
        position = first
    return floor


def before(segments: Sequence[Segment], offset: int, lines: int, floor: int = 0) -> tuple[int, bytes]:
    """The last `lines` lines that end at `offset`, none from before `floor`; and where they begin."""
    offset = min(offset, segments[-1].end)
    start = min(back(segments, offset, lines, floor=floor), offset)
    return start, read(segments, start, offset)


def after(segments: Sequence[Segment], offset: int, lines: int, ceiling: int | None = None) -> tuple[int, bytes]:
    """The first `lines` lines from `offset` on (of at most PAGE_BYTES) up to `ceiling`, and where they begin."""
    start = max(offset, segments[0].begin)
    most = start + PAGE_BYTES
    data = read(segments, start, most if ceiling is None else min(most, max(start, ceiling)))
    place = -1
    for _ in range(lines):
        place = data.find(b"\n", place + 1)
        if place < 0:
            return start, data[: whole(data)] if len(data) == PAGE_BYTES else data
    return start, data[: place + 1]


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found. `matches`: offset of the line and of the match in it, the newest `limit` ones, oldest first.

    `count` is of all matches. `complete`: everything was searched; else nothing after `until` was.
    """

    count: int
    matches: list[tuple[int, int]]
    complete: bool
    until: int


def search(
    segments: Sequence[Segment], text: str, limit: int, seconds: float, floor: int = 0, ceiling: int | None = None
) -> Found:
    """Look for `text` in all that is left between `floor` and `ceiling`, for at most `seconds`. ASCII letters match in
    either case."""
    needle = text.encode(errors="replace").lower()
    deadline = time.monotonic() + seconds
    position, end = max(segments[0].begin, floor), segments[-1].end
    end = end if ceiling is None else min(end, ceiling)
    count, places = 0, deque[int](maxlen=limit)
    while position + len(needle) <= end and time.monotonic() < deadline:
        block = read(segments, position, min(position + SEARCH_BLOCK, end)).lower()
        behind = 0
        while (place := block.find(needle, behind)) >= 0:
            count += 1
            places.append(position + place)
            behind = place + len(needle)
        # A match may lie across the end of the block: its first bytes are looked at again.
        position += max(behind, len(block) - len(needle) + 1, 1)
    complete = position + len(needle) > end
    return Found(count, [(line_start(segments, place), place) for place in places], complete, min(position, end))


def line_start(segments: Sequence[Segment], offset: int) -> int:
    """Where the line that holds the byte at `offset` begins."""
    return back(segments, offset, 1, most=BLOCK) if read(segments, offset - 1, offset) != b"\n" else offset


def line_end(segments: Sequence[Segment], offset: int) -> int:
    """Where the line that holds the byte before `offset` ends; `offset` itself between two lines."""
    if offset <= segments[0].begin or read(segments, offset - 1, offset) == b"\n":
        return offset
    rest = read(segments, offset, offset + BLOCK)
    return offset + (rest.find(b"\n") + 1 or len(rest))
