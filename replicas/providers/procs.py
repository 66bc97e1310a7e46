"""Processes of this host: identity by pid and start time, signals that never reach a stranger, search by
environment."""

import os
import resource
import select
import signal
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from replicas.providers.base import ProviderError


class Proc(NamedTuple):
    """A process: its pid and its start time in clock ticks since boot. A recycled pid has another start time."""

    pid: int
    start: int


TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


class Stat(NamedTuple):
    """What /proc/PID/stat says: state letter (Z is a zombie), parent, start time in clock ticks since boot, CPU seconds
    of it and of the children that it has waited for, and bytes of memory that it has."""

    state: str
    parent: int
    start: int
    cpu_seconds: float
    memory: int


def stat(pid: int) -> Stat | None:
    """The state of a process, or None when there is none of that pid."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The command's name is in brackets and may hold blanks and brackets itself: read after the last one.
            fields = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    spent = sum(map(int, fields[11:15])) / TICKS
    return Stat(fields[0].decode(), int(fields[1]), int(fields[19]), spent, int(fields[21]) * PAGE)


def identify(pid: int) -> Proc | None:
    """The identity of a living process, or None (a zombie counts as ended)."""
    seen = stat(pid)
    return Proc(pid, seen.start) if seen and seen.state not in "ZX" else None


def alive(pid: int, start: int) -> bool:
    """True while this very process runs; a zombie or a stranger with the same pid is not it."""
    return identify(pid) == Proc(pid, start)


def send(pid: int, start: int, number: int) -> bool:
    """Signal this very process. False when it has ended (also when its pid now belongs to a stranger).

    Raises ProviderError when the system refuses (the process belongs to another user).
    """
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        # The descriptor pins whoever has the pid now; if that one has the right start time, it stays the right one.
        if not alive(pid, start):
            return False
        signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return False
    except PermissionError as error:
        raise ProviderError(
            f"Process {pid} cannot be ended ({error.strerror}): it belongs to another user. End it by hand."
        ) from error
    finally:
        os.close(descriptor)
    return True


def wait(pid: int, start: int, seconds: float) -> bool:
    """True when this very process has ended, at the latest after `seconds`."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        if not alive(pid, start):
            return True
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(seconds * 1000))
    finally:
        os.close(descriptor)


def more_files() -> None:
    """Let this process have as many open files as the host allows it: who watches or probes many replicas has one for
    each, and the usual limit is 1,024."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def everyone() -> list[int]:
    """The pids of this moment."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def carrying(values: Mapping[str, str]) -> list[Proc]:
    """Living processes whose environment holds all of `values` (as it was when they were started)."""
    wanted = [os.fsencode(f"{name}={value}") for name, value in values.items()]
    found = []
    for pid in everyone():
        process = identify(pid)
        if process is None:
            continue
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                content = file.read()
        except OSError:
            continue  # ended just now, or another user's
        if all(each in content for each in wanted) and set(wanted) <= set(content.split(b"\0")):
            found.append(process)
    return found


def descendants(root: int) -> list[Proc]:
    """Living processes below `root`, parents before children."""
    return [process for process, _ in _below(root, _children())]


def used_below(roots: Iterable[int]) -> dict[int, tuple[float, int]]:
    """CPU seconds and bytes of memory of the living processes below each of `roots`, which themselves do not count."""
    children = _children()
    found = {}
    for root in roots:
        seen = [stat for _, stat in _below(root, children)]
        found[root] = (sum(each.cpu_seconds for each in seen), sum(each.memory for each in seen))
    return found


Children = Mapping[int, Sequence[tuple[Proc, Stat]]]  # by the pid of their parent


def _children() -> Children:
    children: dict[int, list[tuple[Proc, Stat]]] = {}
    for pid in everyone():
        seen = stat(pid)
        if seen and seen.state not in "ZX":
            children.setdefault(seen.parent, []).append((Proc(pid, seen.start), seen))
    return children


def _below(root: int, children: Children) -> list[tuple[Proc, Stat]]:
    found: list[tuple[Proc, Stat]] = []
    level = list(children.get(root, ()))
    while level:
        found += level
        level = [child for process, _ in level for child in children.get(process.pid, ())]
    return found
