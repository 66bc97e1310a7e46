"""Somebody who kills, stops, fills and locks whatever runs, and lets go of all of it in the end."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from controlplane import processes
from replicas.providers.base import ProviderError
from replicas.providers.fake import FakeProvider
from tests.chaos.cast import CAST
from tests.chaos.plan import Act
from tests.chaos.world import World
from tests.support.rows import Row

STARTS = 5
LOCK = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
"""
Deed = Callable[[Act], str]


@dataclass(order=True)
class Undo:
    """Something that is to be let go of at a moment (monotonic)."""

    at: float
    undo: Callable[[], None] = field(compare=False)


class Enemy:
    """`do` carries out an act and says what was done, "" if there was nothing to do it to. `rest` lets go of all."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.fake = FakeProvider(world.plane.home)
        self.held: list[Undo] = []
        self.locked = False  # the database is, by us
        self.down = False  # the supervisor was killed and has not come up again
        deeds: dict[str, tuple[int, Deed]] = {
            "kill_part": (3, self.kill_part), "stop_part": (1, self.stop_part), "pause_part": (2, self.pause_part),
            "kill_crew": (3, self.kill_crew), "kill_busy": (3, self.kill_busy), "stop_crew": (1, self.stop_crew),
            "pause_busy": (2, self.pause_busy), "kill_haproxy": (1, self.kill_haproxy),
            "kill_supervisor": (1, self.kill_supervisor), "kill_shim": (2, self.kill_shim),
            "pause_shim": (1, self.pause_shim), "kill_replica": (4, self.kill_replica),
            "pause_replica": (2, self.pause_replica), "end_fake": (3, self.end_fake),
            "preempt_fake": (2, self.preempt_fake), "lock_database": (2, self.lock_database),
            "fill_disk": (2, self.fill_disk), "lock_logs": (1, self.lock_logs), "jump_clock": (1, self.jump_clock),
            "drop_socket": (2, self.drop_socket),
        }  # fmt: skip
        self.deeds = deeds

    @property
    def weights(self) -> dict[str, int]:
        """The acts that it knows, also those that this machine does not allow: the seed decides, not the machine."""
        return {name: weight for name, (weight, _) in self.deeds.items()}

    def do(self, act: Act) -> str:
        """Carry out an act."""
        if act.name in self.world.skipped:
            return ""
        if self.down:
            self._up()
        return self.deeds[act.name][1](act)

    def let_go(self, now: float) -> None:
        """Undo what is over by now."""
        due = [held for held in self.held if held.at <= now]
        self.held = [held for held in self.held if held.at > now]
        for each in due:
            each.undo()

    def rest(self) -> None:
        """Undo everything. Raises RuntimeError when the control plane does not come up."""
        self.let_go(float("inf"))
        for _ in range(STARTS):
            if not self.down:
                return
            self._up()
        if self.down:
            raise RuntimeError(f"the control plane does not come up again:\n{self.world.plane.tail()}")

    # --- the control plane ----------------------------------------------------------------------------------------

    def kill_part(self, act: Act) -> str:
        name = act.chosen(sorted(found := self.world.plane.children()))
        return self._kill(found[name], name) if name else ""

    def stop_part(self, act: Act) -> str:
        """For good: it has to be replaced."""
        name = act.chosen(sorted(found := self.world.plane.children()))
        return self._stop(found[name], name, None) if name else ""

    def pause_part(self, act: Act) -> str:
        assert self.world.plane.process
        found = {**self.world.plane.children(), "supervisor": self.world.plane.process.pid}
        name = act.chosen(sorted(found))
        return self._stop(found[name], name, act.between(0.1, 6)) if name else ""

    def kill_crew(self, act: Act) -> str:
        return self._kill(act.chosen(self.world.crew()), "one of a pool")

    def stop_crew(self, act: Act) -> str:
        return self._stop(act.chosen(self.world.crew()), "one of a pool", None)

    def kill_busy(self, act: Act) -> str:
        return self._kill(act.chosen(self.world.busy()), "a worker at work")

    def pause_busy(self, act: Act) -> str:
        return self._stop(act.chosen(self.world.busy()), "a worker at work", act.between(0.1, 12))

    def kill_haproxy(self, act: Act) -> str:
        return self._kill(act.chosen(self.world.haproxy()), "a worker of HAProxy")

    def kill_supervisor(self, act: Act) -> str:
        self.world.plane.kill()
        self.down = True
        self._up()
        return f"SIGKILL supervisor; up again: {'no' if self.down else 'yes'}"

    # --- replicas -------------------------------------------------------------------------------------------------

    def kill_shim(self, act: Act) -> str:
        row = self._running(act)
        return self._kill(row["handle"]["shim_pid"], f"shim of {row['name']}") if row else ""

    def pause_shim(self, act: Act) -> str:
        row = self._running(act)
        return self._stop(row["handle"]["shim_pid"], f"shim of {row['name']}", act.between(0.1, 8)) if row else ""

    def kill_replica(self, act: Act) -> str:
        row = self._running(act)
        return self._kill(row["pid"], f"replica {row['name']}") if row else ""

    def pause_replica(self, act: Act) -> str:
        row = self._running(act)
        return self._stop(row["pid"], f"replica {row['name']}", act.between(0.1, 10)) if row else ""

    def end_fake(self, act: Act) -> str:
        return self._end_fake(act, "ends", lambda uid: self.fake.end(uid, 9))

    def preempt_fake(self, act: Act) -> str:
        return self._end_fake(act, "is preempted", self.fake.preempt)

    # --- what everything stands on --------------------------------------------------------------------------------

    def lock_database(self, act: Act) -> str:
        """Nobody else can write then; nor a second one of these, whom this one would wait for."""
        seconds = act.between(0.5, 8)
        if self.locked:
            return ""
        command = [sys.executable, "-S", "-E", "-c", LOCK, str(self.world.rows.path)]
        holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert holder.stdout
        self.locked = holder.stdout.readline() == b"locked\n"
        got = self.locked

        def undo() -> None:
            holder.communicate(timeout=30)
            self.locked = False

        self._later(seconds if got else 0, undo)
        return f"the database is locked for {seconds:.1f} s" if got else "the database is locked by somebody else"

    def fill_disk(self, act: Act) -> str:
        name = act.chosen(sorted(self.world.disks)) or ""
        disk, seconds = self.world.disks[name], act.between(1, 10)
        disk.leave(0 if act.amount < 0.5 else 64 << 10)
        self._later(seconds, disk.empty)
        return f"no room in {name} for {seconds:.1f} s"

    def lock_logs(self, act: Act) -> str:
        """Read-only for root too: by a mount of itself. Who has a file open may write on."""
        place, seconds = str(self.world.plane.home / "logs"), act.between(1, 8)
        subprocess.run(["mount", "--bind", place, place], check=True)
        subprocess.run(["mount", "-o", "remount,bind,ro", place], check=True)
        self._later(seconds, lambda: subprocess.run(["umount", "--lazy", place], check=True) and None)
        return f"logs are read-only for {seconds:.1f} s"

    def jump_clock(self, act: Act) -> str:
        clock, seconds = self.world.clock, act.between(2, 15)
        assert clock
        ahead = 7200 if act.pick < 0.5 else -7200
        clock.jump(ahead)
        self._later(seconds, lambda: clock.jump(0))
        return f"the wall clock jumps by {ahead} s for {seconds:.1f} s"

    def drop_socket(self, act: Act) -> str:
        return "the websocket is cut" if self.world.reader.drop() else ""

    # --- steps ----------------------------------------------------------------------------------------------------

    def _up(self) -> None:
        """Start the control plane; with a full disk or a locked database it may not come up yet."""
        try:
            self.world.plane.start(ready=False)
        except (RuntimeError, AssertionError):
            return
        self.down = False

    def _kill(self, pid: int | None, whom: str | None) -> str:
        return self._signal(pid, signal.SIGKILL, f"{whom}")

    def _stop(self, pid: int | None, whom: str | None, seconds: float | None) -> str:
        started = processes.start_ticks(pid) if pid else None
        if pid is None or started is None:
            return ""
        said = self._signal(pid, signal.SIGSTOP, f"{whom}" + (f" for {seconds:.1f} s" if seconds else ""))

        def undo() -> None:
            if processes.is_running(pid, started):
                self._signal(pid, signal.SIGCONT, "")

        if seconds:
            self._later(seconds, undo)
        return said

    def _signal(self, pid: int | None, number: signal.Signals, whom: str) -> str:
        if pid is None or processes.stat(pid) is None:
            return ""
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return ""
        return f"{number.name} {whom} ({pid})"

    def _later(self, seconds: float, undo: Callable[[], None]) -> None:
        self.held.append(Undo(time.monotonic() + seconds, undo))

    def _running(self, act: Act) -> Row | None:
        """A replica that has a process."""
        rows = [
            row | {"name": f"{part.name} {row['number']}"}
            for part in CAST
            if part.local and not part.spared
            for row in self.world.rows.replicas(part.name, "STARTING", "READY", "NOT_READY", "DRAINING")
        ]
        return act.chosen([row for row in rows if row["pid"] and row["handle"] and processes.stat(row["pid"])])

    def _end_fake(self, act: Act, how: str, end: Callable[[str], None]) -> str:
        parts = [part.name for part in CAST if not part.local]
        row = act.chosen([row | {"of": name} for name in parts for row in self.world.rows.replicas(name, "READY")])
        if row is None:
            return ""
        try:
            end(row["uid"])
        except ProviderError:  # it has just gone
            return ""
        return f"fake replica {row['of']} {row['number']} {how}"
