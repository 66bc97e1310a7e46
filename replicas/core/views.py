"""What decisions are made from: services, replicas and operations as plain values."""

from dataclasses import dataclass
from datetime import datetime

from replicas.core.values import (
    Desired,
    OperationKind,
    OperationStatus,
    ReplicaState,
    RolloutKind,
    RolloutMode,
    RolloutState,
)


@dataclass(frozen=True, slots=True)
class OperationView:
    """A live operation. Times are aware; `retry_at` is set while it waits.

    `enqueued_at`: when it was last handed to the queue; `deliveries`: how often that was done since it last ran.
    """

    id: int
    kind: OperationKind
    status: OperationStatus
    service_id: int
    replica_id: int
    created_at: datetime
    enqueued_at: datetime | None = None
    retry_at: datetime | None = None
    cancelling: bool = False
    deliveries: int = 0


@dataclass(frozen=True, slots=True)
class ReplicaView:
    """A replica, live or ended. `retire_reason` is set when somebody wants it gone.

    `restarts`: failures in a row of the line of replicas that it continues; `replaces`: the number of the one it
    replaces. `in_flight`: requests it is serving, None where nothing measures them. `ready_at`: when it was ready for
    the first time. `adopted_at`: when it was given the number of its version. `probed_at`: when its readiness probe
    passed, as far as that was written down; None when it failed since.
    `probe_failure`: what its last readiness probe got, "" where that passed or none was written down.
    `reason`: of an ended replica, why it ended (not who cleaned up). `spot`: it may be taken back, False: it is on
    demand; None where nobody said.
    """

    id: int
    number: int
    version: int
    state: ReplicaState
    state_since: datetime
    created_at: datetime
    outcome: ReplicaState | None = None
    launched_at: datetime | None = None
    ready_at: datetime | None = None
    ended_at: datetime | None = None
    restarts: int = 0
    replaces: int | None = None
    retire_reason: str | None = None
    reason: str = ""
    operation: OperationView | None = None
    in_flight: int | None = None
    adopted_at: datetime | None = None
    probed_at: datetime | None = None
    probe_failure: str = ""
    spot: bool | None = None


@dataclass(frozen=True, slots=True)
class SpotPolicy:
    """The mix of `service.replica_policy`: `base` replicas are on demand, the rest are spot.

    `dynamic`: further ones on demand stand in while spot ones are missing. `spare`: how many of the target are there to
    spare (num_overprovision), which nobody stands in for; `least`: replicas that are never counted as such.
    """

    base: int = 0
    dynamic: bool = False
    spare: int = 0
    least: int = 0


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """`service.restart`: seconds, and how many never-ready failures of a version stop its launches."""

    backoff_seconds: float = 10.0
    max_backoff_seconds: float = 300.0
    reset_after_seconds: float = 600.0
    max_never_ready: int = 5


@dataclass(frozen=True, slots=True)
class Surge:
    """`service.rollout` bounds while a version replaces another: numbers of replicas, rounded for the target."""

    max_surge: int = 1
    max_unavailable: int = 0


@dataclass(frozen=True, slots=True)
class RolloutPolicy:
    """The rest of `service.rollout`, and the spec's `service.progress_deadline`. Times in seconds.

    `canary`: as the spec has it, a number or a percent of the target; None for none. `one_port`: every replica listens
    on the same port of one host, so two can never run side by side.
    """

    canary: int | str | None = None
    bake_seconds: float | None = None
    auto_rollback: bool = True
    progress_deadline: float = 1800.0
    min_ready_seconds: float = 10.0
    keep_old_seconds: float = 0.0
    max_failures: int = 3
    one_port: bool = False


@dataclass(frozen=True, slots=True)
class RolloutView:
    """The latest move of a service to `to_version`, going on or ended; see the model for the fields.

    A paused one is still PROGRESSING. Decisions are fenced by `revision`: they are void once it has moved on.
    """

    id: int
    revision: int
    kind: RolloutKind
    mode: RolloutMode
    state: RolloutState
    from_version: int
    to_version: int
    good_version: int
    started_at: datetime
    progressed_at: datetime
    held: frozenset[int] = frozenset()
    best: int = 0
    reason: str = ""
    paused_at: datetime | None = None
    promoted_at: datetime | None = None
    switched_at: datetime | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ServiceView:
    """A service and what is wanted of it.

    `compatible`: version numbers whose running replicas the active version may adopt in place.
    `forgiven_at`: failures before it do not count (the user asked to try again, or a new version came).
    `proven`: a replica of the active version that had not ended by then has been ready, also one out of sight by now.
    `rollout`: the latest, going on or ended; None for a service that is older than rollouts are. `good_fits`: the
    version that it turns back to asks for the same process as the active one. `initial_delay`: seconds from a launch in
    which a replica of the active version may become ready. `spot`: the mix of the active version; None where each
    launch takes what its resources say.
    """

    id: int
    name: str
    desired: Desired
    target: int
    version: int
    restart: RestartPolicy = RestartPolicy()
    surge: Surge = Surge()
    drain_seconds: float = 30.0
    compatible: frozenset[int] = frozenset()
    forgiven_at: datetime | None = None
    proven: bool = False
    policy: RolloutPolicy = RolloutPolicy()
    rollout: RolloutView | None = None
    good_fits: bool = False
    initial_delay: float = 1200.0
    spot: SpotPolicy | None = None
