"""Ends what a replica left behind without its shim: found by its cgroup, and by the uid in its environment."""

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from signal import SIGKILL

from replicas.providers import cgroups, procs
from replicas.providers.base import Kept, ProviderError
from replicas.providers.control import Control
from replicas.providers.layout import ReplicaDirectory, VersionDirectory, changed, uids

ROUNDS = 10
ROUND_SECONDS = 0.5
EXEC_SECONDS = 0.02


def clear_processes(home: Path, place: ReplicaDirectory) -> None:
    """End whatever is left of a replica without a shim. Raises ProviderError when something cannot be ended."""
    controls = [Control(place.control), *tries(place.setup)]
    marks = {"ROLLCALL_HOME": str(home), "ROLLCALL_REPLICA_UID": place.root.name}
    clear(controls, marks, f"replica {place.root.name}")


def clear(controls: list[Control], marks: dict[str, str], whose: str) -> None:
    """The same for the commands of any shims, whose processes carry `marks` in their environment."""
    groups = [group for control in controls for group in control.cgroups()]
    # A shim that wrote its record has seen the end of all that its command ever started: there is nothing to search
    # for.
    if not (controls and all(_clean(control) for control in controls)):
        _kill(groups, marks, whose)
    for group in groups:
        cgroups.remove(group)


def kill_tree(shim: procs.Proc) -> None:
    """SIGKILL everything below a shim, and then the shim itself, which does not do so.

    It goes last: as long as it is there, be it stopped, whoever loses the parent becomes its child, so that what is
    forked meanwhile is found by the next look, and be it in the middle of an exec, when it shows no environment.
    """
    for _ in range(ROUNDS):
        below = procs.descendants(shim.pid)
        if not below:
            break
        for process in below:
            procs.send(*process, SIGKILL)
        for process in below:
            procs.wait(*process, ROUND_SECONDS / 5)
    procs.send(*shim, SIGKILL)


def tries(folder: Path) -> list[Control]:
    """The control directories of the tries of a setup, in order."""
    try:
        numbers = sorted(int(each.name) for each in folder.iterdir() if each.name.isdigit())
    except FileNotFoundError:
        return []
    return [Control(folder / str(number)) for number in numbers]


def still_there(place: ReplicaDirectory) -> bool:
    """True while a shim of the replica lives."""
    return any(control.running() for control in [Control(place.control), *tries(place.setup)])


def kept(home: Path) -> Iterator[Kept]:
    """The directories of replicas and versions below a ROLLCALL_HOME."""
    for place in (ReplicaDirectory(home, uid) for uid in uids(home / "replicas")):
        yield Kept("replica", place.root.name, changed(place.root), still_there(place))
    for version in (VersionDirectory(home, uid) for uid in uids(home / "versions")):
        setting_up = any(control.running() for control in tries(version.setup))
        yield Kept("version", version.root.name, changed(version.root), setting_up)


def _clean(control: Control) -> bool:
    record = control.record()
    return record is not None and record.complete


def _kill(groups: Iterable[Path], marks: dict[str, str], whose: str) -> None:
    left: set[procs.Proc] = set()
    seen_none = 0
    for _ in range(ROUNDS):
        left = {process for group in groups for process in cgroups.members(group)} | set(procs.carrying(marks))
        if not left:
            seen_none += 1
            if seen_none == 2:
                return
            time.sleep(EXEC_SECONDS)  # in the middle of an exec a process shows no environment
            continue
        seen_none = 0
        for process in left:
            procs.send(*process, SIGKILL)
        for process in left:
            procs.wait(*process, ROUND_SECONDS)
    if not left:
        return
    pids = ", ".join(str(process.pid) for process in sorted(left))
    raise ProviderError(f"Processes of {whose} do not end, even by SIGKILL: {pids}. See what holds them, then retry.")
