"""One tick of the controller over a thousand READY replicas: CPU seconds and queries, at rest and after a change."""

import copy
import statistics
import subprocess
import time
import uuid
from collections.abc import Callable
from itertools import count, cycle, islice
from pathlib import Path
from typing import Any

from benchmarks.homes import database
from benchmarks.rows import Row, compared, limited
from replicas.providers import procs
from replicas.providers.base import LaunchOrder

SERVICES = 10
REPLICAS = 1000
TICKS = 9
MOST_SECONDS = 0.15


def run() -> list[Row]:
    with database() as home, subprocess.Popen(["sleep", "600"]) as process:
        try:
            return figures(Crowd(home, process.pid))
        finally:
            process.kill()


def figures(crowd: "Crowd") -> list[Row]:
    """All of them, with what is read in a tick held against reading the same rows as objects."""
    crowd.grow(SERVICES)
    few = crowd.queries()
    crowd.grow(REPLICAS)
    many = crowd.queries()
    plain = cpu_seconds(crowd.read_plainly)
    rest = cpu_seconds(crowd.tick)
    changed = cpu_seconds(crowd.tick, before=crowd.end_one)
    crowd.become_fake()
    asked = cpu_seconds(crowd.tick)
    return [
        limited("tick at rest: CPU", rest, most=MOST_SECONDS, unit="s"),
        compared("tick at rest: CPU, against reading the rows as objects", rest, plain, most=None, unit="s"),
        limited("tick after one has ended: CPU", changed, most=None, unit="s"),
        limited("tick that asks a provider about each: CPU", asked, most=None, unit="s"),
        limited("queries of a tick", many, most=None, unit=""),
        limited("queries more than over 10 replicas", many - few, most=0, unit=""),
    ]


def cpu_seconds(work: Callable[[], object], before: Callable[[], object] = lambda: None) -> float:
    """The median of what `work` takes; each time after a `before`, which is not counted. The first warms up."""
    taken = []
    for _ in range(TICKS + 1):
        before()
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return statistics.median(taken[1:])


class Crowd:
    """A controller that holds the lease over ten services, whose replicas all run under one and the same shim."""

    def __init__(self, home: Path, pid: int) -> None:
        from replicas.controller.apply import Applier
        from replicas.controller.loop import LEASE, Loop
        from tests import cast

        process = procs.identify(pid)
        assert process is not None
        self.home = home
        self.shim = {"shim_pid": process.pid, "shim_start": process.start}
        self.loop = Loop()
        self.loop.watch.inspect_seconds = 0.0
        self.loop.next |= dict.fromkeys(("lanes", "prune", "probes", "renew"), float("inf"))  # these come by time
        fence = self.loop.acquire()
        assert fence is not None
        self.applier = Applier(LEASE, self.loop.holder, fence)
        self.models = [cast.ready(cast.service(f"service-{number}")) for number in range(SERVICES)]
        self.numbers = count(2)
        self.victims = iter(self.models)

    def grow(self, replicas: int) -> None:
        """Have so many replicas, as many in each service: copies of those that the actions have made."""
        from replicas.models import Replica, Service

        missing = replicas - Replica.objects.count()
        Replica.objects.bulk_create([self.copy(model) for model in islice(cycle(self.models), missing)])
        Replica.objects.update(provider="local", handle=self.shim)
        Service.objects.update(target=replicas // SERVICES, last_number=10 * REPLICAS)
        for _ in range(3):
            self.tick()

    def copy(self, model: Any) -> Any:
        """Another replica like that."""
        made = copy.copy(model)
        made.pk, made.uid, made.number = None, uuid.uuid4().hex, next(self.numbers)
        made._state = copy.copy(model._state)
        made._state.adding = True
        return made

    def become_fake(self) -> None:
        """Have them run by the fake provider, which cannot be watched and so is asked about each."""
        from replicas.models import Replica
        from replicas.providers import registry

        provider = registry.get("fake", self.home)
        rows = list(Replica.objects.filter(state="READY"))
        for row in rows:
            order = LaunchOrder(row.uid, "x", row.number, 1, "x", {"fake": {}}, {}, {}, self.home / "launch.log", 1)
            row.provider, row.handle = "fake", dict(provider.launch(order, None).handle)
        Replica.objects.bulk_update(rows, ["provider", "handle"])

    def tick(self) -> None:
        """One tick under a lease that is kept."""
        from replicas.actions import leases

        leases.acquire(self.applier.lease, self.applier.holder, 600)
        self.loop.tick(self.applier)

    def end_one(self) -> None:
        """One replica is seen to have ended."""
        from replicas.actions import replicas

        assert replicas.observe(next(self.victims).pk, "exited", reason="exited with code 1", actor="benchmark")

    def read_plainly(self) -> None:
        """All replicas as objects of the ORM."""
        from replicas.models import Replica

        assert len(list(Replica.objects.select_related("version"))) >= REPLICAS

    def queries(self) -> int:
        """How many a tick at rest makes."""
        from django.db import connection
        from django.test.utils import CaptureQueriesContext

        with CaptureQueriesContext(connection) as captured:
            self.loop.tick(self.applier)
        return len(captured)
