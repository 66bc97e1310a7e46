"""What the shim does with its command's processes: finds, signals, reaps and kills the whole tree.

Part of the shim: nothing but the standard library, and of that only what is cheap to load (`_signal`, since `signal`
loads `enum`).
"""

import _signal
import os
import time

KILL_SECONDS = 10.0  # so long is tried to end what does not end by SIGKILL (another user's, or stuck in the kernel)
KILL_ROUND_MS = 20


class Tree:
    """The command and whatever it starts. The shim is a subreaper, and so the parent of every process that lost its
    own: having no children means that nothing of the tree is left."""

    def __init__(self, pid: int, cgroups: list[bytes]) -> None:
        self.pid = pid
        self.status: int | None = None  # as waitpid gives it, once the command itself has ended
        self.empty = False
        self.stopping = False  # told to end
        self.forced = False  # told to end, and something had to be killed
        self.killed = 0
        self.out_of_memory = False  # the kernel killed something for being above its limit
        self._cgroups = cgroups
        self._deadline: float | None = None  # monotonic seconds: whoever is there then is killed
        self._give_up: float | None = None

    def reap(self) -> None:
        """Take note of who has ended."""
        while not self.empty:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.empty = True
                return
            if pid == 0:
                break
            if pid == self.pid:
                self.status = status
        if self.status is not None and self._deadline is None:  # it ended by itself: what it left goes at once
            self._deadline = time.monotonic()

    def stop(self, grace: float) -> None:
        """SIGTERM to all (as systemd does: a shell does not pass it on). A repeat never makes the grace longer."""
        deadline = time.monotonic() + grace
        self._deadline = deadline if self._deadline is None else min(self._deadline, deadline)
        if not self.stopping:
            self.stopping = True
            for pid, start in below(os.getpid()):
                signal_safely(pid, start, _signal.SIGTERM)

    @property
    def due(self) -> bool:
        """True when the time of those who are still there is over."""
        return not self.empty and self._deadline is not None and time.monotonic() >= self._deadline

    def kill(self) -> bool:
        """SIGKILL to all, to be repeated until `empty`. False when that has been tried for long enough."""
        now = time.monotonic()
        self._give_up = self._give_up or now + KILL_SECONDS
        self.forced = self.forced or self.stopping
        children = below(os.getpid(), 1)
        self.killed += len(children)
        for folder in self._cgroups:
            try:
                write(folder + b"/cgroup.kill", b"1")
            except OSError:
                pass  # a hierarchy of version 1, which has no such file
        for pid, _ in children:  # a child's children become ours, and go in the next round
            try:
                os.kill(pid, _signal.SIGKILL)  # not a stranger: nobody but us can reap it
            except OSError:
                pass
        return now < self._give_up

    def timeout(self) -> int | None:
        """Milliseconds until something is to be done without being told, or None."""
        if self._deadline is None:
            return None
        if self._give_up is not None:
            return KILL_ROUND_MS
        return max(0, int((self._deadline - time.monotonic()) * 1000) + 1)

    def clear(self) -> None:
        """Remove the tree's cgroups, and see in them whether memory ran out."""
        for folder in self._cgroups:
            for name in (b"/memory.events", b"/memory.oom_control"):  # of version 2 and 1
                try:
                    words = read(folder + name).split()
                    self.out_of_memory |= words[words.index(b"oom_kill") + 1] != b"0"
                except (OSError, ValueError):
                    pass  # another hierarchy, or a kernel that does not count
            try:
                os.rmdir(folder)
            except OSError:
                pass  # somebody is in it still: whoever clears up after us removes it


def below(root: int, depth: int = 1000) -> list[tuple[int, int]]:
    """(pid, start time) of the living processes below `root`, down to `depth` generations."""
    children: dict[int, list[tuple[int, int]]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            state, parent, start = stat(int(name))
            if state not in "ZX":
                children.setdefault(parent, []).append((int(name), start))
    found: list[tuple[int, int]] = []
    level = children.get(root, [])
    while level and depth:
        found += level
        level, depth = [child for pid, _ in level for child in children.get(pid, ())], depth - 1
    return found


def stat(pid: int) -> tuple[str, int, int]:
    """(state, parent, start time in clock ticks) of a process; state X when there is none."""
    try:
        # The name is in brackets and may hold brackets itself: read after the last one.
        fields = read(b"/proc/%d/stat" % pid).rpartition(b")")[2].split()
    except OSError:
        return "X", 0, 0
    return fields[0].decode(), int(fields[1]), int(fields[19])


def signal_safely(pid: int, start: int, number: int) -> None:
    """Signal a process unless its pid has gone to a stranger: the descriptor pins who has it now."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if stat(pid)[2] == start:
            _signal.pidfd_send_signal(descriptor, number)
    except OSError:
        pass
    finally:
        os.close(descriptor)


def read(path: bytes) -> bytes:
    """A small file's content."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return read_all(descriptor)
    finally:
        os.close(descriptor)


def read_all(descriptor: int) -> bytes:
    """What comes from a descriptor until its end."""
    pieces = []
    while piece := os.read(descriptor, 65536):
        pieces.append(piece)
    return b"".join(pieces)


def write(path: bytes, content: bytes) -> None:
    """Make a small file."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, content)
    finally:
        os.close(descriptor)
