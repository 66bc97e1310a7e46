"""The home directory of one installation: made private, with its secret key. Plain Python, for the slim processes."""

import contextlib
import os
import secrets
import stat
from pathlib import Path

from replicas.config import Config

DIRECTORIES = ("db", "logs", "replicas", "versions")


class HomeError(Exception):
    """The home cannot be used. The message names the path, the cause and the next step."""


def prepare(config: Config) -> None:
    """Make the home and its directories, readable by their owner only. Safe to repeat and to race. Raises HomeError."""
    try:
        config.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in DIRECTORIES:
            (config.home / name).mkdir(mode=0o700, exist_ok=True)
        config.run.mkdir(mode=0o700, exist_ok=True)
        if config.run.parent != config.home:
            _own(config.run)
            _link(config.home / "run", config.run)
    except OSError as error:
        raise HomeError(
            f"The home {config.home} cannot be used ({error.strerror}: {error.filename}). "
            "Set ROLLCALL_HOME to a directory that you may write to."
        ) from error


def secret_key(config: Config) -> str:
    """The secret of this home: made on first use, mode 0600, the same for all who race for it."""
    path = config.home / "secret_key"
    with contextlib.suppress(FileNotFoundError):
        return path.read_text().strip()
    draft = path.with_name(f"secret_key.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(64) + "\n")
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)  # unlike a rename, a link never replaces the key that another process just made
    finally:
        draft.unlink()
    return path.read_text().strip()


def _own(path: Path) -> None:
    """Refuse a directory in a place open to all unless it is ours and closed to others. Raises HomeError."""
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise HomeError(
            f"{path}, which holds the sockets of a home with a long path, belongs to somebody else or is open to "
            "others. Remove it, or set ROLLCALL_HOME to a shorter path."
        )


def _link(link: Path, target: Path) -> None:
    with contextlib.suppress(FileExistsError):
        link.symlink_to(target)
