"""Has the autoscaler decide for each service whose number of replicas follows its load, as the gateway measured it."""

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from replicas import clock
from replicas.actions import scaling
from replicas.core.autoscaler import Memory, Policy, Sample, decide, policy_from
from replicas.core.autoscaler.recent import Recent
from replicas.core.machines import offers
from replicas.core.planner.fleet import LAUNCHING, RANK
from replicas.core.values import Desired, ReplicaState
from replicas.jobs import queue
from replicas.models import Reading, Replica, Service, ServiceVersion
from replicas.models import Sample as Row
from replicas.models.fields import ALIVE

ACTOR = "autoscaler"
INTERVAL = 15.0  # seconds, the default of custom_signal.interval_seconds
FRESH = 3.0  # times the interval: so long a reading counts
LOOK_SECONDS = 10.0  # without an event: a row may have been written past the actions
BEYOND = 120.0  # seconds of samples beyond the longest delay, for the stretch that the first entry of a history is over


@dataclass(frozen=True, slots=True)
class Told:
    """What a version says of its number of replicas."""

    policy: Policy
    accelerators: str  # what the resources ask for first
    interval: float | None  # seconds between two readings of the operator's own number; None where there is none


@lru_cache(maxsize=1024)
def told_by(version_uid: str) -> Told | None:
    """What the version with this uid says, which never changes; None where its number is fixed."""
    spec = ServiceVersion.objects.values_list("spec", flat=True).get(uid=version_uid)
    service = spec.get("service") or {}
    policy = policy_from(service)
    if policy is None:
        return None
    custom = service["replica_policy"].get("custom_signal")
    interval = float(custom.get("interval_seconds", INTERVAL)) if custom else None
    return Told(policy, offers(spec.get("resources") or {})[0].accelerators, interval)


@dataclass(slots=True)
class Measured:
    """The samples of one service, read as they come."""

    span: float
    recent: Recent
    interval: float | None
    newest: int = 0
    reading: tuple[datetime, float] | None = None

    @classmethod
    def of(cls, told: Told) -> "Measured":
        """Nothing read yet."""
        span = max(told.policy.upscale_delay, told.policy.downscale_delay) + BEYOND
        return cls(span, Recent(span), told.interval)

    def read(self, service_id: int, now: datetime) -> list[Sample]:
        """All that still matters, with what is new in the table."""
        rows = Row.objects.filter(service=service_id, resolution=1, pk__gt=self.newest)
        if not self.newest:
            rows = rows.filter(at__gt=now - timedelta(seconds=self.span))
        fresh = list(rows.order_by("id"))
        readings = self.readings(service_id, fresh)
        for row in fresh:
            self.newest = row.pk
            while readings and readings[0][0] <= row.at:
                self.reading = readings.popleft()
            self.recent.add(sample_of(row, self.custom(row.at)))
        return self.recent.all()

    def readings(self, service_id: int, rows: Sequence[Row]) -> deque[tuple[datetime, float]]:
        """The operator's own numbers of the time of these rows, and shortly before."""
        if self.interval is None or not rows:
            return deque()
        since = rows[0].at - timedelta(seconds=FRESH * self.interval)
        found = Reading.objects.filter(service=service_id, value__isnull=False, at__gt=since).order_by("at")
        return deque((at, value) for at, value in found.values_list("at", "value") if value is not None)

    def custom(self, at: datetime) -> float | None:
        """The number that counted at a time: the newest before it, for a while."""
        if self.reading is None or self.interval is None:
            return None
        read, value = self.reading
        return value if at - read <= timedelta(seconds=FRESH * self.interval) else None


def sample_of(row: Row, custom: float | None = None) -> Sample:
    """A stored sample as the autoscaler takes it. Those that the gateway holds wait as well."""
    return Sample(
        at=row.at,
        seconds=row.seconds,
        qps=row.requests / row.seconds if row.seconds else 0.0,
        inflight=row.in_flight,
        queued=row.queued + row.held,
        p95=None if row.p95 is None else row.p95 / 1000,
        custom=custom,
        ready=len(row.replicas),
    )


@dataclass(slots=True)
class Scaling:
    """Decides each `every` seconds. What it keeps is only a copy: the samples and the memory are in the database."""

    every: float = 1.0
    measured: dict[int, Measured] = field(default_factory=dict)
    asked: dict[int, float] = field(default_factory=dict)
    due: float = 0.0
    newest: int | None = None  # the event at the last look for services

    def tick(self, newest: int | None = None) -> bool:
        """Decide for all services for which that is due. True when a target has changed.

        `newest`: the newest event. While it is the same and nothing follows its load, there is nothing to look for.
        """
        now = time.monotonic()
        if now < self.due:
            return False
        if newest is not None and newest == self.newest and not self.measured and now < self.due + LOOK_SECONDS:
            return False
        self.due, self.newest = now + self.every, newest
        rows = [(row, told) for row in services() if (told := told_by(row["version__uid"])) is not None]
        self.measured = {row["id"]: self.measured[row["id"]] for row, _ in rows if row["id"] in self.measured}
        moved = [self.decide(row, told) for row, told in rows]
        return any(moved)

    def decide(self, row: Mapping[str, Any], told: Told) -> bool:
        """Decide for one service, and carry it out."""
        number, now = row["id"], clock.now()
        kept = self.measured.get(number)
        anew = Measured.of(told)
        if kept is None or (kept.span, kept.interval) != (anew.span, anew.interval):
            kept = self.measured[number] = anew
        self.ask(number, told)
        memory = Memory.from_json(row["scaling"])
        made = decide(
            told.policy,
            kept.read(number, now),
            memory,
            now,
            target=row["target"],
            capacities=capacities(number, told),
        )
        if made.target != row["target"]:
            return scaling.autoscale(
                number,
                made.target,
                base=row["target"],
                reason=made.reason,
                memory=made.memory.to_json(),
                inputs=made.inputs,
                actor=ACTOR,
            )
        if made.memory != memory:
            scaling.remember(number, made.memory.to_json())
        return False

    def ask(self, service_id: int, told: Told) -> None:
        """Have the operator's own number read, where that is due. A reading more or less does no harm."""
        if told.interval is None or time.monotonic() < self.asked.get(service_id, 0.0):
            return
        self.asked[service_id] = time.monotonic() + told.interval
        queue.offer_signal(service_id)


def services() -> Any:
    """The services that are up and whose number nobody has fixed by hand."""
    wanted = Service.objects.filter(desired=Desired.UP, pinned=False).exclude(version=None)
    return wanted.order_by("id").values("id", "target", "scaling", "version__uid")


def capacities(service_id: int, told: Told) -> tuple[str | None, ...]:
    """The accelerators of the live replicas, those that stay longest first, where the policy has a rate for each.

    One that is not launched yet is taken for what the resources ask for first. Who is on the way out does not count.
    """
    if not isinstance(told.policy.qps, Mapping):
        return ()
    rows = Replica.objects.filter(ALIVE, service=service_id, state__in=RANK).values_list(
        "state", "number", "accelerators"
    )
    found = [(RANK[ReplicaState(state)], number, state, got) for state, number, got in rows.order_by()]
    ordered = sorted(found, key=lambda each: (-each[0], each[1]))
    return tuple(got or (told.accelerators if state in LAUNCHING else "") for _, _, state, got in ordered)
