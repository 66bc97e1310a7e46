"""The supervisor: starts the children, shows their output, replaces the dead and the wedged, stops them all.

One thread, plain Python, no Django: it must stay small and must not fail. `python -m controlplane.supervisor` is what
`manage.py up` becomes when everything is prepared.
"""

import argparse
import contextlib
import fcntl
import os
import selectors
import signal
import socket
import time
from dataclasses import dataclass, field
from pathlib import Path

from controlplane import occupancy, processes
from controlplane.children import LISTENER, Child, table
from controlplane.output import Lines, LogFile, Output, Terminal
from controlplane.ties import adopt_orphans
from controlplane.vigil import Patience, Pulse

TICK_SECONDS = 0.25
READ_BYTES = 64 * 1024
LAST_READS = 64  # bounded, for the case that a stranger got hold of the pipe and goes on writing


@dataclass(slots=True)
class Run:
    """One run of a child: the process, which leads a session of its own, and the pipe with its output."""

    pid: int
    pipe: int
    began: float
    pulse: Pulse
    lines: Lines = field(default_factory=Lines)
    fault: str = ""
    asked: float | None = None  # to stop, and when


@dataclass(slots=True)
class Place:
    """A child's place in the control plane: its present run, or when the next one is due."""

    child: Child
    patience: Patience
    run: Run | None = None
    due: float = 0.0


class Supervisor:
    """Keeps every child of the table running until told to stop."""

    def __init__(self, children: tuple[Child, ...], *, listener: int, run: Path, home: Path, output: Output, url: str):
        self.places = {child.name: Place(child, Patience(child.delays, child.settled)) for child in children}
        self.listener = listener
        self.run_dir = run
        self.home = home
        self.output = output
        self.url = url
        self.began = self.ticked = time.monotonic()
        self.announced = False
        self.stopping_since: float | None = None
        self.signals: list[int] = []
        self.selector = selectors.DefaultSelector()

    def run(self) -> int:
        """Run until a signal has stopped everything; the exit code."""
        adopt_orphans()
        self._listen_to_signals()
        while True:
            self._tick()
            if self.stopping_since is not None and not any(place.run for place in self.places.values()):
                break
            for key, _ in self.selector.select(0.05 if self.output.terminal.pending else TICK_SECONDS):
                key.data()
            self._obey()
            self._reap()
        return self._farewell()

    # --- starting -------------------------------------------------------------------------------------------------

    def _start(self, place: Place) -> None:
        """Begin a run of the child."""
        child = place.child
        reader, writer = os.pipe()
        actions: list[tuple[int, ...] | tuple[int, int, str, int, int]] = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, writer, 1),
            (os.POSIX_SPAWN_DUP2, writer, 2),
        ]
        if child.listens:
            actions.append((os.POSIX_SPAWN_DUP2, self.listener, LISTENER))
        program = [child.arguments[0], "-m", "controlplane.child", str(os.getpid()), *child.arguments]
        try:
            pid = os.posix_spawn(
                program[0],
                program,
                os.environ | {"PYTHONUNBUFFERED": "1"} | child.environment,
                file_actions=actions,
                setsid=True,
                setsigmask=[],
                setsigdef=[signal.SIGPIPE, signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGCHLD],
            )
        except OSError as error:  # too many processes, or the program is being replaced by an upgrade
            os.close(reader)
            place.due = time.monotonic() + (delay := place.patience.delay(0.0) or 1.0)
            self._say(f"{child.name} cannot be started ({error.strerror}); tried again in {delay:g} s")
            return
        finally:
            os.close(writer)
        os.set_blocking(reader, False)
        place.run = Run(pid, reader, time.monotonic(), Pulse(beat=self._beat(child)))
        self.selector.register(reader, selectors.EVENT_READ, lambda: self._read(place, reader))

    def _read(self, place: Place, pipe: int) -> None:
        """Show what the child has said."""
        run = place.run
        if run is None or run.pipe != pipe:
            return
        try:
            data = os.read(pipe, READ_BYTES)
        except BlockingIOError:
            return
        if data:
            for line in run.lines.feed(data):
                self.output.say(place.child.name, line)
        else:
            self.selector.unregister(pipe)

    # --- watching -------------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        """Start what is due, and look for children that are silent."""
        now = time.monotonic()
        seconds, self.ticked = now - self.ticked, now
        self.output.terminal.flush()
        if self.stopping_since is not None:
            self._ask_to_stop(now)
            self._kill_late(now)
            return
        for place in self.places.values():
            if place.run is None:
                if now >= place.due:
                    self._start(place)
            elif place.child.beat:
                place.run.pulse.observe(self._beat(place.child), seconds, self._beat_is_due(place.child))
                if place.run.pulse.wedged:
                    self._kill(place, f"no sign of life for {place.run.pulse.silence:.0f} s")
        if any(place.run and place.run.pulse.late for place in self.places.values()):
            self._end_stopped()
        self._announce()

    def _end_stopped(self) -> None:
        """Kill each child of which a process is stopped: it may hold what the others wait for (SQLite's write lock),
        be they children that are themselves replaced in vain."""
        stopped = processes.stopped()
        for place in self.places.values():
            held = [pid for pid, session in stopped.items() if place.run and session == place.run.pid]
            if held:
                self._kill(place, f"was held up: a signal had stopped process {held[0]} of it, and was ended")

    def _beat_is_due(self, child: Child) -> bool:
        if not child.after:
            return True
        other = self.places[child.after].run
        return other is not None and other.pulse.fresh

    def _beat(self, child: Child) -> int:
        """When the child was last heard of, as a number that changes with each beat."""
        if not child.beat:
            return 0
        try:
            return os.stat(self.run_dir / child.beat).st_mtime_ns
        except OSError:
            return 0

    def _announce(self) -> None:
        """Say once that every part is at work."""
        if self.announced:
            return
        if all(place.run and (place.run.pulse.heard or not place.child.beat) for place in self.places.values()):
            self.announced = True
            self._say(f"ready after {time.monotonic() - self.began:.1f} s: {self.url}")

    def _reap(self) -> None:
        """Bury every process that ended: ours, and the orphans that came to us."""
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if ended is None:
                return
            for place in self.places.values():
                if place.run is not None and place.run.pid == ended.si_pid:
                    self._bury(place, place.run, ended)
            os.waitpid(ended.si_pid, 0)

    def _bury(self, place: Place, run: Run, ended: os.waitid_result) -> None:
        """A child ended: end what is left of its session, show its last words, and fix when it comes back."""
        left = processes.kill_session(run.pid)
        with contextlib.suppress(KeyError):
            self.selector.unregister(run.pipe)
            for _ in range(LAST_READS):
                if not self._has_more(place, run):
                    break
        for line in run.lines.close():
            self.output.say(place.child.name, line)
        os.close(run.pipe)
        place.run = None
        if self.stopping_since is not None:
            return
        lived = time.monotonic() - run.began
        delay = place.patience.delay(lived)
        place.due = time.monotonic() + delay
        why = run.fault or _ending(ended)
        rest = f", {left} of its processes killed" if left else ""
        when = f"in {delay:g} s" if delay else "now"
        self._say(f"{place.child.name} (process {run.pid}) {why} after {lived:.0f} s{rest}; it is started again {when}")

    def _has_more(self, place: Place, run: Run) -> bool:
        """Read on; False when there is nothing more to read for now."""
        try:
            data = os.read(run.pipe, READ_BYTES)
        except BlockingIOError:
            return False
        for line in run.lines.feed(data):
            self.output.say(place.child.name, line)
        return bool(data)

    # --- stopping -------------------------------------------------------------------------------------------------

    def _listen_to_signals(self) -> None:
        """Turn signals into entries of `signals`, and have each wake the loop."""
        near, far = socket.socketpair()
        near.setblocking(False)
        far.setblocking(False)
        self.selector.register(near, selectors.EVENT_READ, lambda: near.recv(1024))
        self._wake = (near, far)
        signal.set_wakeup_fd(far.fileno(), warn_on_full_buffer=False)
        wanted = [signal.SIGINT, signal.SIGTERM, signal.SIGCHLD]
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # under nohup it stays ignored
            wanted.append(signal.SIGHUP)
        for number in wanted:
            signal.signal(number, lambda number, _frame: self.signals.append(number))

    def _obey(self) -> None:
        """Begin to stop on the first signal that asks for it; kill on the second."""
        while self.signals:
            number = self.signals.pop(0)
            if number == signal.SIGCHLD:
                continue
            if self.stopping_since is None:
                self._begin_to_stop()
            elif number != signal.SIGHUP:
                self._say("told to stop twice: killing what is left")
                for place in self.places.values():
                    self._kill(place, "was not given time to stop")

    def _begin_to_stop(self) -> None:
        """Say so, and ask everybody whose turn it is."""
        self._say("stopping; once more kills at once")
        self.stopping_since = time.monotonic()
        self._ask_to_stop(self.stopping_since)

    def _ask_to_stop(self, now: float) -> None:
        """Ask each child's leader to stop, the last ones when the others have ended. A signal to a pool's whole group
        would hang it."""
        others = any(place.run is not None and not place.child.last for place in self.places.values())
        for place in self.places.values():
            if place.run is None or place.run.asked is not None or (place.child.last and others):
                continue
            place.run.asked = now
            with contextlib.suppress(ProcessLookupError):
                os.kill(place.run.pid, signal.SIGTERM)

    def _kill_late(self, now: float) -> None:
        """Kill each child that was asked to stop and has had its time."""
        for place in self.places.values():
            if place.run and place.run.asked is not None and now - place.run.asked > place.child.grace:
                self._kill(place, "did not stop in time")

    def _kill(self, place: Place, fault: str) -> None:
        """Kill the child and all of its session. It is buried when its end is seen."""
        if place.run is not None:
            place.run.fault = fault
            processes.kill_session(place.run.pid)

    def _farewell(self) -> int:
        """Say what goes on running, and how to end that too."""
        left = len(processes.running_replicas(self.home))
        if left:
            some = "1 replica goes" if left == 1 else f"{left} replicas go"
            self._say(f"stopped. {some} on running; the next start adopts them, `make down` takes them away")
        else:
            self._say("stopped. No replica is running")
        self.output.terminal.flush()
        return 0

    def _say(self, line: str) -> None:
        self.output.say("rollcall", line)


def _ending(ended: os.waitid_result) -> str:
    """How a process ended, in words."""
    if ended.si_code == os.CLD_EXITED:
        return f"exited with code {ended.si_status}"
    try:
        return f"was ended by {signal.Signals(ended.si_status).name}"
    except ValueError:
        return f"was ended by signal {ended.si_status}"


def ensure_standard_descriptors() -> None:
    """Open /dev/null where standard input, output or error are closed, so that no file of ours takes their number."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one


def main() -> int:
    """Take over from `manage.py up`: the arguments carry the descriptors of the lock and of the listening socket."""
    parser = argparse.ArgumentParser(prog="controlplane.supervisor", description=__doc__)
    for name in ("home", "run", "logs"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name in ("lock", "listener"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--url", required=True)
    options = parser.parse_args()
    ensure_standard_descriptors()
    os.set_inheritable(options.lock, False)
    # A high number of its own, so that it never is one of the numbers that a child's descriptors are moved to.
    listener = fcntl.fcntl(options.listener, fcntl.F_DUPFD_CLOEXEC, 20)
    os.close(options.listener)
    base = Path(__file__).resolve().parent.parent
    os.chdir(base)
    children = table(base)
    names = [child.name for child in children]
    output = Output(Terminal(), LogFile(options.logs / "control-plane.log"), names)
    supervisor = Supervisor(
        children, listener=listener, run=options.run, home=options.home, output=output, url=options.url
    )
    try:
        return supervisor.run()
    finally:
        occupancy.forget(options.run)


if __name__ == "__main__":
    raise SystemExit(main())
