"""Files of a tree in which others write, rename and remove meanwhile: what goes away under the reader is no error."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


def contents(root: Path) -> Iterator[tuple[Path, bytes]]:
    """Each regular file under a directory with what is in it."""
    for path in paths(root):
        with contextlib.suppress(FileNotFoundError):
            if path.is_file():
                yield path, path.read_bytes()


def size(root: Path) -> int:
    """Bytes of the regular files under a directory."""
    total = 0
    for path in paths(root):
        with contextlib.suppress(FileNotFoundError):
            total += path.stat().st_size if path.is_file() else 0
    return total


def paths(root: Path) -> Iterator[Path]:
    """Everything but directories under a directory (`os.walk` passes over a directory that has gone)."""
    for directory, _, names in os.walk(root):
        yield from (Path(directory, name) for name in names)
