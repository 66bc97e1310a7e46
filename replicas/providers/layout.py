"""Where things lie below ROLLCALL_HOME: everything is named by uid, never by a service's name."""

import re
from pathlib import Path

UID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")


def checked(uid: str) -> str:
    """The uid, fit to be a directory's name. Raises ValueError: anything else could lead out of the home."""
    if not UID.fullmatch(uid):
        raise ValueError(f"{uid!r} is not a uid: letters, digits, - and _ only")
    return uid


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
