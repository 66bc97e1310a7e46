"""A version's workdir and file_mounts, copied once into ROLLCALL_HOME, and copied on to each replica."""

import fnmatch
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from replicas.providers import locks, trees
from replicas.providers.base import LaunchOrder, ProviderError
from replicas.providers.layout import VersionDirectory
from replicas.providers.notes import MOST_BYTES, read_bytes, read_object

LIMIT_BYTES = 8 << 30
WORK = "sky_workdir"  # SkyPilot's name for it, below $HOME
IGNORE_FILE = ".skyignore"
COPYING = "when the workdir was copied"


class Snapshots:
    """The snapshots of one ROLLCALL_HOME. A snapshot is a $HOME, with the workdir in it as `sky_workdir`."""

    def __init__(self, home: Path, limit: int = LIMIT_BYTES) -> None:
        self._home = home
        self._limit = limit

    def digest(self, version_uid: str, spec: Mapping[str, Any], patience: float = 10.0) -> str | None:
        """The digest of the version's snapshot, made if it is not there; None when the spec has nothing to copy.

        Raises ProviderError, and leaves nothing half-made; locks.Busy when another process is making it.
        """
        if not spec.get("workdir") and not spec.get("file_mounts"):
            return None
        version = VersionDirectory(self._home, version_uid)
        known = _known(version)
        if known is None:
            with locks.held(version.lock, patience):
                known = _known(version) or self._make(version, spec)
        return known

    def tree(self, order: LaunchOrder) -> Path | None:
        """The snapshot to copy for a launch, or None when there is nothing to copy. As `digest`, with less patience."""
        if self.digest(order.version_uid, order.spec, locks.PATIENCE) is None:
            return None
        return VersionDirectory(self._home, order.version_uid).snapshot

    def _make(self, version: VersionDirectory, spec: Mapping[str, Any]) -> str:
        new = version.root / "snapshot.new"
        trees.remove(new)
        trees.remove(version.snapshot)
        try:
            size = self._fill(new, spec)
            digest = trees.digest(new)
            new.rename(version.snapshot)
            facts = version.facts.with_suffix(".new")
            facts.write_text(json.dumps({"digest": digest, "bytes": size}))
            facts.rename(version.facts)
        except OSError as error:
            trees.remove(new)
            raise trees.explain(error, COPYING) from error
        except ProviderError:
            trees.remove(new)
            raise
        return digest

    def _fill(self, new: Path, spec: Mapping[str, Any]) -> int:
        work = new / WORK
        work.mkdir(parents=True, mode=0o700)
        size = 0
        workdir = spec.get("workdir")
        if workdir:
            size += self._copy("workdir", workdir, work, size)
        for target, mounted in (spec.get("file_mounts") or {}).items():
            field = f"file_mounts: {trees.shortened(str(target))}"
            place = mount_place(new, str(target))
            if place is None:
                raise ProviderError(f"{field} leads out of the replica's directory.", retryable=False)
            size += self._copy(field, mounted, place, size)
        return size

    def _copy(self, field: str, given: object, target: Path, before: int) -> int:
        """Copy what a field names, `before` bytes having been copied. Raises ProviderError, which names the field."""
        limit = max(0, self._limit - before)
        try:
            source = _source(field, given)
            facts = source.stat()
            if _holds_copies(source, self._home):
                raise ProviderError(
                    f"{field}: {source} is Rollcall's own, and not copied: name another.", retryable=False
                )
            if field == "workdir":
                if not stat.S_ISDIR(facts.st_mode):
                    raise ProviderError(f"{field}: {source} is not a directory: correct the path.", retryable=False)
                return trees.copy(source, target, _workdir_skip(source, self._home), limit)
            target.parent.mkdir(parents=True, exist_ok=True)
            if stat.S_ISDIR(facts.st_mode):
                return trees.copy(source, target, _without_own(source, self._home), limit)
            if not stat.S_ISREG(facts.st_mode):
                raise ProviderError(f"{field}: {source} is neither a file nor a directory: name one.", retryable=False)
            return trees.copy_file(source, target, facts, limit)
        except OSError as error:
            told = trees.explain(error, "when it was copied")
            raise ProviderError(f"{field}: {told.reason}", retryable=told.retryable) from error
        except trees.TooLarge:
            spared = f"name what is not needed in {source / IGNORE_FILE}, or " if field == "workdir" else ""
            raise ProviderError(
                f"{field}: {source} has more than {self._limit / (1 << 30):g} GiB, and each replica gets a copy: "
                f"{spared}let `run` read it from where it is.",
                retryable=False,
            ) from None


def copy_home(source: Path | None, target: Path) -> None:
    """Make `target` a copy of a $HOME, whole or not at all; an empty one when there is no source. Raises
    ProviderError."""
    new = target.with_name(f"{target.name}.new")
    trees.remove(new)
    trees.remove(target)
    try:
        new.mkdir(parents=True, mode=0o700)
        if source is not None:
            trees.copy(source, new)
        (new / WORK).mkdir(exist_ok=True)
        new.rename(target)
    except OSError as error:
        trees.remove(new)
        raise trees.explain(error, COPYING) from error


def mount_place(home: Path, target: str) -> Path | None:
    """Where a mount lies in a $HOME: `~/data` in it, `data` in the workdir; None for what lies elsewhere."""
    if target.startswith("/"):
        return None
    relative = target[2:] if target.startswith("~/") else f"{WORK}/{target}"
    path = os.path.normpath(relative)
    return None if path.startswith("..") or path == "." else home / path


def _known(version: VersionDirectory) -> str | None:
    facts = read_object(version.facts)
    return str(facts["digest"]) if facts and "digest" in facts and version.snapshot.is_dir() else None


def _source(field: str, value: object) -> Path:
    if not isinstance(value, str):
        raise ProviderError(f"{field}: the local provider copies local paths only.", retryable=False)
    path = Path(os.path.expanduser(value))
    if not path.is_absolute():
        raise ProviderError(f"{field}: {trees.shortened(value)} is not an absolute path.", retryable=False)
    if not path.exists():
        told = trees.shortened(str(path))
        raise ProviderError(f"{field}: {told} does not exist: correct the path, or make it.", retryable=False)
    return path


def _workdir_skip(root: Path, home: Path) -> trees.Skip:
    """Leaves out what git keeps for itself, Rollcall's own home, and what `.skyignore` names."""
    patterns = _patterns(root / IGNORE_FILE)
    own = _without_own(root, home)

    def skip(path: str, directory: bool) -> bool:
        name = path.rpartition("/")[2]
        return name == ".git" or own(path, directory) or any(_matches(each, path, name, directory) for each in patterns)

    return skip


def _without_own(root: Path, home: Path) -> trees.Skip:
    """Leaves out Rollcall's own home, in which the copy is made."""
    own = os.path.relpath(os.path.realpath(home), os.path.realpath(root))
    return lambda path, directory: path == own


def _holds_copies(source: Path, home: Path) -> bool:
    """Whether it is Rollcall's home or one of its directories of copies, which would be copied into themselves."""
    place, mine = os.path.realpath(source), os.path.realpath(home)
    versions = os.path.join(mine, "versions")
    return place in (mine, versions) or place.startswith(f"{versions}{os.sep}")


def _patterns(file: Path) -> list[str]:
    """The patterns of an ignore file: a line each, `#` for remarks, as in .gitignore but without `!`. Raises
    OSError, ProviderError."""
    content = read_bytes(file)
    if content is None:
        if os.path.lexists(file):
            raise ProviderError(f"{file} is not a file: make it one, or remove it.", retryable=False)
        return []
    if len(content) == MOST_BYTES:
        raise ProviderError(f"{file} is too long: name directories in it, not each file.", retryable=False)
    lines = content.decode("utf-8", "surrogateescape").splitlines()
    patterns = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if any(each.startswith("!") for each in patterns):
        raise ProviderError(
            f"{file}: lines that begin with ! are not understood: list what to leave out.", retryable=False
        )
    return patterns


def _matches(pattern: str, path: str, name: str, directory: bool) -> bool:
    if pattern.endswith("/"):
        if not directory:
            return False
        pattern = pattern.rstrip("/")
    if "/" in pattern:
        return fnmatch.fnmatchcase(path, pattern.lstrip("/").removeprefix("./"))
    return fnmatch.fnmatchcase(name, pattern)
