"""When the bytes of a log were written, as the shim noted it beside the log: `FILE.times` for each of its files.

An entry is twelve bytes: an offset in that file and the wall clock in ms, six bytes each, big endian. The bytes from
there to the next entry were written at that moment or within the second that followed; what lies before the first entry
has no time. A log without such a file (of an operation, say) has none at all.
"""

import os
import stat
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from replicas.providers.logs import Segment, full_path

ENTRY = 12
MOST = 1 << 17  # entries that are told of one part of a log
MOST_BYTES = 64 << 20  # of one file that are searched: more than the shim writes

Stamp = tuple[int, int]  # offset since the log's very beginning, ms since the epoch


def times_of(log: Path) -> Path:
    """Where the times of a log file are."""
    return log.with_name(f"{log.name}.times")


def stamps(log: Path, segments: Sequence[Segment], start: int, end: int) -> list[Stamp]:
    """The entries that tell of the bytes from `start` to `end`, oldest first; at most MOST."""
    found: list[Stamp] = []
    for segment in segments:
        first, last = max(start, segment.begin), min(end, segment.end)
        if first >= last:
            continue
        with _times(log, segment) as file:
            count = os.fstat(file).st_size // ENTRY if file >= 0 else 0
            place = max(0, _above(file, count, first - segment.begin) - 1)
            wanted = min(count - place, MOST - len(found))
            data = os.pread(file, wanted * ENTRY, place * ENTRY) if wanted > 0 else b""
        for offset, at in _entries(data):
            if segment.begin + offset >= last:
                break
            found.append((segment.begin + offset, at))
    return found


def stamp_of(known: Sequence[Stamp], offset: int) -> int | None:
    """When the byte at `offset` was written, by entries that tell of it."""
    place = bisect_right(known, offset, key=lambda stamp: stamp[0])
    return known[place - 1][1] if place else None


def since(log: Path, segments: Sequence[Segment], at: int) -> int | None:
    """The offset of the first bytes that were written at `at` (ms) or later; the end where there are none. None for a
    log whose times nobody noted."""
    known = False
    for segment in segments:
        with _times(log, segment) as file:
            data = os.pread(file, min(os.fstat(file).st_size, MOST_BYTES), 0) if file >= 0 else b""
        for offset, then in _entries(data):
            known = True
            if then >= at:
                return min(segment.begin + offset, segment.end)
    return segments[-1].end if known else None


def _entries(data: bytes) -> Iterator[Stamp]:
    for place in range(0, len(data) - ENTRY + 1, ENTRY):
        yield int.from_bytes(data[place : place + 6], "big"), int.from_bytes(data[place + 6 : place + ENTRY], "big")


def _above(file: int, count: int, offset: int) -> int:
    """How many entries are of an offset of at most `offset`."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if int.from_bytes(os.pread(file, 6, middle * ENTRY), "big") > offset:
            high = middle
        else:
            low = middle + 1
    return low


@contextmanager
def _times(log: Path, segment: Segment) -> Iterator[int]:
    """The open times of the segment; -1 where there are none."""
    file = _open(log, segment)
    try:
        yield file
    finally:
        if file >= 0:
            os.close(file)


def _open(log: Path, segment: Segment) -> int:
    # The log may be renamed meanwhile, and its times are renamed before it: what was found beside a log that still has
    # its name afterwards, is its own. A replica can write here too: nothing but a plain file is read.
    for path in (log, full_path(log, segment.begin)):
        try:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            file = os.open(times_of(path), flags)
        except OSError:
            continue
        try:
            own = stat.S_ISREG(os.fstat(file).st_mode) and os.path.samestat(os.stat(path), os.fstat(segment.descriptor))
        except FileNotFoundError:
            own = False
        if own:
            return file
        os.close(file)
    return -1
