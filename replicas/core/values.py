"""The words of the domain as closed sets of values."""

from enum import StrEnum


class ReplicaState(StrEnum):
    """Where a replica is in its life; the names are SkyServe's."""

    PENDING = "PENDING"
    PROVISIONING = "PROVISIONING"
    STARTING = "STARTING"
    READY = "READY"
    NOT_READY = "NOT_READY"
    DRAINING = "DRAINING"
    SHUTTING_DOWN = "SHUTTING_DOWN"
    TERMINATED = "TERMINATED"
    FAILED = "FAILED"
    FAILED_PROVISION = "FAILED_PROVISION"
    FAILED_INITIAL_DELAY = "FAILED_INITIAL_DELAY"
    FAILED_PROBING = "FAILED_PROBING"
    FAILED_CLEANUP = "FAILED_CLEANUP"
    PREEMPTED = "PREEMPTED"

    @property
    def ended(self) -> bool:
        """True when nothing can happen to the replica any more."""
        return self in ENDS

    @property
    def failed(self) -> bool:
        """True for the ends that count as a failure of the version (a preemption or a wish to end does not)."""
        return self in FAILURES


ENDS = frozenset(
    {
        ReplicaState.TERMINATED,
        ReplicaState.FAILED,
        ReplicaState.FAILED_PROVISION,
        ReplicaState.FAILED_INITIAL_DELAY,
        ReplicaState.FAILED_PROBING,
        ReplicaState.FAILED_CLEANUP,
        ReplicaState.PREEMPTED,
    }
)
OUTCOMES = ENDS - {ReplicaState.FAILED_CLEANUP}
FAILURES = frozenset(
    {
        ReplicaState.FAILED,
        ReplicaState.FAILED_PROVISION,
        ReplicaState.FAILED_INITIAL_DELAY,
        ReplicaState.FAILED_PROBING,
    }
)
LIVE = frozenset(ReplicaState) - ENDS


class ServiceStatus(StrEnum):
    """What is true of a service, derived from its replicas; the names are SkyServe's where it has one."""

    CONTROLLER_INIT = "CONTROLLER_INIT"
    REPLICA_INIT = "REPLICA_INIT"
    READY = "READY"
    NOT_READY = "NOT_READY"
    NO_REPLICA = "NO_REPLICA"
    FAILED = "FAILED"
    SHUTTING_DOWN = "SHUTTING_DOWN"
    FAILED_CLEANUP = "FAILED_CLEANUP"
    DOWN = "DOWN"


class Desired(StrEnum):
    """What the user wants of a service."""

    UP = "UP"
    DOWN = "DOWN"


class RolloutKind(StrEnum):
    """What began a rollout."""

    FIRST = "first"
    UPDATE = "update"
    RESTART = "restart"
    ROLLBACK = "rollback"


class RolloutMode(StrEnum):
    """How a rollout goes about it. In place: the running replicas are adopted."""

    IN_PLACE = "in_place"
    ROLLING = "rolling"
    BLUE_GREEN = "blue_green"


class RolloutState(StrEnum):
    """Where a rollout is: PROGRESSING (also while it is paused), or how it ended."""

    PROGRESSING = "PROGRESSING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    ABORTED = "ABORTED"
    SUPERSEDED = "SUPERSEDED"


class OperationKind(StrEnum):
    """What an operation does to its replica."""

    LAUNCH = "LAUNCH"
    DOWN = "DOWN"


class OperationStatus(StrEnum):
    """Where an operation is: QUEUED and WAITING have no owner, RUNNING has one, the rest are ends."""

    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    WAITING = "WAITING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"

    @property
    def live(self) -> bool:
        """True while the operation can still do something."""
        return self in LIVE_OPERATIONS


LIVE_OPERATIONS = frozenset({OperationStatus.QUEUED, OperationStatus.RUNNING, OperationStatus.WAITING})


class Lane(StrEnum):
    """The two queues, which never wait for each other."""

    LONG = "long"
    SHORT = "short"


class Occasion(StrEnum):
    """What people are told about by notices."""

    FAILED = "failed"
    ROLLOUT = "rollout"
    CRASH_LOOP = "crash_loop"
    RECOVERED = "recovered"


class NoticeKind(StrEnum):
    """How a notice is sent: our own signed JSON, or whatever apprise can reach."""

    WEBHOOK = "webhook"
    APPRISE = "apprise"


class NoticeState(StrEnum):
    """Where a notice is: QUEUED until it is sent, or given up."""

    QUEUED = "QUEUED"
    SENT = "SENT"
    FAILED = "FAILED"


class Scope(StrEnum):
    """How far an API token goes; each includes those before it."""

    READ = "read"
    OPERATE = "operate"
    DEPLOY = "deploy"


class Role(StrEnum):
    """What a person is here; a role is a group of this name."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"
