"""Once a second: what the gateway does for each service, as rows."""

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from replicas.actions import samples
from replicas.gateway.accesslog import Tally
from replicas.gateway.statistics import Backend
from replicas.gateway.values import Entry
from replicas.models import Sample

SAMPLE_SECONDS = 1.0
QUIET_SECONDS = 10.0  # a service without traffic has a sample this often: what is between says the same
TIDY_SECONDS = 60.0
LONGEST_SECONDS = 60.0  # a gap beyond it was not measured


@dataclass(slots=True)
class Before:
    """What was seen of a service when it was last sampled: on the monotonic clock, and its count of requests."""

    at: float
    total: int
    idle: bool = False


@dataclass(slots=True)
class Sampler:
    """Makes rows out of figures. A gap (the gateway was away) has no rows."""

    before: dict[int, Before] = field(default_factory=dict)
    latest: dict[int, Sample] = field(default_factory=dict)  # by service id
    tidied: float = -math.inf

    def sample(
        self,
        now: datetime,
        entries: Iterable[Entry],
        backends: dict[str, Backend],
        tallies: dict[int, Tally],
        held: dict[int, int],
    ) -> list[Sample]:
        """Measure every service, and store what is worth a row."""
        moment, rows = time.monotonic(), []
        for entry in entries:
            backend = backends.get(entry.backend)
            if backend is not None:
                rows += self._one(moment, now, entry.id, backend, tallies.get(entry.id), held.get(entry.id, 0))
        if rows:
            samples.keep(rows)
        if moment - self.tidied > TIDY_SECONDS:
            self.tidied = moment
            samples.tidy(now)
        return rows

    @property
    def busy(self) -> bool:
        """Whether some service had traffic when it was looked at last."""
        return any(not before.idle for before in self.before.values())

    def forget(self) -> None:
        """The gateway is away: what comes next does not continue what was before."""
        self.before, self.latest = {}, {}

    def _one(
        self, moment: float, now: datetime, service: int, backend: Backend, tally: Tally | None, held: int
    ) -> list[Sample]:
        before = self.before.get(service)
        total = backend.own.total
        if before is None or moment - before.at > LONGEST_SECONDS:
            self.before[service] = Before(moment, total)
            return []
        arrived = total - before.total if total >= before.total else total  # a new worker counts from 0
        made = measured(now, moment - before.at, service, backend, arrived, tally or Tally(), held)
        self.latest[service] = made
        idle = not (arrived or made.in_flight or made.queued or held or sum(made.codes))
        if idle and before.idle and moment - before.at < QUIET_SECONDS:
            return []
        self.before[service] = Before(moment, total, idle)
        return [made]


def measured(
    now: datetime, seconds: float, service: int, backend: Backend, arrived: int, tally: Tally, held: int
) -> Sample:
    """The row for what was seen of a service in the last `seconds`."""
    servers = backend.servers.values()
    return Sample(
        service_id=service,
        resolution=samples.SECOND,
        at=now,
        seconds=round(seconds, 3),
        requests=max(arrived, 0),
        in_flight=sum(server.in_flight for server in servers),
        queued=backend.own.queued + sum(server.queued for server in servers),
        held=held,
        ready=sum(server.up for server in servers),
        p50=tally.percentile(0.50),
        p95=tally.percentile(0.95),
        p99=tally.percentile(0.99),
        times=tally.buckets,
        codes=tally.codes,
        replicas={
            (number := server.name.removeprefix("r")): [
                tally.replicas.get(number, 0),
                server.in_flight,
                tally.failures.get(number, 0),
            ]
            for server in servers
            if not server.out
        },
    )
