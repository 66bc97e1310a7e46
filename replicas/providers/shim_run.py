"""The life of a shim: take the order, start the command, follow it to its end, leave a record. See shim.py.

Part of the shim: nothing but the standard library, and of that only what is cheap to load (`_signal`, since `signal`
loads `enum`; no `typing`, `json` or `subprocess`).
"""

import _signal
import ctypes
import fcntl
import os
import resource
import select
import time

from replicas.providers.shim_output import Log, Masker
from replicas.providers.shim_tree import Tree, read, read_all, stat, write

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
CHUNK = 65536
RECORD_BYTES = 1024


class Order:
    """The fields that came on standard input."""

    def __init__(self, content: bytes) -> None:
        fields = [field.partition(b"=") for field in content.split(b"\0")[:-1]]
        if not fields or fields[-1][0] != b"end":
            raise ValueError("the order is cut off: whoever sent it has died")
        self._fields = fields

    def all(self, name: bytes) -> list[bytes]:
        """The values of a field that may be repeated."""
        return [value for key, _, value in self._fields if key == name]

    def one(self, name: bytes) -> bytes:
        """The value of a field, empty when it is not there."""
        return (self.all(name) or [b""])[-1]


class Shim:
    """One command under supervision: `start`, then `follow` until nothing of it is left, then `finish`."""

    def __init__(self, control: bytes, order: Order) -> None:
        self._control, self._order = control, order
        self._masker = Masker(order.all(b"secret"))
        numbers = [int(order.one(name)) for name in (b"segment_bytes", b"segments", b"line_bytes")]
        self._log = Log(order.one(b"log"), *numbers)
        self._tree: Tree
        self._output = self._wakes = -1

    def start(self) -> None:
        """Take the lock, start the command, say so. Raises OSError: another shim is here, or the disk is full."""
        lock = os.open(self._control + b"/lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # held for life: never closed
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        keep_from_command()
        self._take_signals()
        write(self._control + b"/exit.new", b" " * RECORD_BYTES)  # a disk that fills up must not cost us the record
        line = self._start_command(self._make_groups())
        if release := self._order.one(b"release"):
            os.close(int(release))
        try:
            os.write(1, line)
        except BrokenPipeError:
            pass  # the launcher has died: whoever takes the launch over finds us by the lock
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        os.dup2(nothing, 0)
        os.dup2(nothing, 1)

    def _start_command(self, groups: list[bytes]) -> bytes:
        """Fork the command, write down who it is, let it begin. Returns what was written."""
        go, ready = os.pipe2(os.O_CLOEXEC)
        became, becoming = os.pipe2(os.O_CLOEXEC)
        self._output, pipe = os.pipe2(os.O_CLOEXEC)
        me = os.getpid()
        pid = os.fork()
        if pid == 0:
            become_command(self._order, groups, me, go, pipe)
        self._tree = Tree(pid, groups)
        line = b"%d %d %d %d\n" % (me, stat(me)[2], pid, stat(pid)[2])
        write(self._control + b"/shim.new", line)
        os.rename(self._control + b"/shim.new", self._control + b"/shim")
        os.close(becoming)
        os.write(ready, b"1")
        os.read(became, 1)  # its end: the command has taken our child's place, with its own environment
        for descriptor in (became, go, ready, pipe):
            os.close(descriptor)
        os.set_blocking(self._output, False)
        return line

    def _make_groups(self) -> list[bytes]:
        """Make the cgroups and set their limits. What this host refuses is told in the log, and done without."""
        made = []
        for folder in self._order.all(b"cgroup"):
            try:
                os.makedirs(folder, exist_ok=True)
                made.append(folder)
            except OSError as error:
                self._log.write(f"[rollcall: no cgroup: {error}]\n".encode())
        for limit in self._order.all(b"limit"):
            path, _, value = limit.partition(b"=")
            try:
                write(path, value)
            except OSError as error:
                self._log.write(f"[rollcall: a limit is not set: {error}]\n".encode())
        return made

    def _take_signals(self) -> None:
        self._wakes, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        _signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for number in (_signal.SIGTERM, _signal.SIGCHLD):
            _signal.signal(number, lambda *_: None)
        for number in (_signal.SIGINT, _signal.SIGHUP):
            _signal.signal(number, _signal.SIG_IGN)

    def follow(self) -> bool:
        """Pass on output and end the tree when told to, until nothing of it is left. False: something cannot be
        ended."""
        poll = select.poll()
        poll.register(self._output, select.POLLIN)
        poll.register(self._wakes, select.POLLIN)
        while not self._tree.empty:
            ready = {descriptor for descriptor, _ in poll.poll(self._tree.timeout())}
            if self._wakes in ready and _signal.SIGTERM in os.read(self._wakes, CHUNK):
                self._tree.stop(self._grace())
            if self._output in ready and self._pump() == 0:
                poll.unregister(self._output)
            self._tree.reap()
            if self._tree.due and not self._tree.kill():
                return False
        return True

    def _pump(self) -> int:
        """Pass on a piece of output. Its size; 0 at the end, -1 when there is none now."""
        try:
            chunk = os.read(self._output, CHUNK)
        except BlockingIOError:
            return -1
        self._log.write(self._masker.feed(chunk))
        return len(chunk)

    def _grace(self) -> float:
        try:
            return max(0.0, float(read(self._control + b"/stop")))
        except (OSError, ValueError):
            return float(self._order.one(b"grace"))

    def finish(self, complete: bool) -> None:
        """Write the rest of the output and the exit record. Only with the record there is the command over."""
        while self._pump() > 0:
            pass
        self._log.write(self._masker.close())
        self._tree.clear()
        descriptor = os.open(self._control + b"/exit.new", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.write(descriptor, record(self._tree, self._log.lost, complete).ljust(RECORD_BYTES))
        os.rename(self._control + b"/exit.new", self._control + b"/exit")


def keep_from_command() -> None:
    """What the launcher gave us to hold open is not for the command."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and os.path.exists(f"/proc/self/fd/{name}"):
            os.set_inheritable(int(name), False)


def become_command(order: Order, groups: list[bytes], parent: int, go: int, output: int) -> None:
    """In the child: wait for the word, then become the command."""
    try:
        prctl(PR_SET_PDEATHSIG, _signal.SIGKILL)
        os.setsid()  # its `kill 0` must not reach the shim
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        if os.read(go, 1) != b"1" or os.getppid() != parent:
            os._exit(126)
        join(groups)
        for number in _signal.valid_signals() - {_signal.SIGKILL, _signal.SIGSTOP}:
            _signal.signal(number, _signal.SIG_DFL)  # Python ignores SIGPIPE, and what is ignored stays so
        os.umask(0o022)
        os.chdir(order.one(b"cwd"))
        command = order.all(b"arg")
        pairs = [each.partition(b"=") for each in order.all(b"env")]
        os.execve(command[0], command, {name: value for name, _, value in pairs})  # noqa: S606
    except BaseException as error:  # noqa: BLE001  (a forked child must never go on as a second shim)
        os.write(2, f"rollcall: the command cannot start: {error}\n".encode())
    os._exit(127)


def join(groups: list[bytes]) -> None:
    """Enter the cgroups, with a word in the log about what this host refuses."""
    for folder in groups:
        try:
            write(folder + b"/cgroup.procs", b"0")
        except OSError as error:
            os.write(2, f"[rollcall: no cgroup: {error}]\n".encode())


def prctl(option: int, value: int) -> None:
    """The system call, for what Python has no name for."""
    if ctypes.CDLL(None, use_errno=True).prctl(option, ctypes.c_ulong(value), 0, 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl {option} failed")


def record(tree: Tree, lost: int, complete: bool) -> bytes:
    """The exit record. `code` is 128 + n for signal n, and never 0 when the end had to be forced. `killed` counts what
    was killed, `lost_bytes` the output that found no room, `peak_kib` is that of the largest process."""
    code = 137 if tree.status is None else os.waitstatus_to_exitcode(tree.status)
    if code == 0 and tree.forced:
        code = 137
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = usage.ru_utime + usage.ru_stime
    return (
        f'{{"code": {code if code >= 0 else 128 - code}, "signal": {max(0, -code)}, "stopped": {flag(tree.stopping)}, '
        f'"forced": {flag(tree.forced)}, "killed": {tree.killed}, "complete": {flag(complete)}, "lost_bytes": {lost}, '
        f'"out_of_memory": {flag(tree.out_of_memory)}, '
        f'"peak_kib": {usage.ru_maxrss}, "cpu_seconds": {cpu:.3f}, "ended": {time.time():.3f}}}'
    ).encode()


def flag(value: bool) -> str:
    """A truth value in JSON."""
    return "true" if value else "false"


def main(control: bytes) -> None:
    """Read the order, leave the launcher, supervise the command to its end."""
    order = Order(read_all(0))
    if os.fork():
        os._exit(0)  # the launcher need not reap us
    shim = Shim(control, order)
    shim.start()
    shim.finish(shim.follow())
    os._exit(0)
