"""The files by which the supervisor of a home is known: the lock that it holds, and its note of who it is."""

from pathlib import Path

LOCK = "up.lock"
NOTE = "up.pid"


def noted(run: Path) -> tuple[int, int, str] | None:
    """Pid, start (ticks since boot) and address of the supervisor that was noted last in this run directory, whether it
    runs now or not; None without a note.
    """
    try:
        pid, started, url = (run / NOTE).read_text().split()
        return int(pid), int(started), url
    except (OSError, ValueError):
        return None
