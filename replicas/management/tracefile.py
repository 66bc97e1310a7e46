"""Reads a load to replay: a number a line, the requests of one second; or SECONDS,RATE, the rate from then on."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from replicas.management.verb import fail

MOST_SECONDS = 14 * 86400
MOST_RATE = 1e9


def read(path: Path) -> str:
    """The text of a file. Ends the command where it cannot be read."""
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        fail(f"{path} cannot be read: {error}. Look at the path.")


def read_trace(path: Path) -> list[float]:
    """Requests of each second. Ends the command at the first line that does not fit."""
    rows = list(_rows(path))
    if not rows:
        fail(f"{path} has no numbers in it. Write the requests of one second in each line, or SECONDS,RATE.")
    width = len(rows[0][1])
    for number, row in rows:
        if len(row) != width or width > 2:
            fail(f"{path} line {number}: has {len(row)} numbers, line {rows[0][0]} has {width}. Keep to one form.")
    loads = [row[0] for _, row in rows] if width == 1 else _stretched(path, rows)
    if len(loads) > MOST_SECONDS:
        fail(f"{path} is longer than {MOST_SECONDS} seconds. Cut it.")
    return loads


def _rows(path: Path) -> Iterator[tuple[int, list[float]]]:
    """(line number, its numbers); empty lines and what follows a # do not count."""
    for number, line in enumerate(read(path).splitlines(), 1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        try:
            row = [float(part) for part in text.split(",")]
        except ValueError:
            row = [-1.0]
        if not all(0 <= value < MOST_RATE for value in row):
            fail(f"{path} line {number}: {text[:40]!r} is no number from 0 up. Write the requests of one second.")
        yield number, row


def _stretched(path: Path, rows: Sequence[tuple[int, list[float]]]) -> list[float]:
    """A rate for each second; the last row only says where it ends, and there is none before the first."""
    loads = [0.0] * min(round(rows[0][1][0]), MOST_SECONDS + 1)
    for (_, (start, rate)), (number, (end, _after)) in pairwise(rows):
        if end <= start:
            fail(f"{path} line {number}: second {end:g} comes after {start:g}. Put the lines in order of time.")
        loads += [rate] * min(round(end) - round(start), MOST_SECONDS + 1 - len(loads))
    return loads
