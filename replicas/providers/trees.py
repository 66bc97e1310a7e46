"""Directory trees on disk: copied whole or not at all, measured, digested, removed."""

import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from replicas.providers.base import ProviderError

COPY_PIECE = 1 << 30
LONGEST_TOLD = 200  # characters of a path in a sentence
Skip = Callable[[str, bool], bool]  # (path relative to the root, is a directory) -> leave it out


class TooLarge(Exception):
    """The tree is larger than the limit. `size` is what was counted so far, in bytes."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


def nothing_skipped(path: str, directory: bool) -> bool:
    """Leaves nothing out."""
    return False


def files(root: Path, skip: Skip = nothing_skipped) -> Iterator[tuple[str, os.stat_result]]:
    """(path relative to `root`, lstat) of all below it, directories before their content, in the order of names.

    Sockets, pipes and devices are left out. Raises OSError.
    """
    pending = [""]
    while pending:
        folder = pending.pop()
        with os.scandir(root / folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
        for entry in found:
            path = f"{folder}/{entry.name}" if folder else entry.name
            facts = entry.stat(follow_symlinks=False)
            directory = stat.S_ISDIR(facts.st_mode)
            if skip(path, directory) or not (directory or stat.S_ISREG(facts.st_mode) or stat.S_ISLNK(facts.st_mode)):
                continue
            yield path, facts
            if directory:
                pending.append(path)


def copy(source: Path, target: Path, skip: Skip = nothing_skipped, limit: int | None = None) -> int:
    """Copy what is below `source` into the directory `target` (made if missing). Bytes copied; modes and times are
    kept, symbolic links stay links. Raises OSError, and TooLarge when it would become more than `limit` bytes."""
    size = 0
    target.mkdir(parents=True, exist_ok=True)
    folders = []
    for path, facts in files(source, skip):
        if stat.S_ISDIR(facts.st_mode):
            (target / path).mkdir(exist_ok=True)
            folders.append((path, facts))
        elif stat.S_ISLNK(facts.st_mode):
            os.symlink(os.readlink(source / path), target / path)
        else:
            size += copy_file(source / path, target / path, facts, limit and limit - size)
    for path, facts in reversed(folders):  # last, as a directory may be read-only
        os.chmod(target / path, stat.S_IMODE(facts.st_mode) | stat.S_IWUSR)
        os.utime(target / path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    return size


def copy_file(source: Path, target: Path, facts: os.stat_result, limit: int | None = None) -> int:
    """Copy one regular file, sharing its blocks where the file system can. Bytes copied: more than `facts` say, when
    it grows. Raises OSError, which names the file, and TooLarge when it would become more than `limit` bytes."""
    if limit is not None and facts.st_size > limit:
        raise TooLarge(facts.st_size)
    try:
        return _copy_file(source, target, facts, limit)
    except OSError as error:
        if error.filename is None:
            error.filename = str(source)
        raise


def _copy_file(source: Path, target: Path, facts: os.stat_result, limit: int | None) -> int:
    # Not blocking: a file may have become a pipe since it was looked at.
    reading = os.open(source, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(reading).st_mode):
            raise OSError(errno.EINVAL, "Neither a regular file nor a directory", str(source))
        writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            size = _copy_content(reading, writing, limit)
            os.fchmod(writing, stat.S_IMODE(facts.st_mode))
            os.utime(writing, ns=(facts.st_atime_ns, facts.st_mtime_ns))
            return size
        finally:
            os.close(writing)
    finally:
        os.close(reading)


def _copy_content(reading: int, writing: int, limit: int | None) -> int:
    size = 0
    send: Callable[[int, int, int], int] = os.copy_file_range
    while True:
        piece = COPY_PIECE if limit is None else min(COPY_PIECE, limit + 1 - size)
        try:
            copied = send(reading, writing, piece)
        except OSError as error:
            if error.errno not in (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP) or send is _sendfile:
                raise
            send = _sendfile
            continue
        size += copied
        if limit is not None and size > limit:
            raise TooLarge(size)
        if not copied:
            return size


def _sendfile(reading: int, writing: int, count: int) -> int:
    return os.sendfile(writing, reading, None, count)


def digest(root: Path) -> str:
    """SHA-256 (hex) of names, kinds, execute bits, link targets and contents. Raises OSError."""
    total = hashlib.sha256()
    for path, facts in sorted(files(root)):
        executable = "x" if facts.st_mode & stat.S_IXUSR else "-"
        total.update(os.fsencode(f"{path}\0{stat.S_IFMT(facts.st_mode)}{executable}\0"))
        if stat.S_ISLNK(facts.st_mode):
            total.update(os.fsencode(os.readlink(root / path)))
        elif stat.S_ISREG(facts.st_mode):
            with open(root / path, "rb") as file:
                total.update(hashlib.file_digest(file, "sha256").digest())
    return total.hexdigest()


def remove(path: Path) -> None:
    """Remove a file or a tree, also one with directories that were made read-only; nothing there is success.

    Raises ProviderError when something stays.
    """
    if path.is_symlink() or path.is_file():
        path.unlink(missing_ok=True)
        return
    shutil.rmtree(path, ignore_errors=True)
    if path.exists():
        for folder, _, _ in os.walk(path):
            with suppress(OSError):
                os.chmod(folder, 0o700)
        shutil.rmtree(path, ignore_errors=True)
    if path.exists():
        raise ProviderError(f"{path} cannot be removed: see who owns what is in it, and remove it by hand.")


def explain(error: OSError, doing: str) -> ProviderError:
    """The failure of copying as what the user can do about it."""
    place = error.filename or error.filename2 or ""
    place = shortened(os.fsdecode(place) if isinstance(place, bytes) else str(place))
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return ProviderError(f"The disk is full, {doing}: free some space.")
    if error.errno in (errno.EACCES, errno.EPERM):
        return ProviderError(f"{place} cannot be read, {doing}: change its permissions.", retryable=False)
    if error.errno == errno.ENOENT:
        return ProviderError(f"{place} does not exist (any more), {doing}.", retryable=False)
    retryable = error.errno not in (errno.EINVAL, errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR, errno.EISDIR)
    return ProviderError(f"{error.strerror or error}: {place}, {doing}.", retryable=retryable)


def shortened(path: str) -> str:
    """The path, or its begin where it is longer than a sentence should be."""
    return path if len(path) <= LONGEST_TOLD else f"{path[:LONGEST_TOLD]}…"
