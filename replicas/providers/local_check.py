"""What the local provider can carry, read from the JSON form of a spec."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from replicas.core.machines import FALLBACKS
from replicas.providers.cgroups import Limits
from replicas.providers.local_snapshot import mount_place

_ANYWHERE = Path("/")
ELSEWHERE = "needs another provider"
UNITS = {"": 1 << 30, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50, "B": 1}
REMOTE = re.compile(r"[a-z][a-z0-9+.-]*://")
LONGEST_TEXT = (128 << 10) - 1  # bytes: MAX_ARG_STRLEN of Linux without the NUL at its end
POOL = "a pool of workers, which has no endpoint,"
TASK_FIELDS = {
    "volumes": "a volume",
    "volume_mounts": "a volume",
    "pool": POOL,
    "managed_secrets": "a secret that SkyPilot's API server keeps",
    "api_server_access": "access to SkyPilot's API server",
    "event_callback": "a script for SkyPilot's events",
    "file_mounts_mapping": "what SkyPilot's API server has uploaded",
}
# Fields of resources that choose or describe a machine; this machine is what it is.
MACHINE_FIELDS = (
    "cloud", "region", "zone", "infra", "instance_type", "use_spot", "accelerators", "accelerator_args", "volumes",
    "network_tier", "disk_tier", "local_disk", "ephemeral_storage",
)  # fmt: skip


def complaints(spec: Mapping[str, Any]) -> list[str]:
    """Sentences that each name a field and why this provider cannot carry it."""
    found = [*_task(spec), *_lengths(spec), *_mounts(spec), *_resources(spec.get("resources") or {})]
    if not spec.get("run"):
        found.append("run: is missing, and it is what a replica is: add the command that serves")
    from replicas.core.spec import Spec, hardcoded_port  # not needed to launch: spares each worker the parser

    port = hardcoded_port(Spec.from_json(spec))
    return [*found, port] if port else found


def _task(spec: Mapping[str, Any]) -> list[str]:
    found = []
    nodes = spec.get("num_nodes", 1)
    if nodes != 1:
        found.append(f"num_nodes: a replica on {nodes} machines {ELSEWHERE}, local has one")
    if isinstance(spec.get("workdir"), Mapping):
        found.append(f"workdir: cloning a git repository {ELSEWHERE}: give a path of this machine, or clone in setup")
    found += [f"{name}: {what} {ELSEWHERE}" for name, what in TASK_FIELDS.items() if spec.get(name)]
    service = spec.get("service") or {}
    policy = service.get("replica_policy") or {}
    found += [f"service.replica_policy.{name}: a mix with spot {ELSEWHERE}" for name in FALLBACKS if policy.get(name)]
    return found + [f"service.{name}: {POOL} {ELSEWHERE}" for name in ("pool", "workers") if service.get(name)]


def _lengths(spec: Mapping[str, Any]) -> list[str]:
    """What Linux would not hand to a process: each argument and each variable has so many bytes at most."""
    texts = {name: str(spec.get(name) or "") for name in ("setup", "run")}
    texts |= {f"envs.{name}": f"{name}={value}" for name, value in (spec.get("envs") or {}).items()}
    return [
        f"{field}: has {size_of} bytes, and a process is given at most {LONGEST_TEXT}: keep it in a file, which a"
        " workdir or file_mounts brings along"
        for field, text in texts.items()
        if (size_of := len(text.encode())) > LONGEST_TEXT
    ]


def _mounts(spec: Mapping[str, Any]) -> list[str]:
    found = []
    for target, source in (spec.get("file_mounts") or {}).items():
        if isinstance(source, Mapping):
            found.append(f"file_mounts: {target}: storage {ELSEWHERE}: give a path of this machine")
        elif REMOTE.match(str(source)):
            found.append(
                f"file_mounts: {target}: fetching {source} {ELSEWHERE}: fetch it in setup, or give a local path"
            )
        elif mount_place(_ANYWHERE, str(target)) is None:
            found.append(
                f"file_mounts: {target}: replicas share the directories of this machine, so this path {ELSEWHERE}: use"
                " ~/... or a path relative to the workdir"
            )
    return found


def _resources(resources: Mapping[str, Any]) -> list[str]:
    choices = resources.get("any_of") or resources.get("ordered")
    if not choices:
        return _choice(resources)
    common = {name: value for name, value in resources.items() if name not in ("any_of", "ordered")}
    found = [_choice({**common, **choice}) for choice in choices]
    return [] if any(not each for each in found) else found[0]


def _choice(resources: Mapping[str, Any]) -> list[str]:
    found = [
        f"resources.{name}: {_written(resources[name])} {ELSEWHERE}"
        for name in MACHINE_FIELDS
        if _asked(resources.get(name))
    ]
    image = resources.get("image_id")
    if image:
        found.append(f"resources.image_id: running in an image {ELSEWHERE}, such as docker")
    cpus, memory = resources.get("cpus"), resources.get("memory")
    if cpus is not None and amount(cpus) > cores():
        found.append(
            f"resources.cpus: {cpus} are asked for, this machine has {cores()}: ask for less, or it {ELSEWHERE}"
        )
    if memory is not None and size(memory) > total_memory():
        has = total_memory() / (1 << 30)
        found.append(
            f"resources.memory: {memory} is asked for, this machine has {has:.1f} GB: ask for less, or it {ELSEWHERE}"
        )
    return found


def _written(value: object) -> str:
    """A value as YAML has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _asked(value: object) -> bool:
    """Whether a field asks for something; `cloud: local` and `use_spot: false` do not."""
    return bool(value) and str(value).lower() not in ("local", "none")


def limits(spec: Mapping[str, Any]) -> Limits:
    """What a replica may use. `4+` asks for a machine and limits nothing."""
    resources = chosen(spec)
    cpus, memory = resources.get("cpus"), resources.get("memory")
    return Limits(
        amount(cpus) if cpus is not None and not str(cpus).endswith("+") else None,
        size(memory) if memory is not None and not str(memory).endswith("+") else None,
    )


def chosen(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """The first choice of resources that this machine can give."""
    resources = spec.get("resources") or {}
    choices = resources.get("any_of") or resources.get("ordered") or [{}]
    merged = [{**resources, **choice} for choice in choices]
    return next((each for each in merged if not _choice(each)), merged[0])


def fixed_port(spec: Mapping[str, Any]) -> int | None:
    """The port that a single replica's `run` names instead of reading $PORT, None where $PORT counts."""
    if "PORT" in (spec.get("run") or "") or not _may_name_port(spec):
        return None
    from replicas.core.spec import Spec, hardcoded_port  # rarely needed: see above

    service = {**(spec.get("service") or {}), "replicas": 2}
    service.pop("replica_policy", None)
    asked = Spec.from_json({**spec, "service": service})
    return asked.port if hardcoded_port(asked) else None


def _may_name_port(spec: Mapping[str, Any]) -> bool:
    """False when no port that the spec asks for is in the text of `run`, also by way of a variable."""
    resources = spec.get("resources") or {}
    choices = [resources, *(resources.get("any_of") or []), *(resources.get("ordered") or [])]
    ports = [(spec.get("service") or {}).get("ports"), *(port for each in choices for port in each.get("ports") or [])]
    texts = [spec.get("run") or "", *(spec.get("envs") or {}).values()]
    return any(str(port) in str(text) for port in ports if port is not None for text in texts)


def amount(text: object) -> float:
    """The number of `4`, `0.5` or `4+`."""
    return float(str(text).rstrip("+"))


def size(text: object) -> int:
    """Bytes of `16`, `16+` (GB) or `64GB`, as SkyPilot counts them: with factors of 1024."""
    found = re.fullmatch(r"([0-9.]+)([KMGTPB]?)i?B?\+?", str(text))
    if not found:
        raise ValueError(f"{text!r} is no size")
    return int(float(found[1]) * UNITS[found[2]])


def cores() -> int:
    """CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


def total_memory() -> int:
    """Bytes of memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
