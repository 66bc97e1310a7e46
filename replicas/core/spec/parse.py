"""From the text of a service YAML to a spec, its secrets, and the text without them."""

import posixpath
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from replicas.core.spec.errors import Path, Refused, clip
from replicas.core.spec.expand import TooLong, expand
from replicas.core.spec.kinds import env_name
from replicas.core.spec.loader import MAX_CHARS, Document, decode, load
from replicas.core.spec.masking import Secrets, masked_text, read_secrets
from replicas.core.spec.report import Report, report_validation
from replicas.core.spec.rules import broken_rules
from replicas.core.spec.scalars import Expanded, as_text, describe
from replicas.core.spec.task import Spec

_EXPANDED = ("workdir", "file_mounts", "resources", "service", "pool")
_FREE = frozenset({"config", "fake", "volumes", "volume_mounts", "managed_secrets", "inputs", "outputs", "_metadata"})
_MAY_BE_EMPTY = frozenset({"ports", "image_id"})  # of resources: SkyPilot takes null for them as "not given"
_NULLS_BELOW = frozenset({"accelerators", "post_data", "job_recovery", "fake"})
_LONGEST_NAME = 64
_FIRST_VARIABLE = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


@dataclass(frozen=True, slots=True)
class Parsed:
    """`spec` without secrets, `secrets` by name, and `text`: the given text with *** for every value of a secret."""

    spec: Spec
    secrets: dict[str, str]
    text: str


def parse(
    text: str | bytes,
    *,
    env: Mapping[str, str] | None = None,
    secrets: Mapping[str, str] | None = None,
    name: str | None = None,
    base: str | None = None,
    kept_env: Mapping[str, str] | None = None,
    kept_secrets: Mapping[str, str] | None = None,
    providers: Collection[str] | None = None,
) -> Parsed:
    """Read a SkyPilot/SkyServe service YAML with our own keys. Raises SpecErrors with all that is wrong.

    `env` and `secrets` are the values given at apply: they come before those of the text, and add to them. `name`
    comes before `name:`. Relative local paths are taken from the absolute directory `base`; without it, refused.
    `kept_env` and `kept_secrets` are the values of the version that is being edited: they stand in where the text has
    no value (null), and where it has *** for a secret. `providers`, if given, are the names that `provider` may have.
    """
    document = load(decode(text))
    report = Report(document)
    tree = document.root.plain_value()
    _name(tree, report, name)
    _refuse_empty(tree, report)
    found = read_secrets(document, tree, report, secrets or {}, kept_secrets or {})
    _read_envs(tree, report, env or {}, kept_env or {}, found)
    _expand(tree, report)
    _resolve_paths(tree, report, base, found)
    _check_sections(document, tree, report, providers)
    try:
        spec = Spec.model_validate(tree)
    except ValidationError as error:
        report_validation(report, error)
        raise report.errors() from None
    for path, message in broken_rules(spec):
        report.add(path, message)
    report.raise_if_any()
    return Parsed(_normalised(spec), found.values, masked_text(document, found))


def _name(tree: dict[str, Any], report: Report, name: str | None) -> None:
    if name is not None:
        tree["name"] = Expanded(name)
    elif "name" not in tree:
        report.add(("name",), "is missing: add a line such as `name: web`, or give a name at apply")
        tree["name"] = "unnamed"


def _refuse_empty(tree: dict[str, Any], report: Report, path: Path = ()) -> None:
    """A key without a value is a fault, but in envs and secrets (given at apply) and where the fields are free."""
    for key in list(tree):
        here = (*path, key)
        value = tree[key]
        if _may_hold_nulls(here):
            continue
        if value is None:
            del tree[key]
            if not (path[:1] == ("resources",) and key in _MAY_BE_EMPTY):
                report.add(here, "is empty: give it a value, or remove the line")
        elif isinstance(value, dict):
            _refuse_empty(value, report, here)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                if isinstance(item, dict):
                    _refuse_empty(item, report, (*here, index))


def _may_hold_nulls(path: Path) -> bool:
    if len(path) == 1:
        return False
    return path[0] in _FREE or path[0] in ("envs", "secrets") or not _NULLS_BELOW.isdisjoint(path[1:-1])


def _read_envs(
    tree: dict[str, Any], report: Report, given: Mapping[str, str], kept: Mapping[str, str], secrets: Secrets
) -> None:
    envs = tree.setdefault("envs", {})
    if not isinstance(envs, dict):
        report.add(("envs",), f"must be a mapping of names and texts, but is {describe(envs)}")
        envs = tree["envs"] = {}
    values: dict[str, Any] = {}
    for name in [*envs, *(name for name in given if name not in envs)]:
        path: Path = ("envs", name)
        try:
            env_name(name)
            if name in secrets.values:
                raise Refused(
                    ((), "is a secret, too: keep it either in envs or in secrets, and give it at apply as such")
                )
            values[name] = _env_value(name, envs.get(name), given, kept)
        except Refused as refused:
            report.refused(path, refused)
    tree["envs"] = values


def _env_value(name: str, written: object, given: Mapping[str, str], kept: Mapping[str, str]) -> str:
    if name in given:
        return Expanded(as_text(given[name]))
    if written is None:
        if name in kept:
            return Expanded(kept[name])
        raise Refused(((), f'has no value: give it at apply with --env {name}=VALUE, or write "" for an empty text'))
    return Expanded(as_text(written))


def _expand(tree: dict[str, Any], report: Report) -> None:
    for section in _EXPANDED:
        if section not in tree:
            continue
        before = tree[section]
        try:
            tree[section] = expand(before, tree["envs"], MAX_CHARS)
            if isinstance(before, dict) and len(tree[section]) < len(before):
                report.add((section,), "has two keys that are the same once their variables are filled in: rename one")
        except TooLong:
            report.add(
                (section,),
                f"is larger than {MAX_CHARS // 1024} KiB once its variables are filled in: use fewer of them",
            )


def _resolve_paths(tree: dict[str, Any], report: Report, base: str | None, secrets: Secrets) -> None:
    """Make the local paths absolute. `~` stays: it is the home of whoever launches."""

    def local(path: Path, value: object) -> object:
        if not isinstance(value, str) or not value or value.startswith(("/", "~")) or _URL.match(value):
            return value
        variable = _FIRST_VARIABLE.match(value)
        if variable and variable[1] in secrets.values:
            return value
        if base is None:
            message = f"{clip(value)} is relative, and there is no directory here to start from: write it from / on"
            report.add(path, message)
            return value
        return Expanded(posixpath.normpath(posixpath.join(base, value)))

    if "workdir" in tree:
        tree["workdir"] = local(("workdir",), tree["workdir"])
    for target, source in (mounts := _mapping(tree.get("file_mounts"))).items():
        path: Path = ("file_mounts", target)
        if ".." in target.split("/"):
            report.add(path, "must not have .. in it: write where the file is to go", at_key=True)
        if not isinstance(source, dict):
            mounts[target] = local(path, source)
        elif isinstance(source.get("source"), list):
            source["source"] = [local((*path, "source", i), item) for i, item in enumerate(source["source"])]
        elif "source" in source:
            source["source"] = local((*path, "source"), source["source"])
    tls = _mapping(_mapping(tree.get("service")).get("tls"))
    for key in ("keyfile", "certfile"):
        if key in tls:
            tls[key] = local(("service", "tls", key), tls[key])


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _check_sections(
    document: Document, tree: dict[str, Any], report: Report, providers: Collection[str] | None
) -> None:
    has_service, has_pool = (document.root.child(key) is not None for key in ("service", "pool"))
    if has_service and has_pool:
        report.add(("pool",), "cannot stand beside service: keep one of them", at_key=True)
    if not has_service and not has_pool:
        report.add((), "there is no `service:` section: add one, such as `service: {replicas: 1, readiness_probe: /}`")
    provider = tree.get("provider")
    if providers is not None and isinstance(provider, str) and provider not in providers:
        near = get_close_matches(provider, providers, n=1) if len(provider) < _LONGEST_NAME else []
        hint = f"did you mean {near[0]}?" if near else f"take one of {', '.join(sorted(providers))}"
        report.add(("provider",), f"{clip(provider)} is no provider here: {hint}")
        tree["provider"] = "local"  # so that no rule of the unknown one is reported, too


def _normalised(spec: Spec) -> Spec:
    """The spec with the defaults that hang on other fields filled in."""
    service = spec.service
    if service.replica_policy and service.replica_policy.max_replicas is None:
        policy = service.replica_policy.model_copy(update={"max_replicas": service.replica_policy.min_replicas})
        service = service.model_copy(update={"replica_policy": policy})
    elif not service.replica_policy and service.replicas is None and not (spec.pool or service.pool or service.workers):
        service = service.model_copy(update={"replicas": 1})
    return spec.model_copy(update={"service": service})
