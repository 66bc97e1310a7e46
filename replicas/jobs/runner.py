"""What launch and down share: claiming, the heartbeat of a step, what it cost, and the order for the provider."""

import logging
import os
import re
import resource
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection

from replicas.actions import operations
from replicas.actions.operations import Owner, Usage
from replicas.actions.sealing import Unsealable, unseal
from replicas.core.backoff import retry_delay
from replicas.core.values import Lane
from replicas.jobs import beats
from replicas.models import Operation, Replica, ServiceVersion
from replicas.providers import joblog, registry
from replicas.providers.base import LaunchOrder, Provider, ProviderError
from replicas.providers.procs import identify

log = logging.getLogger(__name__)

BEAT_SECONDS = 2.0
LONGEST_STEP_SECONDS = (
    900.0  # a step that takes longer has hung: its heartbeat stops and the operation is taken from it
)
ORPHAN_LIMIT = 5
LET_GO_ATTEMPTS = 5
LET_GO_SECONDS = 0.5
RETRY_FACTOR = 1.6
LONGEST_RETRY_SECONDS = 300.0


@cache
def _me(pid: int) -> Owner:
    found = identify(pid)
    assert found is not None, "this process runs"
    return Owner(socket.gethostname(), pid, found.start)


def me() -> Owner:
    """This process as an owner of operations; asked anew after a fork."""
    return _me(os.getpid())


class Meter:
    """CPU seconds and peak memory of this process and the children that it waited for, since it was made.

    The kernel's peaks are those of a whole life. Our own is set back first, where the kernel allows it; that of the
    children cannot be, and counts where one of these was the largest so far.
    """

    def __init__(self) -> None:
        self.begun = self.spent()
        self.children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        self.own = set_back_peak()

    @staticmethod
    def spent() -> float:
        """CPU seconds so far."""
        own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
        return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime

    def usage(self) -> Usage:
        """What has been spent by now."""
        children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        own = own_peak() if self.own else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return Usage(self.spent() - self.begun, max(own, children if children > self.children else 0) * 1024)


def set_back_peak() -> bool:
    """Let this process's peak of memory begin at what it has now. False: the kernel does not do that (proc(5))."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def own_peak() -> int:
    """The peak of this process's memory in KiB."""
    found = re.search(r"^VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    return int(found[1]) if found else 0


class Beating:
    """Renews an operation's heartbeat while a long step is at work, from a thread that ends with the step.

    A stopped process stops beating; so does a step of more than LONGEST_STEP_SECONDS. When every worker of the lane is
    in a step, none is free for the lane's heartbeat job, and the steps speak for the pool.
    """

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._beat, name=f"beat-{operation.pk}", daemon=True)

    def _beat(self) -> None:
        try:
            for _ in range(int(LONGEST_STEP_SECONDS / BEAT_SECONDS)):
                if self.over.wait(BEAT_SECONDS) or not operations.beat(self.operation):
                    return
                if operations.at_work(Lane.LONG, me().host) >= settings.ROLLCALL.long_workers:
                    beats.touch(Lane.LONG.value)
        finally:
            connection.close()

    def __enter__(self) -> "Beating":
        self.thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.over.set()
        self.thread.join()


@dataclass(slots=True)
class Step:
    """One step of an operation under its claim."""

    operation: Operation
    replica: Replica
    provider: Provider
    order: LaunchOrder
    meter: Meter
    sealed: str = ""  # why the secrets could not be opened

    @property
    def checkpoint(self) -> dict[str, Any]:
        """What the last step left: our own keys, with the provider's under "provider"."""
        return dict(self.operation.checkpoint or {})

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1."""
        return max(1, self.operation.attempts)

    def note(self, line: str) -> None:
        """Add a line to the operation's log."""
        append(self.order.log, line)

    def wait(
        self,
        reason: str,
        seconds: float,
        checkpoint: dict[str, Any],
        watch: tuple[int, int] | None = None,
        **more: Any,
    ) -> None:
        """Let go of the operation until later."""
        operations.wait(
            self.operation,
            checkpoint=checkpoint,
            reason=reason,
            seconds=seconds,
            watch=watch,
            usage=self.meter.usage(),
            **more,
        )


def cut_off(step: Step) -> str:
    """Why an operation is given up whose steps do not come to their end."""
    return f"{step.operation.orphaned} steps in a row were cut off; of the last one: {step.operation.waits_for}"


def append(path: Path, line: str) -> None:
    """Add one line to a log. A full disk costs the line, not the operation."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        joblog.append(path, (line.rstrip("\n") + "\n").encode(errors="replace"))
    except OSError as error:
        log.warning("cannot write to %s: %s", path, error)


def order_for(operation: Operation, replica: Replica, secrets: dict[str, str]) -> LaunchOrder:
    """The provider's order for this replica."""
    version = replica.version
    return LaunchOrder(
        replica_uid=replica.uid,
        service=replica.service.name,
        number=replica.number,
        version=version.number,
        version_uid=version.files_uid,
        spec=version.spec,
        env=version.spec.get("envs") or {},
        secrets=secrets,
        log=Path(operation.log),
        attempt=max(1, operation.attempts),
        spot=replica.spot,
        place=replica.place,
    )


@contextmanager
def reporting(step: Step) -> Iterator[None]:
    """Turn what a provider should not have raised into a ProviderError, with the traceback in our log."""
    try:
        yield
    except ProviderError:
        raise
    except OSError as error:
        raise ProviderError(
            f"{error.strerror or error}: {error.filename or 'no file named'}", retryable=True
        ) from error
    except Exception as error:
        log.exception("provider %s failed in operation %s", step.provider.name, step.operation.pk)
        step.note(traceback.format_exc())
        raise ProviderError(
            f"the provider {step.provider.name} failed in an unforeseen way ({type(error).__name__}: {error})"
        ) from error


def perform(operation_id: int, work: Callable[[Step], None]) -> None:
    """Claim the operation and do one step of it; nothing happens when there is nothing to claim."""
    operation = operations.claim(operation_id, me())
    if operation is None:
        return
    replica = operation.replica  # as the claim left it
    replica.version = ServiceVersion.objects.get(pk=replica.version_id)
    with letting_go(operation), Beating(operation):
        meter = Meter()
        provider = registry.get(replica.provider, settings.ROLLCALL.home)
        secrets, sealed = _secrets(replica)
        order = order_for(operation, replica, secrets)
        order.log.parent.mkdir(parents=True, exist_ok=True)  # providers write to it as well, and only inform by it
        work(Step(operation, replica, provider, order, meter, sealed))


@contextmanager
def letting_go(operation: Operation) -> Iterator[None]:
    """Let go of the operation when its step fails beside the provider (the database is away, say), so that it is taken
    up again at once. Its owner lives, so the reaper would wait for its heartbeat to be missed, and then kill it.
    """
    try:
        yield
    except Exception as error:
        log.exception("a step of operation %s failed", operation.pk)
        reason = f"its step failed ({type(error).__name__}: {error}); it is taken up again"
        for attempt in range(LET_GO_ATTEMPTS):
            try:
                operations.orphan(operation, reason=reason)
                break
            except DatabaseError:
                if attempt == LET_GO_ATTEMPTS - 1:
                    raise
                time.sleep(LET_GO_SECONDS)
        raise


def _secrets(replica: Replica) -> tuple[dict[str, str], str]:
    """The version's secret values, and why they cannot be had (a down needs none, so it goes on without)."""
    try:
        return unseal(replica.version.sealed), ""
    except Unsealable as error:
        return {}, str(error)


def retry_in(attempt: int, base: float) -> float:
    """Seconds to the next attempt after `attempt` failed ones (SkyServe: the gap grows by 1.6 up to 300 s)."""
    return retry_delay(attempt, base, RETRY_FACTOR, LONGEST_RETRY_SECONDS)


def drain_grace(replica: Replica) -> timedelta:
    """How long the process may take to end by itself: `service.drain_seconds` for a wish, nothing for a failure."""
    if replica.outcome != "TERMINATED":
        return timedelta(0) if replica.outcome == "FAILED" else timedelta(seconds=5)
    seconds = (replica.version.spec.get("service") or {}).get("drain_seconds", 30.0)
    return timedelta(seconds=float(seconds))
