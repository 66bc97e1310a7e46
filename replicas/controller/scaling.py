"""Has the autoscaler decide for each service whose number of replicas follows its load, as the gateway measured it."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from replicas import clock
from replicas.actions import scaling
from replicas.core.autoscaler import Memory, Policy, Sample, accelerator_of, decide, policy_from
from replicas.core.autoscaler.recent import Recent
from replicas.core.values import LIVE, Desired
from replicas.models import Replica, Service, ServiceVersion
from replicas.models import Sample as Row

ACTOR = "autoscaler"
BEYOND = 120.0  # seconds of samples beyond the longest delay, for the stretch that the first entry of a history is over


@dataclass(frozen=True, slots=True)
class Told:
    """What a version says of its number of replicas."""

    policy: Policy
    accelerator: str | None


@lru_cache(maxsize=1024)
def told_by(version_uid: str) -> Told | None:
    """What the version with this uid says, which never changes; None where its number is fixed."""
    spec = ServiceVersion.objects.values_list("spec", flat=True).get(uid=version_uid)
    policy = policy_from(spec.get("service") or {})
    return Told(policy, accelerator_of(spec.get("resources") or {})) if policy else None


@dataclass(slots=True)
class Measured:
    """The samples of one service, read as they come."""

    span: float
    recent: Recent
    newest: int = 0

    @classmethod
    def of(cls, policy: Policy) -> "Measured":
        """Nothing read yet."""
        span = max(policy.upscale_delay, policy.downscale_delay) + BEYOND
        return cls(span, Recent(span))

    def read(self, service_id: int, now: datetime) -> list[Sample]:
        """All that still matters, with what is new in the table."""
        rows = Row.objects.filter(service=service_id, resolution=1, pk__gt=self.newest)
        if not self.newest:
            rows = rows.filter(at__gt=now - timedelta(seconds=self.span))
        for row in rows.order_by("id"):
            self.newest = row.pk
            self.recent.add(sample_of(row))
        return self.recent.all()


def sample_of(row: Row) -> Sample:
    """A stored sample as the autoscaler takes it. Those that the gateway holds wait as well."""
    return Sample(
        at=row.at,
        seconds=row.seconds,
        qps=row.requests / row.seconds if row.seconds else 0.0,
        inflight=row.in_flight,
        queued=row.queued + row.held,
        p95=None if row.p95 is None else row.p95 / 1000,
        ready=len(row.replicas),
    )


@dataclass(slots=True)
class Scaling:
    """Decides each `every` seconds. What it keeps is only a copy: the samples and the memory are in the database."""

    every: float = 1.0
    measured: dict[int, Measured] = field(default_factory=dict)
    due: float = 0.0

    def tick(self) -> bool:
        """Decide for all services for which that is due. True when a target has changed."""
        if time.monotonic() < self.due:
            return False
        self.due = time.monotonic() + self.every
        rows = [(row, told) for row in services() if (told := told_by(row["version__uid"])) is not None]
        self.measured = {row["id"]: self.measured[row["id"]] for row, _ in rows if row["id"] in self.measured}
        moved = [self.decide(row, told) for row, told in rows]
        return any(moved)

    def decide(self, row: Mapping[str, Any], told: Told) -> bool:
        """Decide for one service, and carry it out."""
        number, now = row["id"], clock.now()
        kept = self.measured.get(number)
        if kept is None or kept.span != Measured.of(told.policy).span:
            kept = self.measured[number] = Measured.of(told.policy)
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


def services() -> Any:
    """The services that are up and whose number nobody has fixed by hand."""
    wanted = Service.objects.filter(desired=Desired.UP, pinned=False).exclude(version=None)
    return wanted.order_by("id").values("id", "target", "scaling", "version__uid")


def capacities(service_id: int, told: Told) -> tuple[str | None, ...]:
    """The accelerators of the live replicas, where the policy has a rate for each."""
    if not isinstance(told.policy.qps, Mapping):
        return ()
    return (told.accelerator,) * Replica.objects.filter(service=service_id, state__in=LIVE).count()
