"""A control plane with an audience: somebody at the dashboard, a count from outside, a reader of the feed."""

import os
import signal
import time
from pathlib import Path

from controlplane import processes
from tests.support.controlplane import ControlPlane, children, command_line
from tests.support.disk import Disk
from tests.support.person import Person
from tests.support.polling import eventually
from tests.support.reader import FeedReader
from tests.support.rows import LIVE, Row, Rows, broken_chains
from tests.support.sampler import Sampler

FUTEX = "202"  # the system call of x86-64 in which a process waits for a lock that another holds
RECOVERY_SECONDS = 30.0
USUAL_START_SECONDS = 15.0
HEARD = ("controller", "long", "short", "web")
PARTS = (*HEARD, "gateway")  # which is heard of through the controller


class Scene:
    """One control plane, and what a test does to it. `close` takes everything down and says what is wrong."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        began = time.monotonic()
        plane.start()
        # On a machine that needs longer than usual to start everything, a recovery may take longer in proportion.
        self.limit = RECOVERY_SECONDS * max(1.0, (time.monotonic() - began) / USUAL_START_SECONDS)
        self.rows = Rows(plane.home)
        self.person = Person(plane).sign_in()
        self.sampler = Sampler(self.rows)
        self.sampler.start()
        self.reader = FeedReader(self.person)
        self.reader.start()
        self.services: set[str] = set()
        self.before: dict[str, str] = {}
        self.struck = 0.0
        self.disk: Disk | None = None

    # --- acting ---------------------------------------------------------------------------------------------------

    def deploy(self, name: str, text: str, replicas: int, ready: bool = True) -> None:
        """Apply a service of so many replicas, and wait until all are ready."""
        self.sampler.allow(name, replicas)
        self.person.apply(text, name, known=name in self.services)
        self.services.add(name)
        if ready:
            self.wait_ready(name, replicas)

    def scale(self, name: str, replicas: int) -> None:
        """Want so many replicas."""
        if replicas > self.sampler.allowed(name):
            self.sampler.allow(name, replicas)
        self.person.scale(name, replicas)
        self.sampler.allow(name, replicas)

    def take_down(self, name: str, timeout: float = 30) -> None:
        """Take a service down and wait until nothing of it is left."""
        self.person.down(name)
        eventually(
            lambda: not self.rows.replicas(name, *LIVE) and not self.sampler.live(name),
            timeout,
            lambda: self.told(name),
        )
        self.sampler.allow(name, 0)

    # --- looking --------------------------------------------------------------------------------------------------

    def wait_ready(self, name: str, replicas: int, timeout: float = 45) -> None:
        """Wait until exactly so many replicas live, all are ready, and no rollout is about to replace them."""

        def look() -> bool:
            live = self.rows.replicas(name, *LIVE)
            return [row["state"] for row in live] == ["READY"] * replicas and not self.moving(name)

        eventually(look, timeout, lambda: self.told(name))

    def wait_told(self, name: str, replicas: int) -> None:
        """Wait until there is nothing more to be told of a service whose replicas are ready.

        Its row comes after those of its replicas, says first who goes on going or has to prove itself, and is not the
        last either: that is its rollout's.
        """

        def look() -> bool:
            row = self.rows.service(name)
            calm = (replicas, replicas, f"{replicas} of {replicas} ready")
            return not self.moving(name) and (row["ready"], row["live"], row["reason"]) == calm

        eventually(look, 30, lambda: self.told(name))

    def moving(self, name: str) -> bool:
        """Whether a rollout of the service is going on."""
        text = "SELECT id FROM replicas_rollout WHERE service_id = ? AND state = 'PROGRESSING'"
        return bool(self.rows.query(text, self.rows.service(name)["id"]))

    def wait_state(self, name: str, number: int, *states: str, timeout: float = 30) -> Row:
        """Wait until the replica is in one of the states; its row."""

        def look() -> Row | None:
            return next((row for row in self.rows.replicas(name, *states) if row["number"] == number), None)

        return eventually(look, timeout, lambda: self.told(name))

    def told(self, name: str) -> str:
        """All that explains why a service is as it is."""
        service = self.rows.service(name)
        lines = [f"{name}: {service['status']} {service['reason']} (target {service['target']})"]
        for row in self.rows.replicas(name):
            lines.append(f"  {row['number']} {row['state']} {row['outcome']} {row['reason']} pid {row['pid']}")
        for row in self.rows.operations(name)[-8:]:
            lines.append(
                f"  operation {row['id']} of {row['number']}: {row['kind']} {row['status']} claim {row['claim']} "
                f"deliveries {row['deliveries']} owner {row['owner_pid']} {row['waits_for']} {row['error']}"
            )
        return "\n".join([*lines, f"/readyz: {self.plane.readyz()}", self.plane.tail()])

    def pids(self, name: str) -> dict[int, int]:
        """The pid of each ready replica, by number."""
        return {row["number"]: row["pid"] for row in self.rows.replicas(name, "READY")}

    def log_of(self, operation: Row) -> str:
        """The log of an operation."""
        return Path(operation["log"]).read_text(errors="replace") if Path(operation["log"]).exists() else ""

    # --- the parts ------------------------------------------------------------------------------------------------

    def sentinel(self, lane: str) -> int:
        """The process of a pool that looks after the others."""
        (found,) = children(self.plane.children()[lane])
        return found

    def crew(self, lane: str) -> list[int]:
        """The processes of a fresh pool in the order of their start: workers, then monitor, then pusher."""
        return children(self.sentinel(lane))

    def workers(self, lane: str) -> list[int]:
        """The workers of a fresh pool."""
        return self.crew(lane)[:-2]

    def idle_worker(self, lane: str) -> int:
        """The worker that has hold of the queue: of those that do nothing, the one that does not wait for a lock.

        In a pool that has replaced a worker its monitor may look the same, and is taken as well.
        """

        def look() -> int | None:
            waiting = [pid for pid in self.workers(lane) if system_call(pid) not in (FUTEX, "running", "")]
            return waiting[0] if waiting else None

        return eventually(look, 20, lambda: f"{[(pid, system_call(pid)) for pid in self.workers(lane)]}")

    def beats(self) -> dict[str, str]:
        """When each part was last heard of."""
        return {row["name"]: row["at"] for row in self.rows.query("SELECT name, at FROM replicas_heartbeat")}

    def strike(self, *pids: int, number: int = signal.SIGKILL) -> None:
        """Signal processes that must be there; `wait_whole` counts from here."""
        self.before = self.beats()
        self.struck = time.monotonic()
        for pid in pids:
            assert processes.stat(pid) is not None, f"process {pid} has ended"
            os.kill(pid, number)

    def wait_whole(self) -> float:
        """Wait until every part has been heard of since the last strike and /readyz says yes; seconds since then."""

        def look() -> bool:
            now = self.beats()
            fresh = all(now.get(part, "") > self.before.get(part, "") for part in HEARD)
            return fresh and bool(self.plane.readyz().get("ready")) and set(self.plane.children()) == set(PARTS)

        left = self.struck + self.limit - time.monotonic()
        eventually(look, left, lambda: f"{self.before} {self.beats()} {self.plane.readyz()}\n{self.plane.tail()}")
        return time.monotonic() - self.struck

    # --- judging --------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """What must be true at any moment of rest."""
        assert not self.sampler.excesses, "\n".join(map(str, self.sampler.excesses[:5]))
        events = self.rows.events()
        assert not (broken := broken_chains(events)), "\n".join(broken[:20])
        ids = [event["id"] for event in events]
        assert not self.reader.resets
        eventually(lambda: self.reader.cursor >= ids[-1], 20, lambda: f"{self.reader.cursor} of {ids[-1]}")
        stored = {event["id"]: event for event in events}
        read = [event for event in list(self.reader.events) if event["id"] <= ids[-1]]
        assert [event["id"] for event in read] == ids
        for event in read:
            row = stored[event["id"]]
            same = ("kind", "object_id", "revision", "trigger", "old", "new", "reason", "data")
            assert {key: event[key] for key in same} == {key: row[key] for key in same}

    def close(self) -> None:
        """Take everything down. Fails when something is left over."""
        left: list[str] = []
        try:
            for name in sorted(self.services):
                self.person.down(name)
            for name in sorted(self.services):
                self.take_down(name)
        finally:
            self.reader.stop()
            self.sampler.stop()
            left = self.plane.close()
        assert not left, "left running after the control plane was stopped:\n" + "\n".join(left)


def system_call(pid: int) -> str:
    """The number of the system call that a process is in; "running" when it is in none."""
    try:
        return Path(f"/proc/{pid}/syscall").read_text().split()[0]
    except OSError:
        return ""


def wait_gone(pid: int, timeout: float = 10) -> None:
    """Wait until a process has ended."""
    eventually(lambda: processes.stat(pid) is None, timeout, lambda: f"{pid}: {command_line(pid)}")
