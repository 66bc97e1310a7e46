"""Reads a log that the shim writes: by offset since its very beginning, across rotation, and its last lines.

The current file has the log's name; a full one was renamed to NAME.<offset of its first byte>. An offset therefore
means the same byte for ever, and a reader whose place was removed goes on at the oldest byte that is left.
"""

import os
from pathlib import Path

TAIL_BYTES = 16 << 10


class Segment:
    """A piece of the log: an open file, and the offset of its first byte in the whole log."""

    def __init__(self, begin: int, descriptor: int) -> None:
        self.begin = begin
        self.descriptor = descriptor
        self.size = os.fstat(descriptor).st_size

    @property
    def end(self) -> int:
        """The offset after its last byte."""
        return self.begin + self.size


class Segments:
    """All that is left of a log, oldest first, open at one moment."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self.list: list[Segment] = []

    def __enter__(self) -> list[Segment]:
        self.list = self._open()
        return self.list

    def __exit__(self, *_: object) -> None:
        for segment in self.list:
            os.close(segment.descriptor)

    def _open(self) -> list[Segment]:
        # The current file first: when it is renamed in between, it is found again below under its new name.
        current = _open(self._log)
        opened = [
            Segment(begin, file)
            for begin in _begins(self._log)
            if (file := _open(full_path(self._log, begin))) is not None
        ]
        if current is None:
            return opened
        if opened and os.path.samestat(os.fstat(opened[-1].descriptor), os.fstat(current)):
            os.close(current)
            return opened
        return [*opened, Segment(opened[-1].end if opened else 0, current)]


def read(log: Path, offset: int, limit: int) -> tuple[bytes, int]:
    """At most `limit` bytes from `offset`, and the offset after them. Empty when there is nothing (yet). Raises
    OSError."""
    with Segments(log) as segments:
        if not segments:
            return b"", max(0, offset)
        offset = max(offset, segments[0].begin)
        pieces: list[bytes] = []
        for segment in segments:
            if limit > 0 and segment.begin <= offset < segment.end:
                piece = os.pread(segment.descriptor, min(limit, segment.end - offset), offset - segment.begin)
                pieces.append(piece)
                offset, limit = offset + len(piece), limit - len(piece)
        return b"".join(pieces), offset


def end(log: Path) -> int:
    """The offset after the last byte; 0 when there is no log."""
    with Segments(log) as segments:
        return segments[-1].end if segments else 0


def tail(log: Path, lines: int = 20, size: int = TAIL_BYTES, since: int = 0) -> tuple[str, ...]:
    """The last lines written at or after the offset `since`, of at most `size` bytes together; what is no UTF-8 is
    replaced, a line redrawn with carriage returns is given as it was last seen."""
    data, _ = read(log, max(since, end(log) - size), size)
    return tuple(_redrawn(data)[-lines:])


def _redrawn(data: bytes) -> list[str]:
    text = data.decode(errors="replace").replace("\r\n", "\n").rstrip("\n")
    return [line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n")] if text else []


def _begins(log: Path) -> list[int]:
    prefix = f"{log.name}."
    try:
        names = os.listdir(log.parent)
    except FileNotFoundError:
        return []
    ends = (name[len(prefix) :] for name in names if name.startswith(prefix))
    return sorted(int(each) for each in ends if len(each) == 20 and each.isdigit())


def full_path(log: Path, begin: int) -> Path:
    """Where the full file lies that begins at the offset `begin`."""
    return log.with_name(f"{log.name}.{begin:020d}")


def _open(path: Path) -> int | None:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
