"""What the API takes and gives. The rows are those of `models.public`, which the tests compare field by field."""

from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import ConfigDict, Field, field_validator

from replicas.core.spec.kinds import MOST_REPLICAS
from replicas.core.values import (
    Desired,
    OperationKind,
    ReplicaState,
    RolloutKind,
    RolloutMode,
    RolloutState,
    Scope,
    ServiceStatus,
)

Moment = Annotated[str, Field(json_schema_extra={"format": "date-time"})]


class Given(Schema):
    """Something that a client sends: a field that is not known is a mistake, not a wish."""

    model_config = ConfigDict(extra="forbid")

    @field_validator("*")
    @classmethod
    def _storable(cls, value: Any) -> Any:
        """PostgreSQL stores no NUL, which no name or message has."""
        parts = [*value, *value.values()] if isinstance(value, dict) else [value]
        if any(isinstance(part, str) and "\0" in part for part in parts):
            raise ValueError("it holds a NUL character")
        return value


class Fault(Schema):
    """One fault of a spec, at its place in the text."""

    line: int | None = None
    column: int | None = None
    path: str = ""
    message: str


class Problem(Schema):
    """Why something was refused: `code` for programs, the rest for people. `faults` are those of a spec."""

    code: str
    message: str
    next: str
    faults: list[Fault] = []


class Error(Schema):
    """The body of every answer that is not a success."""

    error: Problem


class ServiceRow(Schema):
    """A service. `version` is the number of its active version."""

    id: int
    revision: int
    name: str
    status: ServiceStatus
    reason: str
    desired: Desired
    version: int | None
    provider: str
    target: int
    pinned: bool
    ready: int
    live: int
    endpoint: str | None
    endpoint_reason: str
    owner: str | None
    created_at: Moment
    updated_at: Moment


class ReplicaRow(Schema):
    """A replica."""

    id: int
    revision: int
    service_id: int
    number: int
    uid: str
    version: int
    state: ReplicaState
    outcome: ReplicaState | None
    reason: str
    state_since: Moment
    retire_reason: str
    restarts: int
    replaces: int | None
    provider: str
    spot: bool | None
    accelerators: str | None
    place: str | None
    url: str | None
    pid: int | None
    last_lines: list[str]
    probe_at: Moment | None
    probe_ok: bool | None
    probe_detail: str
    probe_excerpt: str
    probe_seconds: float | None
    liveness_failing_since: Moment | None
    created_at: Moment
    provisioning_at: Moment | None
    launched_at: Moment | None
    ready_at: Moment | None
    ended_at: Moment | None


class RolloutRow(Schema):
    """A move of a service to a version; versions are numbers, 0 for none."""

    id: int
    revision: int
    service_id: int
    kind: RolloutKind
    mode: RolloutMode
    state: RolloutState
    reason: str
    from_version: int
    to_version: int
    good_version: int
    held: list[int]
    best: int
    actor: str
    started_at: Moment
    progressed_at: Moment
    paused_at: Moment | None
    promoted_at: Moment | None
    switched_at: Moment | None
    ended_at: Moment | None


class VersionRow(Schema):
    """A version without its text."""

    id: int
    revision: int
    service_id: int
    number: int
    digest: str
    message: str
    plan: list[str]
    policy: dict[str, Any]
    created_by: str
    created_at: Moment


class VersionText(VersionRow):
    """A version with its YAML; the values of secrets are masked."""

    yaml: str


class OperationRow(Schema):
    """A launch or a down. `status` is QUEUED, RUNNING, WAITING, CANCELLING, SUCCEEDED, FAILED or CANCELLED."""

    id: int
    revision: int
    service_id: int
    replica_id: int
    number: int
    kind: OperationKind
    lane: str
    status: str
    reason: str
    waits_for: str
    error: str
    cancel_reason: str
    attempts: int
    worker: str | None
    peak_memory: int | None
    cpu_seconds: float
    created_at: Moment
    started_at: Moment | None
    ended_at: Moment | None
    service: str


class EventRow(Schema):
    """Something that happened; `data` is the public row of its object after it."""

    id: int
    at: Moment
    service: str
    kind: str
    object_id: int
    number: int | None
    revision: int
    trigger: str
    old: str
    new: str
    reason: str
    actor: str
    source: str
    address: str
    token: str
    data: dict[str, Any]


class Services(Schema):
    """Services by name. Events after `cursor` tell what has changed since."""

    services: list[ServiceRow]
    cursor: int


class Service(Schema):
    """A service with its latest rollout and its replicas: the live ones, and the newest that have ended."""

    service: ServiceRow
    rollout: RolloutRow | None
    replicas: list[ReplicaRow]
    cursor: int


class Versions(Schema):
    """The newest versions, newest first."""

    versions: list[VersionRow]


class Events(Schema):
    """Events, oldest first. Ask again with `after` = `cursor`; `gap`: some after yours are pruned."""

    events: list[EventRow]
    cursor: int
    more: bool
    gap: bool


class Operations(Schema):
    """Operations, newest first."""

    operations: list[OperationRow]


class Plan(Schema):
    """What applying a text would do. `kind`: create, update, revive, scale, unchanged; `version`: the active one's."""

    kind: str
    name: str
    version: int
    changes: list[str]
    plan: list[str]
    warnings: list[str]


class Applied(Schema):
    """What applying a text has done. `change` is created, updated, revived, scaled or unchanged."""

    change: str
    version: int
    changes: list[str]
    plan: list[str]
    service: ServiceRow
    rollout: RolloutRow | None


class Done(Schema):
    """A wish was written down; `message` is a sentence, the rest what is true now."""

    message: str
    service: ServiceRow
    rollout: RolloutRow | None = None


class Me(Schema):
    """Who asks, and how far the token reaches."""

    user: str
    token: str
    scope: Scope
    services: list[str]
    expires_at: Moment | None


class Options(Given):
    """What may be said beside the YAML, in the query or in the JSON."""

    name: str | None = Field(None, max_length=200, description="in place of the name in the text")
    message: str = Field("", max_length=500, description="why, for the history")
    mode: Literal["rolling", "blue_green"] | None = Field(None, description="in place of what the text says")
    expected_version: int | None = Field(None, ge=0, description="refuse unless this version is active; 0 for none")
    dry_run: bool = Field(False, description="only say what would change")


class ApplyIn(Options):
    """A YAML with what is given beside it."""

    yaml: str
    env: dict[str, str] = Field({}, description="values of environment variables")
    secrets: dict[str, str] = Field({}, description="values of secrets: masked in logs, stored encrypted")


Exactly = Annotated[int, Field(strict=True)]  # a number, and no true, no text and no 2.0


class ScaleIn(Given):
    """How many replicas are wanted."""

    target: Exactly = Field(ge=0, le=MOST_REPLICAS)


class RestartIn(Given):
    """`expected_version`: the one to be restarted, so that a repeated request restarts once."""

    expected_version: Exactly | None = Field(None, ge=0)


class SteerIn(Given):
    """`rollout`: the id of the one that is meant, so that a late request meets no other."""

    rollout: Exactly | None = Field(None, ge=1)


class RollbackIn(Given):
    """Where to go back to; without it to the last other version that proved itself."""

    version: Exactly | None = Field(None, ge=1)
    message: str = Field("", max_length=500)
    expected_version: Exactly | None = Field(None, ge=0)


class PurgeIn(Given):
    """`purge`: forget it as well, with its history, once it is down."""

    purge: bool = False
