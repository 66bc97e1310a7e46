"""An operation's log, which one step at a time appends to: bytes, and beside it when they were written."""

import os
import time
from pathlib import Path

from replicas.providers import shim_output
from replicas.providers.logtimes import ENTRY, times_of

APART_MS = 1000  # an entry a second at most, as the shim has them


def append_to(log: Path, sentence: str) -> None:
    """Add a line. It informs; what is done does not depend on it, nor fail for a full disk."""
    try:
        append(log, f"{sentence}\n".encode())
    except OSError:
        pass


def append(log: Path, data: bytes) -> None:
    """Add the bytes, and enter beside the log that they are written now. Raises OSError where the log takes nothing."""
    with open(log, "ab") as file:
        _note(log, file.tell())
        file.write(data)


def _note(log: Path, place: int) -> None:
    """Enter the time of what begins at `place` (see `providers.logtimes`), where the disk takes that."""
    try:
        file = os.open(times_of(log), os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError:
        return
    try:
        _enter(file, place, int(time.time() * 1000))
    except OSError:
        pass
    finally:
        os.close(file)


def _enter(file: int, place: int, now: int) -> None:
    whole = os.fstat(file).st_size // ENTRY * ENTRY
    last = os.pread(file, ENTRY, whole - ENTRY) if whole else b""
    if not last or not 0 <= now - int.from_bytes(last[6:], "big") < APART_MS:
        shim_output.enter(file, place, now)
