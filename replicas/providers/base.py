"""The contract that every provider fulfils: short, idempotent steps over plain values."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

Checkpoint = Mapping[str, Any]  # JSON values only: it is stored on the operation between steps
Handle = Mapping[str, Any]  # JSON values only: what finds the replica again (local: uid, pids, start times, port)


@dataclass(frozen=True, slots=True)
class LaunchOrder:
    """Everything a provider needs to launch one replica. Paths are absolute; `env` and `secrets` map names to text.

    `log` is the operation's log: the provider appends to it what the user should see of the launch.
    `spec` is the resolved spec (the JSON form of `replicas.core.spec.Spec`), for fields that only this provider reads.
    `spot`: take a machine that may be taken back, False: one on demand, whatever `use_spot` says; None: as it says.
    `place`: only there (such as aws/us-east-1), "" for wherever its resources would go.
    """

    replica_uid: str
    service: str
    number: int
    version: int
    version_uid: str
    spec: Mapping[str, Any]
    env: Mapping[str, str]
    secrets: Mapping[str, str]
    log: Path
    attempt: int = 1
    spot: bool | None = None
    place: str = ""


@dataclass(frozen=True, slots=True)
class Launched:
    """The replica's process runs. `url` is the base of probes and traffic, such as http://127.0.0.1:20001.

    What it got of the spec's resources: `accelerators`, such as A100:8, "" for none; `spot`, None where the provider
    makes no difference; `place`, "" where that is no question.
    """

    handle: Handle
    url: str
    pid: int | None = None
    run_log: Path | None = None
    accelerators: str = ""
    spot: bool | None = None
    place: str = ""


@dataclass(frozen=True, slots=True)
class Waiting:
    """The step is done and there is more to do: call again with `checkpoint` after `seconds`, or when `watch` ends.

    `watch` is (pid, start time in clock ticks since boot) of a process whose end means that the wait is over.
    """

    checkpoint: Checkpoint
    reason: str
    seconds: float
    watch: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Gone:
    """Nothing of the replica is left. `detail` says what was found (exit code, killed, already gone)."""

    detail: str = ""


@dataclass(frozen=True, slots=True)
class Inspection:
    """What a provider sees of a replica: `kind` is running, exited, gone or preempted.

    `code` is the exit code of an exited replica (128 + n for signal n), None where unknown.
    `detail` is a sentence for the user; `tail` holds the last lines of its run log.
    """

    kind: str
    code: int | None = None
    detail: str = ""
    tail: tuple[str, ...] = field(default=())


class ProviderError(Exception):
    """A step failed. `reason` names the thing, the cause and the next step, for the user.

    `retryable`: the same order may work later. `user_fault`: the user's setup or run failed (the replica ends as
    FAILED and not as FAILED_PROVISION). `tail` holds the last lines of the log that explain it.
    """

    def __init__(self, reason: str, *, retryable: bool = True, user_fault: bool = False, tail: tuple[str, ...] = ()):
        super().__init__(reason)
        self.reason = reason
        self.retryable = retryable
        self.user_fault = user_fault
        self.tail = tail


class Provider(Protocol):
    """One way to carry replicas. Each call is one short step, safe to repeat after a crash at any point in it."""

    name: str

    def check(self, spec: Mapping[str, Any]) -> list[str]:
        """Why this provider cannot carry the spec: sentences that each name field and cause; empty if it can."""

    def launch(self, order: LaunchOrder, checkpoint: Checkpoint | None) -> Launched | Waiting:
        """Take the launch one step on. A repeat for the same replica never makes a second one. Raises ProviderError."""

    def down(
        self, order: LaunchOrder, handle: Handle | None, grace: timedelta, checkpoint: Checkpoint | None
    ) -> Gone | Waiting:
        """Take the down one step on; "already gone" is success. `handle` is None when the launch did not get so far:
        whatever an unfinished launch left of `order.replica_uid` is then found and removed. Raises ProviderError."""

    def inspect(self, handle: Handle) -> Inspection:
        """What is true of the replica now."""

    def find(self, replica_uid: str) -> Handle | None:
        """The handle of a replica whose launch was cut off after its process began, or None."""


class Watchable(Protocol):
    """A provider whose replicas' ends can be seen at once."""

    def watch(self, handle: Handle) -> tuple[int, int] | None:
        """(pid, start time) of a process here whose end means that `inspect` has news; None if there is none."""


class Readable(Protocol):
    """A provider whose run logs are read by offset."""

    def read_log(self, handle: Handle, offset: int, limit: int) -> tuple[bytes, int]:
        """At most `limit` bytes of the run log from `offset`, and the offset after them."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What the processes of a replica use: CPU seconds since it began (its ended children included), and bytes of
    memory that are theirs now, pages that several share counted for each."""

    cpu_seconds: float
    memory: int


class Metering(Protocol):
    """A provider whose replicas run where what they use can be seen."""

    def usage(self, handles: Sequence[Handle]) -> list[Usage | None]:
        """What each of them uses at this moment; None for one that has ended, or runs elsewhere."""


class Collecting(Protocol):
    """A provider that keeps something per version, to be removed when nothing uses it."""

    def forget_version(self, version_uid: str) -> None:
        """Remove what is kept for the version (workdir snapshot, environment); nothing there is success."""

    def forget_replica(self, replica_uid: str) -> None:
        """Remove directory and logs of a replica that is gone; nothing there is success."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Something that a provider keeps: `kind` is replica or version. `changed` is when it was last written to, in
    seconds of the wall clock; `live`: a process of it runs."""

    kind: str
    uid: str
    changed: float
    live: bool = False


class Listing(Protocol):
    """A provider that can say what it keeps, so that what nobody names any more is found."""

    def kept(self) -> Iterable[Kept]:
        """Everything below this ROLLCALL_HOME that `forget_replica` or `forget_version` would remove."""


ProviderFactory = Callable[[Path], Provider]  # takes ROLLCALL_HOME
