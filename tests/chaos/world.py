"""The control plane under chaos and its audience: who acts and who looks share this."""

import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from controlplane import processes
from tests.support.controlplane import ControlPlane, children
from tests.support.disk import Disk
from tests.support.patience import Patience
from tests.support.person import Person
from tests.support.reader import FeedReader
from tests.support.rows import Rows
from tests.support.wallclock import WallClock

LANES = ("long", "short")
HEARD = ("controller", "long", "short", "web")
DISK_BYTES = 4 << 30
# Whoever is killed all the time must not be given up for it, and nobody waits long for what is lost.
SETTINGS = {"ROLLCALL_LAUNCH_RETRY_SECONDS": "1", "ROLLCALL_DOWN_ATTEMPTS": "50", "ROLLCALL_DOWN_RETRY_SECONDS": "1"}


def patiently(
    look: Callable[[], list[str]], seconds: float, pause: float = 0.2, stop: threading.Event | None = None
) -> list[str]:
    """What `look` finds wrong, asked until it is nothing or patience is over."""
    patience = Patience(seconds)
    while wrong := look():
        if patience.over() or (stop and stop.is_set()):
            return wrong
        time.sleep(pause)
    return []


class World:
    """`skipped` says which acts this machine does not allow, and why."""

    def __init__(self) -> None:
        self.skipped: dict[str, str] = {}
        self.tools = Path(tempfile.mkdtemp(prefix="rc-chaos-", dir="/tmp"))
        self.clock: WallClock | None = None
        try:
            self.clock = WallClock(self.tools)
        except OSError as error:
            self.skipped["jump_clock"] = f"the clock's library cannot be made: {error}"
        self.plane = ControlPlane(**SETTINGS, **(self.clock.environment if self.clock else {}))
        self.disks = {name: Disk(self.plane.home / name, DISK_BYTES) for name in ("replicas", "logs")}
        problem = next((disk.problem for disk in self.disks.values() if disk.problem), "")
        if problem:
            self.skipped |= dict.fromkeys(("fill_disk", "lock_logs"), f"no file system can be mounted: {problem}")
        self.rows = Rows(self.plane.home)
        self.person = Person(self.plane)
        self.reader = FeedReader(self.person)

    def start(self) -> "World":
        """Start the control plane, sign in, and read along from the first event."""
        self.plane.start()
        self.person.sign_in()
        self.reader.start()
        return self

    def close(self, keep: bool = False) -> list[str]:
        """End everything; what was still running. With `keep` the home stays, the disks' contents copied into it."""
        if self.reader.is_alive():
            self.reader.stop()
        left = self.plane.close(keep=True)
        for name, disk in self.disks.items():
            disk.close(self.plane.home / f"{name}-kept" if keep else None)
        if not keep:
            self.plane.close()
        shutil.rmtree(self.tools)
        return left

    # --- the parts ------------------------------------------------------------------------------------------------

    def crew(self) -> list[int]:
        """The processes of the pools below their leaders, by pid: sentinels, workers, monitors, pushers."""
        leaders = self.plane.children()
        found: list[int] = []
        for lane in LANES:
            for sentinel in children(leaders[lane]) if lane in leaders else ():
                found += [sentinel, *children(sentinel)]
        return sorted(found)

    def busy(self) -> list[int]:
        """The workers that are at an operation, or at the probes."""
        owners = self.rows.query("SELECT DISTINCT owner_pid AS pid FROM replicas_operation WHERE owner_pid IS NOT NULL")
        probing = self.rows.query("SELECT pid FROM replicas_lease WHERE name LIKE 'probe-%' AND pid IS NOT NULL")
        return sorted(int(row["pid"]) for row in [*owners, *probing] if processes.stat(int(row["pid"])))

    def haproxy(self) -> list[int]:
        """The workers of HAProxy, whose leader is one of the parts."""
        leader = self.plane.children().get("gateway")
        return children(leader) if leader else []

    def unwell(self) -> list[str]:
        """What is not as in a control plane that works."""
        said = self.plane.readyz()
        wrong = [] if said.get("ready") else [f"/readyz says {said}"]
        missing = {*HEARD, "gateway"} - set(self.plane.children())
        return wrong + [f"there is no {name}" for name in sorted(missing)]
