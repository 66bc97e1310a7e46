"""Where things lie below ROLLCALL_HOME: everything is named by uid, never by a service's name."""

import os
import re
import time
from pathlib import Path

UID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")


def checked(uid: str) -> str:
    """The uid, fit to be a directory's name. Raises ValueError: anything else could lead out of the home."""
    if not UID.fullmatch(uid):
        raise ValueError(f"{uid!r} is not a uid: letters, digits, - and _ only")
    return uid


def uids(folder: Path) -> list[str]:
    """The names of the directories in it that are uids; whatever else lies there is not ours."""
    try:
        return sorted(each.name for each in os.scandir(folder) if UID.fullmatch(each.name) and each.is_dir())
    except FileNotFoundError:
        return []


def changed(root: Path) -> float:
    """When something in the directory was last written to, as far as its own entries tell. In seconds of the wall
    clock; now, for one that is being removed."""
    try:
        times = [entry.stat(follow_symlinks=False).st_mtime for entry in os.scandir(root)]
        return max([root.stat().st_mtime, *times])
    except FileNotFoundError:
        return time.time()


class ReplicaDirectory:
    """`<home>/replicas/<replica uid>/`: what one replica has."""

    def __init__(self, home: Path, uid: str) -> None:
        self.root = home / "replicas" / checked(uid)
        self.lock = self.root / "lock"  # held while a step is at work
        self.home = self.root / "home"  # $HOME of the replica
        self.work = self.home / "sky_workdir"  # where `run` starts
        self.control = self.root / "control"  # of the shim of `run`
        self.setup = self.root / "setup"  # of the shims of `setup`, one directory a try
        self.venv = self.root / "venv"
        self.setup_log = self.root / "setup.log"
        self.log = self.root / "run.log"
        self.told = self.root / "setup.told"  # how much of setup's output its launch has in its log


class VersionDirectory:
    """`<home>/versions/<version uid>/`: what all replicas of a version share."""

    def __init__(self, home: Path, uid: str) -> None:
        self.root = home / "versions" / checked(uid)
        self.lock = self.root / "lock"
        self.snapshot = self.root / "snapshot"  # the workdir and the file_mounts, as a $HOME
        self.facts = self.root / "snapshot.json"
        self.home = self.root / "home"  # $HOME of setup: the snapshot and what setup made of it
        self.setup = self.root / "setup"
        self.waiters = self.root / "waiters"  # a file for each replica whose launch waits for setup
        self.venv = self.root / "venv"
        self.setup_log = self.root / "setup.log"
