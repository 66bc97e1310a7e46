"""What /proc says of processes: identity, sessions, and which replica a process belongs to."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

ZOMBIES = ("Z", "X", "x")


def stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat after the name, of a process that still runs: state, parent, group, session, ..."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    found = text[text.rindex(")") + 2 :].split()
    return None if found[0] in ZOMBIES else found


def start_ticks(pid: int) -> int | None:
    """When the process began, in clock ticks since boot; None if it does not run. With the pid it is an identity."""
    found = stat(pid)
    return int(found[19]) if found else None


def is_running(pid: int, started: int) -> bool:
    """Whether the very process that was noted as (pid, started) still runs."""
    return start_ticks(pid) == started


def pids() -> Iterator[int]:
    """Every process on this host that we may see."""
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def session_members(session: int) -> list[int]:
    """The running processes of a session."""
    return [pid for pid in pids() if (found := stat(pid)) and int(found[3]) == session]


def stopped() -> dict[int, int]:
    """The processes that a signal has stopped (Ctrl-Z, SIGSTOP): the session of each, by pid."""
    return {pid: int(found[3]) for pid in pids() if (found := stat(pid)) and found[0] == "T"}


def kill_session(session: int, seconds: float = 2.0) -> int:
    """SIGKILL every process of the session, again and again until none is left; how many were killed.

    The caller must not have reaped the session's leader yet: until then its number cannot pass to a stranger.
    """
    killed: set[int] = set()
    deadline = time.monotonic() + seconds
    while (members := session_members(session)) and time.monotonic() < deadline:
        for pid in members:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            killed.add(pid)
        time.sleep(0.005)  # the kernel takes a moment; what was forked meanwhile is found in the next round
    return len(killed)


def environment(pid: int) -> dict[str, str]:
    """The environment that the process began with; empty if it is gone or another's."""
    try:
        raw = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return {}
    pairs = (part.partition("=") for part in os.fsdecode(raw).split("\0"))
    return {name: value for name, _, value in pairs if name}


def running_replicas(home: Path) -> set[str]:
    """The uid of each replica of this home that has a process."""
    found = set()
    for pid in pids():
        carried = environment(pid)
        uid = carried.get("ROLLCALL_REPLICA_UID")
        if uid and carried.get("ROLLCALL_HOME") == str(home) and stat(pid):
            found.add(uid)
    return found
