"""What the controller, the probes, the feed and the pages cost at one size: replicas of the provider `fake`.

    python -m benchmarks.scale_size REPLICAS

Prints one JSON line: figure to {cpu (seconds), queries, bytes}, and `peak` to the megabytes that the process came to.
A process of its own for each size, so that the peak is that of the size.
"""

import copy
import json
import logging
import resource
import statistics
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.homes import database
from replicas.providers.base import LaunchOrder

SERVICES = 10
TURNS = 3
MOST_LAUNCHES = 300  # so many are launched where the others run
LAUNCHES = 40  # and so many of these are looked at
CHANGES = 20  # replicas that end between two ticks
Figures = dict[str, dict[str, float]]


def main(replicas: int) -> None:
    """Measure and print."""
    with database("web") as home:
        logging.disable(logging.WARNING)
        print(json.dumps(Crowd(home, replicas).figures()))


class Cost:
    """CPU seconds and queries of a block of code; `cpu` and `queries` after it."""

    def __enter__(self) -> "Cost":
        from django.db import connection

        self.count = 0
        self.wrapper = connection.execute_wrapper(self._counted)
        self.wrapper.__enter__()
        self.began = time.process_time()
        return self

    def _counted(self, execute: Callable[..., Any], *arguments: Any) -> Any:
        self.count += 1
        return execute(*arguments)

    def __exit__(self, *_: object) -> None:
        self.cpu, self.queries = time.process_time() - self.began, self.count
        self.wrapper.__exit__(None, None, None)


class Crowd:
    """A controller with the lease, ten services and so many fake replicas; jobs are delivered by hand."""

    def __init__(self, home: Path, replicas: int) -> None:
        from replicas.controller.apply import Applier
        from replicas.controller.loop import LEASE, Loop
        from replicas.jobs import queue

        self.home, self.replicas = home, replicas
        self.offered: list[int] = []
        queue.offer = lambda kind, number: self.offered.append(number)  # type: ignore[assignment]
        self.loop = Loop()
        self.loop.watch.inspect_seconds = 0.0  # ask about each one in each tick
        fence = self.loop.acquire()
        assert fence is not None
        self.applier = Applier(LEASE, self.loop.holder, fence)
        self.due = False  # all that the controller does each so many seconds, and else nothing of it
        self.loop.every = lambda what, seconds: self.due  # type: ignore[method-assign]

    def figures(self) -> Figures:
        """In the order of a service's life: launched, at rest, changing, probed, looked at."""
        found: Figures = {"apply": self.apply(), "launch step": self.launch()}
        self.finish()
        found["tick at rest"] = self.median(self.look, self.keep)
        found["tick at rest with all that is due by time"] = self.median(self.look_at_all, self.keep)
        found["tick after 20 ends"] = self.median(self.look, self.end_some)
        self.finish()
        found["probe sweep"] = self.median(self.sweep)
        found["peak"] = {"megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}
        return found | {"event to socket": self.median(self.feed)} | self.pages()

    def tick(self) -> None:
        """One tick under a lease that is kept."""
        self.keep()
        self.look()

    def keep(self) -> None:
        """Hold the lease for longer than anything takes here."""
        from replicas.actions import leases

        leases.acquire(self.applier.lease, self.applier.holder, 3600)

    def look(self) -> None:
        """One tick."""
        self.loop.tick(self.applier)

    def look_at_all(self) -> None:
        """One tick in which everything is due: lease and signs of life, each row read anew, jobs offered."""
        self.due = True
        self.look()
        self.due = False

    def median(self, work: Callable[[], object], before: Callable[[], object] = lambda: None) -> dict[str, float]:
        """The median cost of `work`, each time after a `before` that is not counted."""
        taken = []
        for _ in range(TURNS):
            before()
            with Cost() as cost:
                work()
            taken.append(cost)
        return {"cpu": statistics.median(c.cpu for c in taken), "queries": statistics.median(c.queries for c in taken)}

    def apply(self) -> dict[str, float]:
        """What each of some more costs where all the others run: their rows and launches are written by the controller.

        The others are copies of replicas that have come through the doors.
        """
        from replicas.actions import scaling
        from replicas.models import Operation, Replica, Service
        from tests import cast

        more = min(MOST_LAUNCHES, self.replicas // 2)
        made = {"service": {"rollout": {"min_ready_seconds": 0}}, "target": 1}
        self.services = [cast.service(f"service-{n}", **made) for n in range(SERVICES)]
        self.tick()
        self.finish()
        self.copy(self.replicas - more)
        with Cost() as cost:
            for service in self.services:
                scaling.scale(service.pk, self.replicas // SERVICES, actor="ann")
            while Replica.objects.count() < self.replicas:  # a tick does a part of it
                self.tick()
        assert Operation.objects.filter(ended_at=None).count() == more
        assert Service.objects.filter(ready__gt=0).count() == SERVICES
        return {"cpu": cost.cpu / more, "queries": cost.queries / more}

    def copy(self, replicas: int) -> None:
        """Have so many ready replicas, copies of those that there are, which the provider knows as well."""
        from replicas.models import Replica, Service
        from replicas.providers import registry

        provider = registry.get("fake", self.home)
        models = list(Replica.objects.all())
        rows = []
        for place in range(replicas - len(models)):
            row = copy.copy(models[place % len(models)])
            row.pk, row.uid, row.number, row._state = None, uuid.uuid4().hex, 2 + place, copy.copy(row._state)
            row._state.adding = True
            order = LaunchOrder(row.uid, "x", row.number, 1, "x", {"fake": {}}, {}, {}, self.home / "launch.log", 1)
            launched: Any = provider.launch(order, None)
            row.handle, row.url = dict(launched.handle), launched.url
            rows.append(row)
        Replica.objects.bulk_create(rows, batch_size=500)
        Service.objects.update(last_number=replicas, target=replicas // SERVICES)
        self.loop.picture.forget()  # no event tells of these
        self.tick()

    def launch(self) -> dict[str, float]:
        """One launch as a worker carries it out, among so many."""
        from replicas.jobs import launch
        from replicas.models import Operation

        numbers = list(Operation.objects.filter(ended_at=None).order_by("id").values_list("id", flat=True)[:LAUNCHES])
        with Cost() as cost:
            for number in numbers:
                launch.run(number)
        return {"cpu": cost.cpu / len(numbers), "queries": cost.queries / len(numbers)}

    def end_some(self) -> None:
        """Replicas end by themselves; what the tick before has launched is there by now."""
        from replicas.models import Replica
        from replicas.providers import registry

        self.finish()
        self.keep()
        provider: Any = registry.get("fake", self.home)
        for uid in Replica.objects.filter(state="READY").order_by("id").values_list("uid", flat=True)[:CHANGES]:
            provider.end(uid, 1)

    def finish(self) -> None:
        """Carry out what is queued until the controller has nothing to do."""
        from replicas.jobs import down, launch
        from replicas.models import Operation

        while live := list(Operation.objects.filter(ended_at=None).values_list("id", "kind")):
            for number, kind in live:
                {"LAUNCH": launch.run, "DOWN": down.run}[kind](number)
            self.sweep()
            self.tick()
        self.tick()

    def sweep(self) -> None:
        """The work of a new probe job: read what there is, and let each answer have its effect."""
        from replicas import clock
        from replicas.jobs import probing

        for target in probing.load_targets(0, {}).values():
            result = target.answered()
            assert result is not None
            probing.record(target, result, clock.now())

    def feed(self) -> None:
        """A hundred events on their way through a web process to a socket."""
        from replicas.models import Event
        from replicas.web import outbox
        from replicas.web.hub import Hub

        hub = Hub()
        start = Event.objects.latest("id").pk - 100
        hub.begin(start)
        hub.publish(outbox.items_after(start))
        assert hub.message(start, None).text

    def pages(self) -> Figures:
        """Page and snapshot of all services, and of the one with a tenth of the replicas."""
        from django.contrib.auth import get_user_model
        from django.test import Client, override_settings

        browser = Client(headers={"host": "localhost"})
        browser.force_login(get_user_model().objects.create_superuser("ann"))
        found: Figures = {}
        plain = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
        override_settings(STORAGES={"staticfiles": plain}).enable()  # nobody has collected the files
        paths = {"services page": "/", "service page": "/services/service-1/"}
        for name, path in paths.items():
            answer: Any = None

            def ask(path: str = path) -> None:
                nonlocal answer
                answer = browser.get(path)
                assert answer.status_code == 200, answer

            found[name] = self.median(ask) | {"bytes": len(answer.content)}
        return found


if __name__ == "__main__":
    main(int(sys.argv[1]))
