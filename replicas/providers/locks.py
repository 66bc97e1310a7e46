"""File locks between the processes of the control plane, with a short patience."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 0.1  # seconds: most steps are shorter, and a worker must not stand waiting
INTERVAL = 0.004


class Busy(Exception):
    """Another process holds the lock and is not about to let it go."""


@contextmanager
def held(path: Path, patience: float = PATIENCE) -> Iterator[int]:
    """Hold the lock on `path`; its descriptor. Raises Busy when another holds it for longer than `patience` seconds.

    The lock belongs to the descriptor and its copies: a child that was given one holds it on when we die. Somebody may
    remove the directory while we wait, so the lock counts only while the path still leads to it.
    """
    deadline = time.monotonic() + patience
    while True:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            continue  # removed between the two lines
        try:
            taken = _try(descriptor) and _leads_to(path, descriptor)
            if taken:
                yield descriptor
                return
            if time.monotonic() >= deadline:
                raise Busy(path)
        finally:
            os.close(descriptor)
        time.sleep(INTERVAL)


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _leads_to(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False
