"""Small files in directories that a replica can write into: read without believing what stands there."""

import json
import os
import stat
from pathlib import Path
from typing import Any

MOST_BYTES = 1 << 20


def read_bytes(path: Path) -> bytes | None:
    """The content, up to MOST_BYTES; None where there is no file: nothing, a directory, a pipe that nobody fills."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(MOST_BYTES)
    finally:
        os.close(descriptor)


def read_object(path: Path) -> dict[str, Any] | None:
    """The JSON object in the file; None where there is none, or something else: then somebody else wrote there."""
    content = read_bytes(path)
    if content is None:
        return None
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
