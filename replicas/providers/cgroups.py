"""Cgroups for replicas, where this host lets us make them: to end a whole tree at once, and for limits of CPU and
memory."""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from replicas.providers import procs

CPU_PERIOD_US = 100_000


@dataclass(frozen=True, slots=True)
class Limits:
    """What a replica may use; None is no limit. `cpus` in cores, `memory` in bytes."""

    cpus: float | None = None
    memory: int | None = None

    def __bool__(self) -> bool:
        return self.cpus is not None or self.memory is not None


@dataclass(frozen=True, slots=True)
class Group:
    """Directories that a command joins, files to write before, and what could not be had (sentences for the user)."""

    directories: tuple[Path, ...] = ()
    limits: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()


def plan(home: Path, name: str, limits: Limits) -> Group:
    """The cgroups for the command `name` (unique within `home`), below the one that we are in. Makes nothing yet."""
    hierarchies = _hierarchies()
    own = f"rollcall-{hashlib.sha256(os.fsencode(home)).hexdigest()[:8]}-{name}"
    directories: list[Path] = []
    values: dict[str, str] = {}
    missing: list[str] = []
    unified = hierarchies.get("")
    if unified:
        directories.append(unified / own)
    for controller, wanted in (("cpu", limits.cpus), ("memory", limits.memory)):
        if wanted is None:
            continue
        if unified and controller in _words(unified / "cgroup.subtree_control"):
            values |= _version_2(unified / own, limits, controller)
        elif controller in hierarchies:
            directories.append(hierarchies[controller] / own)
            values |= _version_1(hierarchies[controller] / own, limits, controller)
        else:
            missing.append(f"resources: no limit of {controller} is set, since this host lets us make no cgroup for it")
    return Group(tuple(dict.fromkeys(directories)), values, tuple(missing))


def _version_2(folder: Path, limits: Limits, controller: str) -> dict[str, str]:
    if controller == "cpu":
        return {str(folder / "cpu.max"): f"{_quota(limits)} {CPU_PERIOD_US}"}
    return {str(folder / "memory.max"): str(limits.memory)}


def _version_1(folder: Path, limits: Limits, controller: str) -> dict[str, str]:
    if controller == "cpu":
        return {
            str(folder / "cpu.cfs_period_us"): str(CPU_PERIOD_US),
            str(folder / "cpu.cfs_quota_us"): str(_quota(limits)),
        }
    return {str(folder / "memory.limit_in_bytes"): str(limits.memory)}


def _quota(limits: Limits) -> int:
    return max(1000, int((limits.cpus or 0) * CPU_PERIOD_US))


def _hierarchies() -> dict[str, Path]:
    """The directory of our own cgroup in each hierarchy in which we may make others: by controller, version 2 under
    ""."""
    mounts: dict[str, Path] = {}
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, place, kind, options, *_ = line.split()
        if kind == "cgroup2":
            mounts[""] = Path(place)
        elif kind == "cgroup":
            mounts |= {each: Path(place) for each in options.split(",") if each in ("cpu", "memory")}
    found: dict[str, Path] = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            if controller in mounts:
                folder = mounts[controller] / path.lstrip("/")
                if os.access(folder, os.W_OK) and os.access(folder / "cgroup.procs", os.W_OK):
                    found[controller] = folder
    return found


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []


def members(directory: Path) -> list[procs.Proc]:
    """Who is in a cgroup; nobody when it is gone."""
    pids = (int(each) for each in _words(directory / "cgroup.procs"))
    return [process for pid in pids if (process := procs.identify(pid))]


def remove(directory: Path) -> None:
    """Remove an empty cgroup; nothing there is success, and one in use is left for the next try."""
    try:
        directory.rmdir()
    except OSError:
        pass
