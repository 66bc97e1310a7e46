"""An operation's log, which one step at a time appends to: sentences, and beside it when they were written."""

import os
import time
from pathlib import Path

from replicas.providers.logtimes import ENTRY
from replicas.providers.shim_output import FREE_BYTES

APART_MS = 1000  # an entry a second at most, as the shim has them


def append_to(log: Path, sentence: str) -> None:
    """Add a line. It informs; what is done does not depend on it, nor fail for a full disk."""
    note(log)
    try:
        with open(log, "a", encoding="utf-8") as file:
            file.write(f"{sentence}\n")
    except OSError:
        pass


def note(log: Path) -> None:
    """Enter that what is appended from here on is written now (see `providers.logtimes`), where the disk takes that."""
    try:
        file = os.open(times_of(log), os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError:
        return
    try:
        _enter(file, _size(log), int(time.time() * 1000))
    except OSError:
        pass
    finally:
        os.close(file)


def times_of(log: Path) -> Path:
    """Where the times of a log are."""
    return log.with_name(f"{log.name}.times")


def _enter(file: int, place: int, now: int) -> None:
    size = os.fstat(file).st_size
    if size % ENTRY:
        size -= size % ENTRY
        os.ftruncate(file, size)
    last = os.pread(file, ENTRY, size - ENTRY) if size else b""
    if last and 0 <= now - int.from_bytes(last[6:], "big") < APART_MS:
        return
    if size <= FREE_BYTES + place // 4:
        os.write(file, place.to_bytes(6, "big") + now.to_bytes(6, "big"))


def _size(log: Path) -> int:
    try:
        return log.stat().st_size
    except FileNotFoundError:
        return 0
