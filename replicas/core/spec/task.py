"""The whole spec: SkyPilot's task fields, the service, and our own keys."""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Discriminator, Field, PlainValidator, Tag, WithJsonSchema

from replicas.core.spec.errors import refuse
from replicas.core.spec.kinds import (
    Envs,
    Flag,
    FreeList,
    FreeMap,
    Line,
    Ordinal,
    Section,
    Text,
    as_choice,
    names_of,
    shape,
)
from replicas.core.spec.resources import Resources
from replicas.core.spec.scalars import as_text, describe, each
from replicas.core.spec.service import Pool, Service

NAME_RULE = re.compile(r"[a-zA-Z]([-_.a-zA-Z0-9]*[a-zA-Z0-9])?")
LONGEST_NAME = 63
_PROVIDER_RULE = re.compile(r"[a-z][a-z0-9_-]*")
HOST_PROVIDERS = frozenset({"local", "fake"})  # those that give each replica a port of its own in $PORT


def as_name(value: object) -> str:
    """The name of a service, by SkyServe's rule."""
    text = as_text(value)
    if not NAME_RULE.fullmatch(text):
        rule = "begin with a letter, go on with letters, digits, `-`, `_` and `.`, and end with a letter or digit"
        raise refuse(f"{describe(text)} is no name of a service: it must {rule}")
    if len(text) > LONGEST_NAME:
        raise refuse(f"must have at most {LONGEST_NAME} characters, but has {len(text)}")
    return text


def _provider(value: object) -> str:
    text = as_text(value)
    if not _PROVIDER_RULE.fullmatch(text):
        raise refuse(f"must be the name of a provider such as local, but is {describe(value)}")
    return text


def _sources(value: object) -> Any:
    return [as_text(item) for item in value] if isinstance(value, list | tuple) else as_text(value)


class Repository(Section):
    """A workdir that is cloned with git."""

    url: Line
    ref: Line | None = None


class Storage(Section):
    """A file mount with more than a source."""

    name: Line | None = None
    source: Annotated[Any, PlainValidator(_sources), WithJsonSchema({"type": ["string", "array"]})] = None
    store: Line | None = None
    persistent: Flag | None = None
    mode: Line | None = None
    mount_options: Line | None = None
    type: Line | None = None
    config: FreeMap | None = None


def _secret_names(value: object) -> list[str]:
    if not isinstance(value, list | tuple):
        raise refuse(f"must be a list of names, but is {describe(value)}")
    return sorted(each(dict(enumerate(value)), as_text, "names").values())


_SECRETS_SCHEMA = {
    "anyOf": [
        {"type": "object", "additionalProperties": {"type": ["string", "integer", "number", "null"]}},
        {"type": "array", "items": {"type": "string"}},
    ]
}

Workdir = Annotated[Annotated[Line, Tag("<text>")] | Annotated[Repository, Tag("<fields>")], Discriminator(shape)]
FileMount = Annotated[Annotated[Line, Tag("<text>")] | Annotated[Storage, Tag("<fields>")], Discriminator(shape)]
Name = Annotated[
    str,
    PlainValidator(as_name),
    WithJsonSchema({"type": "string", "pattern": f"^{NAME_RULE.pattern}$", "maxLength": LONGEST_NAME}),
]
Provider = Annotated[str, PlainValidator(_provider), WithJsonSchema({"type": "string"})]
Scope = Annotated[str, PlainValidator(as_choice("version", "replica")), names_of("version", "replica")]
SecretNames = Annotated[list[str], PlainValidator(_secret_names), WithJsonSchema(_SECRETS_SCHEMA)]


class Spec(Section):
    """What the user wants: immutable, without the values of secrets. Made by `parse`, or from its JSON form."""

    name: Name = Field(description="Name of the service.")
    provider: Provider = Field(default="local", description="Where the replicas run.")
    workdir: Workdir | None = Field(default=None, description="Directory that each replica gets a copy of.")
    num_nodes: Ordinal = Field(default=1, description="Machines for one replica.")
    envs: Envs = Field(
        default_factory=dict, description="Environment variables; one without a value is given at apply."
    )
    secrets: SecretNames = Field(default_factory=list, description="As envs, but masked and stored apart.")
    file_mounts: dict[str, FileMount] = Field(default_factory=dict, description="Files to place: target: source.")
    resources: Resources = Field(default_factory=lambda: Resources(), description="What a replica needs.")
    setup: Text | None = Field(default=None, description="Commands that prepare the environment (bash).")
    setup_scope: Scope = Field(
        default="version", description="Run setup once for a version and host, or for every replica."
    )
    run: Text | None = Field(default=None, description="Commands that are the replica (bash); it listens on $PORT.")
    service: Service = Field(default_factory=lambda: Service(), description="Replicas, probes, updates.")
    pool: Pool | None = Field(default=None, description="A pool of workers in place of a service.")
    fake: FreeMap | None = Field(default=None, description="What the provider `fake` is to act out.")
    config: FreeMap | None = None
    volumes: FreeMap | None = None
    volume_mounts: FreeList | None = None
    managed_secrets: FreeList | None = None
    inputs: FreeMap | None = None
    outputs: FreeMap | None = None
    file_mounts_mapping: FreeMap | None = None
    api_server_access: Flag | None = None
    event_callback: Text | None = None
    metadata: FreeMap | None = Field(default=None, alias="_metadata")

    @property
    def target(self) -> int:
        """Replicas to begin with."""
        pool = self.pool or self.service.pool
        if pool:
            return pool.target
        policy = self.service.replica_policy
        counts = (policy.min_replicas if policy else None, self.service.replicas, self.service.workers, 1)
        return next(count for count in counts if count is not None)

    @property
    def most(self) -> int:
        """Replicas at most, whatever the load."""
        policy, pool = self.service.replica_policy, self.pool or self.service.pool
        limit = policy.max_replicas if policy else pool.max_workers if pool else None
        return max(self.target, limit or 0)

    @property
    def port(self) -> int | None:
        """The port that the spec gives the replica, or None where it takes $PORT as it comes."""
        if self.service.ports is not None:
            return self.service.ports
        ports = self.resources.choices()[0].ports or []
        return int(ports[0]) if len(ports) == 1 and ports[0].isdigit() else None

    def to_json(self) -> dict[str, Any]:
        """The spec as JSON values with all defaults written out; no value of a secret is in it."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Spec":
        """The spec of a JSON form that `to_json` gave. Raises pydantic.ValidationError for anything else."""
        return cls.model_validate(dict(data))

    def digest(self) -> str:
        """SHA-256 (hex) of the JSON form: equal specs have equal digests."""
        return _digest(self.to_json())

    def process_digest(self) -> str:
        """SHA-256 (hex) of all that a running replica was made from: everything but the service section.

        The port counts where the provider opens just that port. Values of secrets are not in it: compare those apart.
        """
        form = self.to_json()
        form.pop("service")
        form.pop("pool", None)
        if self.provider not in HOST_PROVIDERS:
            form["port"] = self.port
        return _digest(form)


def _digest(form: Mapping[str, Any]) -> str:
    text = json.dumps(form, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
