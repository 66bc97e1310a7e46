"""What the autoscaler decides from and what it gives: plain values that can be stored as JSON."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Sample:
    """What was measured in the `seconds` that ended at `at`. None: not measured.

    `qps`: requests that arrived, per second, those that were held or refused too; `inflight`: requests being served;
    `queued`: requests that wait for a replica; `p95`: seconds; `custom`: the operator's own number; `ready`: replicas
    that served.
    """

    at: datetime
    seconds: float
    qps: float | None = None
    inflight: float | None = None
    queued: float | None = None
    p95: float | None = None
    custom: float | None = None
    ready: int = 0


@dataclass(frozen=True, slots=True)
class Policy:
    """`replica_policy` of a spec. The amounts are per replica; None: that signal is not looked at.

    `qps` is a number, or one for each accelerator. `p95`: seconds that the latency should stay under.
    """

    minimum: int
    maximum: int
    qps: float | Mapping[str, float] | None = None
    inflight: float | None = None
    queue: float | None = None
    p95: float | None = None
    custom: float | None = None
    overprovision: int = 0
    upscale_delay: float = 300.0
    downscale_delay: float = 1200.0

    @property
    def measured(self) -> bool:
        """True when some signal moves the target."""
        return any(part is not None for part in (self.qps, self.inflight, self.queue, self.p95, self.custom))


@dataclass(frozen=True, slots=True)
class Memory:
    """What must outlive a restart: the target by load, and since when a burst is on. The rest is in the samples."""

    target: int | None = None
    panic_since: datetime | None = None
    panic_until: datetime | None = None

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "target": self.target,
            "panic_since": self.panic_since.isoformat() if self.panic_since else None,
            "panic_until": self.panic_until.isoformat() if self.panic_until else None,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Memory":
        """From what `to_json` gave; an empty object is a beginning."""
        since, until = data.get("panic_since"), data.get("panic_until")
        return cls(
            data.get("target"),
            datetime.fromisoformat(since) if since else None,
            datetime.fromisoformat(until) if until else None,
        )


@dataclass(frozen=True, slots=True)
class Decision:
    """How many replicas there should be from now on, and why. `inputs`: the figures that it was made from."""

    target: int
    memory: Memory
    reason: str
    changed: bool = False
    inputs: Mapping[str, float | int | None] = field(default_factory=dict)
