"""Looks for more than there may be: live rows of each service four times a second, shims of each replica every one."""

import time
from collections import Counter

from controlplane import processes
from tests.chaos.cast import CAST, PARTS
from tests.support.looking import Looking
from tests.support.rows import LIVE, Rows
from tests.support.sampler import Bound

SECONDS = 0.25
DOUBLES_EVERY = 4  # to read the environment of every process costs more
DOUBLE_SECONDS = 2.0  # a shim that is just forked carries the mark as well
COUNTS = f"""
SELECT s.name, s.desired, s.target, COUNT(r.id) AS live FROM replicas_service s
LEFT JOIN replicas_replica r ON r.service_id = s.id AND r.state IN ({", ".join(f"'{state}'" for state in LIVE)})
GROUP BY s.id
"""


class Sampler(Looking):
    """`faults` says what was too much. A look at the rows is one consistent read; what is wanted comes from it too."""

    def __init__(self, rows: Rows) -> None:
        super().__init__("sampler", SECONDS)
        self.rows = rows
        self.faults: list[str] = []
        self.most: Counter[str] = Counter()
        self.samples = 0
        self._bounds = {part.name: Bound() for part in CAST}
        self._doubles: dict[str, float] = {}

    def look(self) -> None:
        """One sample."""
        self.samples += 1
        now = time.monotonic()
        for row in self.rows.query(COUNTS):
            name, live = row["name"], row["live"]
            wanted = PARTS[name].allowed(row["target"]) if row["desired"] == "UP" else 0
            bound = self._bounds[name]
            if wanted != bound.wanted:
                bound.want(wanted)
            self.most[name] = max(self.most[name], live)
            if bound.passed_by(live, lambda live=live: live, now):
                self.faults.append(f"{name}: {live} live rows where {bound.held} are allowed (wanted: {bound.wanted})")
        if self.samples % DOUBLES_EVERY == 0:
            self._look_for_doubles(now)

    def _look_for_doubles(self, now: float) -> None:
        count = Counter(shims(str(self.rows.home)).values())
        doubles = {uid for uid, number in count.items() if number > 1}
        self._doubles = {uid: self._doubles.get(uid, now) for uid in doubles}
        self.faults += [
            f"replica {uid} has {count[uid]} shims" for uid, at in self._doubles.items() if now - at > DOUBLE_SECONDS
        ]


def shims(home: str) -> dict[int, str]:
    """The uid of the replica (or of the version, for setups) of each running shim, by pid."""
    found = {}
    for pid in processes.pids():
        carried = processes.environment(pid)
        if carried.get("ROLLCALL_HOME") == home and (uid := carried.get("ROLLCALL_SHIM_UID")) and processes.stat(pid):
            found[pid] = uid
    return found
