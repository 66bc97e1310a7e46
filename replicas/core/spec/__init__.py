"""The service YAML: SkyPilot's task fields, SkyServe's service section and our own keys, read, checked and compared."""

from replicas.core.spec.diff import FieldChange, LineChange, describe, diff, line_changes
from replicas.core.spec.errors import SpecError, SpecErrors
from replicas.core.spec.expand import expand
from replicas.core.spec.masking import MASK
from replicas.core.spec.parse import Parsed, parse
from replicas.core.spec.ports import hardcoded_port, listens_on_one_port
from replicas.core.spec.resources import Resources
from replicas.core.spec.schema import schema, schema_text
from replicas.core.spec.service import LivenessProbe, Pool, ReadinessProbe, ReplicaPolicy, Restart, Rollout, Service
from replicas.core.spec.task import Repository, Spec, Storage

__all__ = [
    "MASK",
    "FieldChange",
    "LineChange",
    "LivenessProbe",
    "Parsed",
    "Pool",
    "ReadinessProbe",
    "ReplicaPolicy",
    "Repository",
    "Resources",
    "Restart",
    "Rollout",
    "Service",
    "Spec",
    "SpecError",
    "SpecErrors",
    "Storage",
    "describe",
    "diff",
    "expand",
    "hardcoded_port",
    "line_changes",
    "listens_on_one_port",
    "parse",
    "schema",
    "schema_text",
]
