"""Counts from outside what runs: every 50 ms, by ROLLCALL_REPLICA_UID in the environments of all processes."""

import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from controlplane import processes
from tests.support.looking import Looking
from tests.support.rows import LIVE, Rows

SECONDS = 0.05
SETTLED_SECONDS = 3.0  # a plan that was made before the wish may be carried out a moment after it
YOUNG = 3.0  # a process this young may still exec, and then its environment changes
Identity = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Sample:
    """At `at` (monotonic seconds) these replicas had a live process: uids by service."""

    at: float
    live: Mapping[str, frozenset[str]]


@dataclass
class Excess:
    """A bound that was passed."""

    service: str
    bound: int
    sample: Sample

    def __str__(self) -> str:
        return f"{self.service}: {sorted(self.sample.live[self.service])} live where {self.bound} are allowed"


@dataclass
class Bound:
    """How many replicas of a service may be live. When fewer are wanted, the old bound holds until it came true: a
    launch that was under way then still makes a process, which is taken away."""

    wanted: int = 0
    held: int = 0
    since: float | None = None

    def want(self, number: int) -> None:
        """From now on so many."""
        self.held = max(self.held, number)
        self.wanted = number
        self.since = None

    def passed_by(self, live: int, places: Callable[[], int], now: float) -> bool:
        """Whether so many are too many. `places` counts the replicas that have not ended, with a process or without."""
        if self.held > self.wanted:
            if places() > self.wanted:
                self.since = None
            elif self.since is None:
                self.since = now
            elif now - self.since > SETTLED_SECONDS:
                self.held = self.wanted
        return live > self.held


class Sampler(Looking):
    """Samples until told to stop; keeps each sample that differs from the one before it."""

    def __init__(self, rows: Rows) -> None:
        super().__init__("sampler", SECONDS)
        self.home = str(rows.home)
        self.rows = rows
        self.samples: list[Sample] = []
        self.excesses: list[Excess] = []
        self.longest_gap = 0.0
        self._bounds: dict[str, Bound] = {}
        self._lock = threading.Lock()
        self._known: dict[Identity, tuple[float, str, str]] = {}
        self._last = time.monotonic()

    def allow(self, service: str, number: int) -> None:
        """At most `number` replicas of the service may be live, from now on."""
        with self._lock:
            self._bounds.setdefault(service, Bound()).want(number)

    def allowed(self, service: str) -> int:
        """How many are wanted."""
        with self._lock:
            return self._bounds[service].wanted if service in self._bounds else 0

    def live(self, service: str) -> frozenset[str]:
        """Who is live by the newest sample."""
        return self.samples[-1].live.get(service, frozenset()) if self.samples else frozenset()

    def run(self) -> None:
        self._last = time.monotonic()
        super().run()

    def take(self) -> None:
        """Keep a sample that differs, and each bound that it passes."""
        sample = self.look()
        self.longest_gap, self._last = max(self.longest_gap, sample.at - self._last), sample.at
        if not self.samples or self.samples[-1].live != sample.live:
            self.samples.append(sample)
        with self._lock:
            for service, bound in self._bounds.items():
                live = len(sample.live.get(service, ()))
                if bound.passed_by(live, partial(self._places, service), sample.at):
                    self.excesses.append(Excess(service, bound.held, sample))

    def _places(self, service: str) -> int:
        return len(self.rows.replicas(service, *LIVE))

    def look(self) -> Sample:
        """One sample."""
        at = time.monotonic()
        found: dict[str, set[str]] = {}
        known: dict[Identity, tuple[float, str, str]] = {}
        for pid in processes.pids():
            stat = processes.stat(pid)
            if stat is None:
                continue
            identity = (pid, int(stat[19]))
            seen, service, uid = self._known.get(identity, (at, "", ""))
            if not uid and at - seen < YOUNG:
                carried = processes.environment(pid)
                if carried.get("ROLLCALL_HOME") == self.home:
                    service = carried.get("ROLLCALL_SERVICE", "")
                    uid = carried.get("ROLLCALL_REPLICA_UID", "")
            known[identity] = (seen, service, uid)
            if uid and pid != os.getpid():
                found.setdefault(service, set()).add(uid)
        self._known = known
        return Sample(at, {service: frozenset(uids) for service, uids in found.items()})
