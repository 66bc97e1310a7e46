"""Replays a trace of requests through the autoscaler and the planner: what would have happened, second by second."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from replicas.core.autoscaler import Memory, Policy, Sample, decide
from replicas.core.autoscaler.recent import Recent
from replicas.core.planner import Create, plan
from replicas.core.values import Desired, ReplicaState
from replicas.core.views import ReplicaView, ServiceView

START = datetime(2000, 1, 1, tzinfo=UTC)
SPAN = 7200  # seconds of samples that are kept
EVERY = 2  # seconds between two decisions

Scaler = Callable[[Sequence[Sample], datetime, int], int]


@dataclass(frozen=True, slots=True)
class Settings:
    """`launch_seconds`: from the decision to a ready replica; `carries`: requests a second that one replica carries;
    `hold_seconds`: how long a request waits for the first replica before it is refused."""

    launch_seconds: float = 30.0
    carries: float = 1.0
    hold_seconds: float = 60.0


@dataclass(slots=True)
class Outcome:
    """What a replay came to. `overloaded`: seconds in which each ready replica had more than it carries."""

    seconds: int = 0
    requests: float = 0.0
    overloaded: int = 0
    held: float = 0.0
    refused: float = 0.0
    replica_seconds: float = 0.0
    changes: int = 0
    most: int = 0
    decisions: list[tuple[int, int, str]] = field(default_factory=list)

    @property
    def replica_hours(self) -> float:
        """Hours of live replicas, launching ones too."""
        return self.replica_seconds / 3600


def autoscaled(policy: Policy) -> tuple[Scaler, list[tuple[int, str]]]:
    """A scaler that decides as the control plane does, and the list that it notes (target, reason) of changes in."""
    state = {"memory": Memory()}
    notes: list[tuple[int, str]] = []

    def scale(samples: Sequence[Sample], now: datetime, target: int) -> int:
        made = decide(policy, samples, state["memory"], now, target=target)
        state["memory"] = made.memory
        if made.changed:
            notes.append((made.target, made.reason))
        return made.target

    return scale, notes


def replay(
    trace: Iterable[float],
    scaler: Scaler,
    settings: Settings,
    *,
    target: int,
    notes: Sequence[tuple[int, str]] = (),
    every: int = EVERY,
) -> Outcome:
    """Run `trace`, the requests of each second, beginning with `target` ready replicas."""
    world = _World(settings, target)
    result = Outcome()
    for second, requests in enumerate(trace):
        now = START + timedelta(seconds=second + 1)
        world.serve(requests, second, result)
        if second % every == 0:
            wanted = scaler(world.recent.all(), now, world.service.target)
            if wanted != world.service.target:
                result.changes += 1
                reason = notes[-1][1] if notes else ""
                result.decisions.append((second, wanted, reason))
                world.service = replace(world.service, target=wanted)
                world.stale = True
        world.settle(now)
        result.replica_seconds += len(world.replicas)
        result.most = max(result.most, len(world.replicas))
    return result


class _World:
    """One service whose launches always work, after a while."""

    def __init__(self, settings: Settings, target: int) -> None:
        self.settings = settings
        self.service = ServiceView(id=1, name="simulated", desired=Desired.UP, target=target, version=1, proven=True)
        self.replicas: list[ReplicaView] = []
        self.recent = Recent(SPAN)
        self.queue: deque[tuple[int, float]] = deque()
        self.last = 0
        self.stale = True
        for _ in range(target):
            self._create(START, ReplicaState.READY)

    @property
    def ready(self) -> int:
        return sum(replica.state is ReplicaState.READY for replica in self.replicas)

    def serve(self, requests: float, second: int, result: Outcome) -> None:
        """One second of traffic: served, held while nothing is ready, refused after too long."""
        ready = self.ready
        result.seconds += 1
        result.requests += requests
        if requests > ready * self.settings.carries * (1 + 1e-9):
            result.overloaded += 1
        if ready == 0:
            if requests and self.settings.hold_seconds > 0:
                self.queue.append((second, requests))
                result.held += requests
            else:
                result.refused += requests
            while self.queue and second - self.queue[0][0] > self.settings.hold_seconds:
                result.refused += self.queue.popleft()[1]
        else:
            self.queue.clear()
        waiting = sum(count for _, count in self.queue)
        self.recent.add(Sample(START + timedelta(seconds=second + 1), 1.0, qps=requests, queued=waiting, ready=ready))

    def settle(self, now: datetime) -> None:
        """Replicas become ready, and the planner's wishes come true."""
        late = timedelta(seconds=self.settings.launch_seconds)
        for place, replica in enumerate(self.replicas):
            if replica.state is ReplicaState.STARTING and now - replica.created_at >= late:
                self.replicas[place] = replace(replica, state=ReplicaState.READY, state_since=now, ready_at=now)
                self.stale = True
        while self.stale:
            self.stale = False
            for action in plan(self.service, self.replicas, now).actions:
                self.stale = True
                if isinstance(action, Create):
                    self._create(now, ReplicaState.STARTING)
                else:
                    self.replicas = [one for one in self.replicas if one.id != getattr(action, "replica_id", None)]

    def _create(self, now: datetime, state: ReplicaState) -> None:
        self.last += 1
        ready = now if state is ReplicaState.READY else None
        self.replicas.append(ReplicaView(self.last, self.last, 1, state, now, now, launched_at=now, ready_at=ready))
