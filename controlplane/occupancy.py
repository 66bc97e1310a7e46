"""One control plane per home: the lock that says so, and the note of who holds it."""

import contextlib
import errno
import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

from controlplane import processes
from replicas.supervision import LOCK, NOTE, noted


class Occupied(Exception):
    """Another control plane runs on this home. The message says which, and what to do."""


@dataclass(frozen=True, slots=True)
class Occupant:
    """The control plane that runs on a home: its supervisor's pid and start (ticks since boot), and its address."""

    pid: int
    started: int
    url: str

    @property
    def running(self) -> bool:
        """Whether that very process still runs."""
        return processes.is_running(self.pid, self.started)


def occupy(home: Path, run: Path) -> int:
    """Take the lock of the home (in its run directory). The descriptor holds it until closed. Raises Occupied."""
    descriptor = os.open(run / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise
        holder = occupant(run)
        who = f"process {holder.pid}, {holder.url}" if holder else "it is just starting"
        raise Occupied(
            f"A control plane already runs on the home {home} ({who}). "
            "Stop it with `manage.py stop`, or set ROLLCALL_HOME to another directory."
        ) from None
    return descriptor


def note(run: Path, url: str) -> None:
    """Write down that this process is the one, for `occupant`. Only the holder of the lock may."""
    draft = run / f"{NOTE}.{os.getpid()}"
    draft.write_text(f"{os.getpid()}\n{processes.start_ticks(os.getpid())}\n{url}\n")
    os.replace(draft, run / NOTE)


def occupant(run: Path) -> Occupant | None:
    """Who was noted last, if it still runs."""
    told = noted(run)
    found = Occupant(*told) if told else None
    return found if found and found.running else None


def forget(run: Path) -> None:
    """Remove the note of this process."""
    holder = occupant(run)
    if holder is not None and holder.pid == os.getpid():
        with contextlib.suppress(FileNotFoundError):
            (run / NOTE).unlink()
