"""Immutable versions are made here: of a draft, or again of an earlier version."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from replicas import clock
from replicas.actions.sealing import seal
from replicas.actions.transition import emit
from replicas.core.values import RolloutMode
from replicas.models import Service, ServiceVersion
from replicas.models.public import version_row


@dataclass(frozen=True, slots=True)
class Draft:
    """A version that is about to be: everything that a row needs. `uid` names its directory at the provider.

    `mode` is how the rollout goes about it where the spec is not to decide; `plan` are lines that say what it changes.
    """

    name: str
    text: str
    spec: Mapping[str, Any]
    digest: str
    process_digest: str
    target: int
    uid: str = field(default_factory=lambda: uuid.uuid4().hex)
    files_digest: str = ""
    base: str = ""
    overrides: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    message: str = ""
    mode: RolloutMode | None = None
    plan: Sequence[str] = ()


class Conflict(Exception):
    """Somebody else changed the service meanwhile; the text says who is where, and to look again."""


def make(service: Service, draft: Draft, *, actor: str) -> ServiceVersion:
    """The next version of the service, by its draft. `service.last_version` grows with it; the caller writes that."""
    return _insert(
        service,
        actor,
        uid=draft.uid,
        files_uid=draft.uid,
        text=draft.text,
        spec=dict(draft.spec),
        digest=draft.digest,
        process_digest=draft.process_digest,
        files_digest=draft.files_digest,
        base=draft.base,
        overrides=dict(draft.overrides),
        sealed=seal(draft.secrets),
        message=draft.message,
        plan=list(draft.plan),
    )


def make_again(
    service: Service,
    old: ServiceVersion,
    *,
    message: str,
    actor: str,
    plan: Sequence[str],
    apart: bool = False,
    kept: bool = True,
) -> ServiceVersion:
    """The next version with text, spec, secrets and files of an earlier one.

    `apart`: no replica that runs fits it, so all are replaced; else those of the earlier one go on under its number.
    `kept`: what the provider keeps of the earlier one (files, setup) is still there and shared.
    """
    number, uid = service.last_version + 1, uuid.uuid4().hex
    return _insert(
        service,
        actor,
        uid=uid,
        files_uid=old.files_uid if kept else uid,
        text=old.text,
        spec=old.spec,
        digest=old.digest,
        process_digest=f"{number}:{old.process_digest}"[:64] if apart else old.process_digest,
        files_digest=old.files_digest,
        base=old.base,
        overrides=old.overrides,
        sealed=old.sealed,
        message=message,
        plan=list(plan),
    )


def _insert(service: Service, actor: str, **columns: Any) -> ServiceVersion:
    service.last_version += 1
    version = ServiceVersion.objects.create(
        service=service, number=service.last_version, created_by=actor, created_at=clock.now(), **columns
    )
    emit(
        service,
        "version",
        version.pk,
        1,
        "version_made",
        version_row(version),
        reason=version.message or f"version {version.number}",
        actor=actor,
    )
    return version
