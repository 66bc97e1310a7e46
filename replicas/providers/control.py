"""Talks to a shim: starts it, sees how its command does, and ends it. See shim.py for the files and the order."""

import errno
import fcntl
import os
import select
import shutil
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from math import isfinite
from pathlib import Path
from signal import SIGTERM, Signals
from typing import Any

from replicas.providers import notes, procs
from replicas.providers.base import ProviderError

SHIM = Path(__file__).with_name("shim.py")
BASH = shutil.which("bash", path="/bin:/usr/bin:/usr/local/bin") or "bash"
START_SECONDS = 20.0
# Not sys.executable: a virtual environment may be made anew while replicas run.
PYTHON = getattr(sys, "_base_executable", None) or sys.executable
FLOCK = struct.Struct("hhqqi4x")  # struct flock of 64-bit Linux: type, whence, start, length, pid


@dataclass(frozen=True, slots=True)
class Command:
    """What a shim is to run. `env` is all of the command's environment, `secrets` is what is masked in its output,
    `cgroups` are directories that it joins, `limits` maps their files to values, `keep` are descriptors that the shim
    holds open for life, `grace` is in seconds and counts when somebody else than us sends SIGTERM."""

    argv: Sequence[str]
    cwd: Path
    env: Mapping[str, str]
    log: Path
    secrets: Sequence[str] = ()
    cgroups: Sequence[Path] = ()
    limits: Mapping[str, str] = field(default_factory=dict)
    keep: Sequence[int] = ()
    grace: float = 10.0
    segment_bytes: int = 32 << 20
    segments: int = 4
    line_bytes: int = 64 << 10


@dataclass(frozen=True, slots=True)
class Running:
    """A shim that is there, and its command (which may have ended a moment ago)."""

    shim: procs.Proc
    command: procs.Proc


@dataclass(frozen=True, slots=True)
class Record:
    """How a command ended. `code` is 128 + n for signal n and never 0 when the end was forced."""

    code: int
    signal: int = 0
    stopped: bool = False
    forced: bool = False
    killed: int = 0
    complete: bool = True
    out_of_memory: bool = False
    lost_bytes: int = 0
    peak_kib: int = 0
    cpu_seconds: float = 0.0
    ended: float = 0.0

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> "Record | None":
        """The record that a shim wrote; None for what no shim writes."""
        kinds = {each.name: type(each.default) if each.default is not MISSING else int for each in fields(cls)}
        for name, value in found.items():
            kind = kinds.get(name)
            number = kind is float and type(value) is int
            if kind is None or not (type(value) is kind or number) or (kind is not bool and not isfinite(value)):
                return None
        return cls(**found) if "code" in found else None

    @property
    def how(self) -> str:
        """exited with code 7; ended by signal 9 (SIGKILL)."""
        if not self.signal:
            return f"exited with code {self.code}"
        try:
            return f"ended by signal {self.signal} ({Signals(self.signal).name})"
        except ValueError:  # one of the real-time signals: only the first and the last of them have names
            return f"ended by signal {self.signal}"


class Control:
    """The control directory of one shim."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def start(self, command: Command, mark: Mapping[str, str], release: int | None = None) -> Running:
        """Start a shim with `mark` as its environment, and return when its command runs.

        `release` is a descriptor that the shim closes at that moment: a lock on it tells others, also when we die in
        between, whether a shim is still to come. Raises ProviderError; then nothing runs.
        """
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name in ("exit", "shim", "stop"):
            (self.directory / name).unlink(missing_ok=True)
        (self.directory / "cgroups").write_text("".join(f"{each}\n" for each in command.cgroups))
        inherited = [*command.keep, *([] if release is None else [release])]
        with open(self.directory / "shim.err", "wb") as errors:
            process = subprocess.Popen(
                [PYTHON, "-I", "-S", "-E", str(SHIM), str(self.directory)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=dict(mark),
                cwd="/",
                start_new_session=True,
                pass_fds=inherited,
            )
        with process:
            line = _converse(process, encode(command, release))
        if len(line.split()) != 4:
            raise self._failure()
        return _running(line)

    def _failure(self) -> ProviderError:
        try:
            lines = (self.directory / "shim.err").read_text(errors="replace").strip().splitlines()
        except OSError:
            lines = []
        cause = lines[-1] if lines else "it was killed"
        if f"Errno {errno.ENOSPC}" in cause:
            return ProviderError(f"The disk of {self.directory} is full: free some space. The launch is tried again.")
        return ProviderError(
            f"The process that supervises the command did not start: {cause}.", tail=tuple(lines[-20:])
        )

    def running(self) -> Running | None:
        """The shim that holds the lock, or None. Never a stranger with a recycled pid: it would not hold the lock."""
        holder = _holder(self.directory / "lock")
        if holder is None:
            return None
        found = self.last()
        if found and found.shim.pid == holder and procs.alive(*found.shim):
            return found
        process = procs.identify(holder)  # it has the lock and has not said yet what it runs
        return Running(process, process) if process else None

    def last(self) -> Running | None:
        """What the last shim wrote of itself, whether it runs or not; None when none ever ran here."""
        line = notes.read_bytes(self.directory / "shim")
        try:
            return _running(line) if line is not None else None
        except ValueError:
            return None

    def record(self) -> Record | None:
        """How the command ended; None while it runs, when it never ran, and when its shim was killed."""
        found = notes.read_object(self.directory / "exit")
        return Record.of(found) if found is not None else None

    def stop(self, grace: float) -> bool:
        """Ask the shim to end its command within `grace` seconds; a repeat may only shorten that. False: none is
        there."""
        running = self.running()
        if running is None:
            return False
        temporary = self.directory / f"stop.{os.getpid()}"
        try:
            temporary.write_text(f"{max(0.0, grace):.3f}")
            temporary.replace(self.directory / "stop")
        except OSError:
            temporary.unlink(missing_ok=True)  # a full disk: the shim takes the grace it was started with
        return procs.send(*running.shim, SIGTERM)

    @property
    def stopping(self) -> bool:
        """True when we have asked the shim to end its command."""
        return (self.directory / "stop").exists()

    def cgroups(self) -> list[Path]:
        """The cgroups that the command joined."""
        lines = (notes.read_bytes(self.directory / "cgroups") or b"").splitlines()
        return [Path(os.fsdecode(line)) for line in lines if b"\0" not in line]

    def remove(self) -> None:
        """Forget it all. Only when nothing runs."""
        shutil.rmtree(self.directory, ignore_errors=True)


def encode(command: Command, release: int | None) -> bytes:
    """The order in the form that shim.py reads. Raises ProviderError: no process can be given a NUL."""
    fields: list[tuple[str, str]] = [("arg", each) for each in command.argv]
    fields += [("env", f"{name}={value}") for name, value in command.env.items()]
    fields += [("secret", each) for each in command.secrets]
    fields += [("cgroup", str(each)) for each in command.cgroups]
    fields += [("limit", f"{path}={value}") for path, value in command.limits.items()]
    fields += [("cwd", str(command.cwd)), ("log", str(command.log)), ("grace", str(command.grace))]
    for name in ("segment_bytes", "segments", "line_bytes"):
        fields.append((name, str(getattr(command, name))))
    if release is not None:
        fields.append(("release", str(release)))
    return b"".join(_field(name, value) for name, value in [*fields, ("end", "")])


def _field(name: str, value: str) -> bytes:
    try:
        field = os.fsencode(f"{name}={value}")
    except UnicodeEncodeError:
        field = b"\0"
    if b"\0" in field:
        message = f"A value of {name!r} holds a character that no process can be given (NUL, or half of a pair)."
        raise ProviderError(message, retryable=False)
    return field + b"\0"


def _converse(process: "subprocess.Popen[bytes]", order: bytes) -> bytes:
    """Send the order; the line with which the shim says that its command runs, empty when it does not."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(order)
        process.stdin.close()
    except BrokenPipeError:
        return b""
    poll = select.poll()
    poll.register(process.stdout, select.POLLIN | select.POLLHUP)
    return process.stdout.readline() if poll.poll(START_SECONDS * 1000) else b""


def _running(line: bytes) -> Running:
    shim, start, command, command_start = (int(each) for each in line.split())
    return Running(procs.Proc(shim, start), procs.Proc(command, command_start))


def _holder(lock: Path) -> int | None:
    """The pid of the process that holds a POSIX lock on the file. Asking takes no lock, so that it cannot be in the
    way."""
    try:
        with open(lock, "r+b") as file:
            answer = fcntl.fcntl(file, fcntl.F_GETLK, FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    except FileNotFoundError:
        return None
    kind, *_, pid = FLOCK.unpack(answer)
    return None if kind == fcntl.F_UNLCK else int(pid)
