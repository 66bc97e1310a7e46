"""From the YAML text of a service to its next version: read, checked, compared with the active one, carried out.

Browser, Django admin and commands all come through here. Reading writes nothing; `carry_out` copies the files of the
version through its provider and applies it.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.utils.crypto import salted_hmac

from replicas.actions import endpoints, scaling, services
from replicas.actions.plans import plan_of
from replicas.actions.sealing import Unsealable, unseal
from replicas.core.autoscaler import policy_from
from replicas.core.spec import Parsed, Spec, SpecError, SpecErrors, describe, diff, hardcoded_port, parse
from replicas.core.spec.errors import Path
from replicas.core.spec.loader import Document, Fields, Node, Scalar, decode, load
from replicas.core.spec.report import Report
from replicas.core.values import Desired, RolloutMode
from replicas.core.wording import some
from replicas.models import Service, ServiceVersion
from replicas.providers import registry
from replicas.providers.base import Provider, ProviderError

OTHER_FILES = "files: what workdir and file_mounts hold has changed"
_FIELD = re.compile(r"([a-z_]+(?:\.[A-Za-z_]+|\[\d+\])*)(?::|\s)")


class IntakeError(Exception):
    """A spec that cannot be carried out here. The message names the thing, the cause and the next step."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What carrying a text out would do.

    `kind` is create, update, revive (it is down), scale (the same version, another number) or unchanged; `changes` are
    lines for people on what differs, `plan` on what becomes of the replicas. `active_number` is the number of the
    active version, 0 for none. `basis` is the process digest without the files, `active_digest` that of the active one.
    """

    draft: services.Draft
    kind: str
    changes: list[str]
    active_number: int
    warnings: list[str]
    basis: str = ""
    active_digest: str = ""
    plan: Sequence[str] = ()


def propose(
    text: str | bytes,
    *,
    name: str | None = None,
    env: Mapping[str, str] | None = None,
    secrets: Mapping[str, str] | None = None,
    base: str | None = None,
    keep_base: bool = False,
    message: str = "",
    files: bool = False,
    mode: RolloutMode | None = None,
) -> Proposal:
    """Read a text and say what it would change. Writes no row. Raises SpecErrors or IntakeError.

    `env` and `secrets` are values given beside the text. Where it has none, those of the active version are kept (of a
    secret also where the text has ***). `base` is the directory that relative paths start from; without it, the one of
    the active version; with `keep_base` that one's comes first. `mode`: how the rollout goes about it, in place of what
    the text says. `files`: also copy and compare what is in the workdir and in local file_mounts, otherwise `carry_out`
    finds that out; the copy stays for `carry_out`, so whoever does not call that calls `discard`.
    """
    document = load(decode(text))
    service = _service_of(document, name)
    active = service.version if service else None
    kept = active.base if active else ""
    base = (kept or base if keep_base else base or kept) or None
    parsed = _read(document.text, active, name=name, env=env, secrets=secrets, base=base)
    provider = registry.get(parsed.spec.provider, settings.ROLLCALL.home)
    refuse(document, [*_complaints(parsed.spec, provider), *_port_taken(parsed.spec)])
    draft, basis = _draft(parsed, active, env or {}, base, message)
    draft = replace(draft, mode=mode, target=_target(parsed.spec, service))
    number, running = (active.number, active.process_digest) if active else (0, "")
    content, warnings = "", []
    if files:
        content = _snapshot(provider, draft)
    elif has_files(parsed.spec):
        content = active.files_digest if active else ""
        if active is not None:
            warnings = ["Whether the files of workdir and file_mounts have changed is found out when this is applied."]
    draft = _with_files(draft, basis, content, running)
    kind = _kind(draft, service)
    plan = plan_of(draft, parsed.spec, service, kind)
    changes = _changes(draft, parsed, service)
    return Proposal(replace(draft, plan=plan), kind, changes, number, warnings, basis, running, plan)


def carry_out(
    proposal: Proposal, *, actor: str, owner: User | None = None, expected: int | None = None
) -> services.Applied:
    """Make the proposal true. `expected`: the number of the version that it was made from, 0 for none.

    Raises SpecErrors or IntakeError when the files cannot be copied, and Conflict when another version is active by
    now; then, and when nothing changes, nothing of the copy stays.
    """
    provider = registry.get(proposal.draft.spec["provider"], settings.ROLLCALL.home)
    kept = False
    try:
        content = _snapshot(provider, proposal.draft)
        draft = _with_files(proposal.draft, proposal.basis, content, proposal.active_digest)
        if draft.process_digest != proposal.draft.process_digest:
            draft = _planned_anew(draft)
        applied = services.apply(draft, actor=actor, owner=owner, expected=expected)
        kept = applied.version.uid == draft.uid
    finally:
        if not kept:
            discard(proposal)
    return applied


def _planned_anew(draft: services.Draft) -> services.Draft:
    """The draft with the plan for its files, which are another's than was thought."""
    service = Service.objects.select_related("version").filter(name=draft.name).first()
    return replace(draft, plan=plan_of(draft, Spec.from_json(draft.spec), service, _kind(draft, service)))


def discard(proposal: Proposal) -> None:
    """Give up a proposal: what its provider keeps for it goes."""
    drop = getattr(registry.get(proposal.draft.spec["provider"], settings.ROLLCALL.home), "forget_version", None)
    if drop is not None:
        drop(proposal.draft.uid)


def scale(service: Service, target: int, *, actor: str, expected: str = "") -> None:
    """Want `target` replicas. Raises IntakeError, see `check_scale`; Conflict when the wish is not `expected`."""
    check_scale(service, target)
    if not services.scale(service.pk, target, actor=actor, expected=expected):
        raise IntakeError(f"Service {service.name} is gone. Look again at what there is.")


def release(service: Service, *, actor: str, expected: str = "") -> None:
    """Leave the number of replicas to the autoscaler again. Raises IntakeError where nobody fixed it; Conflict as
    `scale`."""
    if not scaling.release(service.pk, actor=actor, expected=expected):
        raise IntakeError(
            f"The number of replicas of {service.name} is not fixed by hand. There is nothing to release."
        )


def check_scale(service: Service, target: int) -> None:
    """Raise IntakeError where the active version cannot have so many replicas, or the service is down."""
    if service.desired == Desired.DOWN:
        raise IntakeError(f"Service {service.name} is taken down. Apply it again to bring it up.")
    if service.version is not None:
        spec = Spec.from_json(service.version.spec)
        wanted = spec.model_copy(
            update={"service": spec.service.model_copy(update={"replicas": target, "replica_policy": None})}
        )
        provider = registry.get(spec.provider, settings.ROLLCALL.home)
        before = set(_complaints(spec, provider))
        fresh = [complaint for complaint in _complaints(wanted, provider) if complaint not in before]
        if fresh:
            raise IntakeError(f"Service {service.name} cannot have {some(target)}: {'; '.join(fresh)}.")


def _service_of(document: Document, name: str | None) -> Service | None:
    """The service that the text is about, if there is one by now."""
    if name is None:
        part = document.root.child("name")
        name = part.text if isinstance(part, Scalar) else None
    return Service.objects.select_related("version").filter(name=name).first() if name else None


def _read(text: str, active: ServiceVersion | None, **given: Any) -> Parsed:
    """The parsed text, with what the active version keeps."""
    try:
        kept, lost = unseal(active.sealed) if active else {}, ""
    except Unsealable as error:
        kept, lost = {}, str(error)
    kept_env = active.overrides if active else {}
    try:
        return parse(text, kept_env=kept_env, kept_secrets=kept, providers=registry.names(), **given)
    except SpecErrors as errors:
        first = next((e for e in errors.errors if e.path.startswith("secrets")), None)
        if not lost or first is None:
            raise
        raise SpecErrors([*errors.errors, SpecError("secrets", first.line, first.column, lost)]) from None


def _complaints(spec: Spec, provider: Provider) -> list[str]:
    """Why the provider cannot carry the spec: "field: cause" each."""
    found = provider.check(spec.to_json())
    port = hardcoded_port(spec)
    return found if port is None or port in found else [*found, port]


def _port_taken(spec: Spec) -> list[str]:
    """The complaint about an `endpoint_port` of another service, for which `services.apply` asks again in its lock, or
    of the control plane itself."""
    port = spec.service.endpoint_port
    if not port:
        return []
    other = endpoints.holder(port, spec.name)
    found = endpoints.refusal(port, other) if other else endpoints.own_use(port, settings.ROLLCALL)
    return [found] if found else []


def refuse(document: Document, complaints: Iterable[str]) -> None:
    """Raise SpecErrors with the complaints, each at the line of the field that it begins with."""
    report = Report(document)
    for complaint in complaints:
        report.add(*_located(document, complaint))
    report.raise_if_any()


def _located(document: Document, complaint: str) -> tuple[Path, str]:
    """(path, message) of "resources.cpus: too many" or "file_mounts: ~/data: not there"; an empty path for others."""
    found = _FIELD.match(complaint)
    if found is None:
        return (), complaint
    path: Path = tuple(int(part) if part.isdigit() else part for part in re.findall(r"[A-Za-z_]+|\d+", found[1]))
    if document.root.child(path[0]) is None:
        return (), complaint
    rest = complaint[found.end() :].strip()
    part: Node | None = document.root
    for step in path:
        part = part.child(step) if part else None
    keys = part.fields if isinstance(part, Fields) else {}
    key = next((key for key in keys if rest.startswith((f"{key}: ", f"{key} "))), None)
    return (path, rest) if key is None else ((*path, key), rest[len(key) :].lstrip(": "))


def _draft(
    parsed: Parsed, active: ServiceVersion | None, env: Mapping[str, str], base: str | None, message: str
) -> tuple[services.Draft, str]:
    """The draft without its files, and the digest of what a replica is made from without them."""
    spec = parsed.spec
    sealed = _secrets_digest(parsed.secrets)
    given = {**(active.overrides if active else {}), **env}
    draft = services.Draft(
        name=spec.name,
        text=parsed.text,
        spec=spec.to_json(),
        digest=_joined(spec.digest(), sealed),
        process_digest="",
        target=spec.target,
        base=base or "",
        overrides={key: value for key, value in given.items() if spec.envs.get(key) == value},
        secrets=parsed.secrets,
        message=message,
    )
    basis = _joined(spec.process_digest(), sealed)
    return replace(draft, process_digest=basis), basis


def _target(spec: Spec, service: Service | None) -> int:
    """How many replicas to begin with: where the load decides, as many as it has asked for so far."""
    policy = policy_from(spec.to_json()["service"])
    if policy is None or service is None or service.version is None or service.desired == Desired.DOWN:
        return spec.target
    if service.pinned:
        return service.target
    return max(policy.minimum, min(policy.maximum, service.target))


def _secrets_digest(secrets: Mapping[str, str]) -> str:
    """A digest that tells other secrets from the same ones, of no use to who has not the SECRET_KEY; "" for none."""
    text = json.dumps(dict(secrets), sort_keys=True)
    return salted_hmac("rollcall.secrets", text, algorithm="sha256").hexdigest() if secrets else ""


def _joined(digest: str, *others: str) -> str:
    """One digest of several; empty ones do not count."""
    parts = [digest, *filter(None, others)]
    return digest if len(parts) == 1 else hashlib.sha256(":".join(parts).encode()).hexdigest()


def _with_files(draft: services.Draft, basis: str, content: str, running: str) -> services.Draft:
    """The draft with the digest of its files. `running`: the process digest of the active version, which a restart has
    marked with numbers in front; a draft that asks for the same processes has to have the same marks."""
    digest = _joined(basis, content)
    marks, _, unmarked = running.rpartition(":")
    if marks and digest.startswith(unmarked):
        digest = running
    return replace(draft, files_digest=content, process_digest=digest)


def has_files(spec: Spec) -> bool:
    """True when a version of the spec has files that are copied."""
    return bool(spec.workdir or spec.file_mounts)


def _snapshot(provider: Provider, draft: services.Draft) -> str:
    """Copy the draft's files through its provider, once. Their digest, "" for none. Raises what `carry_out` does."""
    take = getattr(provider, "snapshot", None)
    if take is None:
        return ""
    try:
        return take(draft.uid, draft.spec) or ""
    except ProviderError as error:
        refuse(load(decode(draft.text)), [error.reason])
        raise IntakeError(error.reason) from error


def _kind(draft: services.Draft, service: Service | None) -> str:
    active = service.version if service else None
    if service is None or active is None:
        return "create"
    if service.desired == Desired.DOWN:
        return "revive"
    if (active.digest, active.files_digest) != (draft.digest, draft.files_digest):
        return "update"
    return "unchanged" if service.target == draft.target else "scale"


def _changes(draft: services.Draft, parsed: Parsed, service: Service | None) -> list[str]:
    """What carrying the draft out changes, a line each, for people."""
    active = service.version if service else None
    if service is None or active is None:
        return _made(parsed.spec)
    lines = describe(diff(active.spec, draft.spec))
    lines += secret_changes(active.sealed, parsed.secrets)
    if draft.files_digest != active.files_digest:
        lines.append(OTHER_FILES)
    if service.desired == Desired.DOWN:
        return [*lines, f"desired: DOWN → UP with {some(draft.target)}"]
    if service.target not in (draft.target, Spec.from_json(active.spec).target):
        lines.append(f"target: {service.target} (scaled since) → {draft.target}")
    return lines


def _made(spec: Spec) -> list[str]:
    probe = spec.service.readiness_probe
    method = "GET" if probe.post_data is None else "POST"
    lines = [
        f"{some(spec.target)} on the provider {spec.provider}",
        f"ready when {method} {probe.path} answers with 2xx, asked every {probe.endpoint_probe_interval_seconds:g} s",
    ]
    if spec.setup:
        scope = "for every replica" if spec.setup_scope == "replica" else "once, for all replicas of the version"
        lines.append(f"setup runs {scope}")
    return lines


def secret_changes(sealed: str, secrets: Mapping[str, str]) -> list[str]:
    """A line for each secret that has another value than the sealed one; the values are not told."""
    try:
        before = unseal(sealed)
    except Unsealable:
        return ["secrets: sealed anew; the old ones cannot be opened any more"] if sealed else []
    changed = sorted(name for name in before.keys() & secrets.keys() if before[name] != secrets[name])
    return [f"secrets.{name}: has another value" for name in changed]
