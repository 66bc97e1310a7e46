"""Whether a log holds what its replica wrote: every byte in its order, none twice, and gaps as long as they say."""

import re
from pathlib import Path

from replicas.providers import logs
from tests.chaos.server import LINE, line

NOTE = re.compile(rb"\n\[rollcall: (\d+) bytes of output are lost: no room on the disk\]\n")
BEGUN = re.compile(rb"\n(\[[^\n]*)?")  # what a full disk left of a note
BLOCK = 1 << 20
ALL = 1 << 40


def expected(begin: int, length: int) -> bytes:
    """What a replica wrote at this place of its output."""
    first = begin // LINE
    text = b"".join(line(number + 1) for number in range(first, (begin + length) // LINE + 1))
    return text[begin - first * LINE :][:length]


def written(log: Path) -> tuple[int, str]:
    """(bytes of output that the log tells of, what is wrong with it or ""), of all that is left of it."""
    with logs.Segments(log) as segments:
        removed = bool(segments) and segments[0].begin > 0
    data, _ = logs.read(log, 0, ALL)
    return told(data, cut=removed)


def told(data: bytes, cut: bool = False) -> tuple[int, str]:
    """As `written`, of the bytes of a log; `cut`: its beginning was removed, and the first line says where we are."""
    place = 0
    if cut:
        found = re.search(rb"(?:^|\n)(\d{10}) ", data[: 4 * LINE])
        if found is None:
            return 0, "begins with no line"
        data, place = data[found.start(1) :], (int(found[1]) - 1) * LINE
    index = 0
    while index < len(data):
        count = _same(data, index, place)
        index, place = index + count, place + count
        if index == len(data):
            break
        if index and NOTE.match(data, index - 1):  # its first byte was taken for the end of a line, which is lost too
            index, place = index - 1, place - 1
        if note := NOTE.match(data, index):
            index, place = note.end(), place + int(note[1])
        elif (begun := BEGUN.match(data, index)) and not _resumes(data, index, place):
            index = begun.end()
        else:
            return place, f"byte {index}: {data[index : index + 80]!r} where {expected(place, 40)!r} was written"
    return place, ""


def _resumes(data: bytes, index: int, place: int) -> bool:
    return data[index : index + 8] == expected(place, 8)


def _same(data: bytes, index: int, place: int) -> int:
    """How many bytes from there are as they were written."""
    done = 0
    while index + done < len(data):
        size = min(BLOCK, len(data) - index - done)
        have, want = data[index + done : index + done + size], expected(place + done, size)
        if have == want:
            done += size
            continue
        return done + _differ(have, want)
    return done


def _differ(have: bytes, want: bytes) -> int:
    """The first place where two differ, by halves."""
    low, high = 0, len(have)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if have[:middle] == want[:middle] else (low, middle)
    return low
