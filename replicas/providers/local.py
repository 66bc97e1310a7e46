"""Replicas as processes of this host, each under a shim of its own that outlives the control plane.

Below ROLLCALL_HOME, by uid and never by a service's name:

    replicas/<replica uid>/lock            held while a launch or a down is at work on it
    replicas/<replica uid>/home/           $HOME of the replica; `run` starts in home/sky_workdir/
    replicas/<replica uid>/control/        of the shim of `run` (see shim.py), and launch.json: port and attempt
    replicas/<replica uid>/run.log         its output, full segments beside it
    replicas/<replica uid>/setup/ venv/ setup.log    with `setup_scope: replica`
    versions/<version uid>/lock            held while the snapshot is made or setup is started
    versions/<version uid>/snapshot/       workdir and file_mounts as they were, as a $HOME; snapshot.json: its digest
    versions/<version uid>/setup/<n>/      of the shim of the nth try of `setup`
    versions/<version uid>/home/ venv/ setup.log    what setup works in, its virtual environment, its output
    versions/<version uid>/waiters/<replica uid>    launches that wait for setup; without any, setup is ended

Ports are not kept in files: see ports.py.
"""

import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from replicas.config import Config
from replicas.providers import cgroups, environment, local_check, locks, logs, ports, procs, trees
from replicas.providers.base import (
    Checkpoint,
    Gone,
    Handle,
    Inspection,
    Kept,
    Launched,
    LaunchOrder,
    ProviderError,
    Usage,
    Waiting,
)
from replicas.providers.control import BASH, Command, Control, Record, Running
from replicas.providers.joblog import append_to
from replicas.providers.layout import ReplicaDirectory
from replicas.providers.local_clear import clear_processes, kept, kill_tree, still_there
from replicas.providers.local_setup import Setups
from replicas.providers.local_snapshot import Snapshots
from replicas.providers.notes import read_object

SETTLE_SECONDS = 0.05  # most replicas end within it, and then their down is one step
OVERDUE_SECONDS = 12.0  # beyond the grace and the time in which the shim kills: then the shim itself is stuck
BUSY_SECONDS = 0.2
BUSY = "another step is at work on the same files"


class LocalProvider:
    """The provider `local`. Its state is on disk and in the kernel: any process may take over at any point."""

    name = "local"

    def __init__(self, home: Path, config: Config | None = None) -> None:
        self.home = Path(os.path.abspath(home))
        self._config = config or Config.from_env(os.environ)
        self._snapshots = Snapshots(self.home)
        self._setups = Setups(self.home, self._snapshots)

    def check(self, spec: Mapping[str, Any]) -> list[str]:
        """See Provider."""
        return local_check.complaints(spec)

    def snapshot(self, version_uid: str, spec: Mapping[str, Any]) -> str | None:
        """Copy the version's workdir and file_mounts, unless that is done. The digest of them; None if it has neither.

        A launch does this by itself; at apply it keeps what the user saw then. Raises ProviderError.
        """
        try:
            return self._snapshots.digest(version_uid, spec)
        except locks.Busy:
            raise ProviderError("The workdir of this version is being copied by another process. Try again.") from None

    def launch(self, order: LaunchOrder, checkpoint: Checkpoint | None) -> Launched | Waiting:
        """See Provider."""
        place = ReplicaDirectory(self.home, order.replica_uid)
        try:
            with locks.held(place.lock) as lock:
                return (
                    self._launched(place, order)
                    or self._setups.step(order, place, checkpoint or {})
                    or self._run(order, place, lock)
                )
        except locks.Busy:
            return Waiting(checkpoint or {}, BUSY, BUSY_SECONDS)

    def _launched(self, place: ReplicaDirectory, order: LaunchOrder) -> Launched | None:
        """What this launch has made already, be it that another worker did it and died."""
        control = Control(place.control)
        found = control.running()
        if found is None:
            found = control.last()
            if found and order.attempt > _facts(place).get("attempt", 1):
                clear_processes(self.home, place)
                return None
        return self._result(place, found) if found else None

    def _run(self, order: LaunchOrder, place: ReplicaDirectory, lock: int) -> Launched:
        self._setups.furnish(order, place)
        venv = self._setups.venv(order, place)
        group = cgroups.plan(self.home, order.replica_uid, local_check.limits(order.spec))
        for sentence in group.missing:
            append_to(order.log, sentence)
        first, last = self._config.replica_port_first, self._config.replica_port_last
        fixed = local_check.fixed_port(order.spec)
        with ports.reserved(f"{self.home} {order.replica_uid} {order.attempt}", first, last, fixed) as reservation:
            env = environment.of_run(order, self.home, place.home, venv, reservation.port)
            command = Command(
                argv=(BASH, "-c", str(order.spec.get("run") or "")),
                cwd=place.work,
                env=env,
                log=place.log,
                secrets=tuple(order.secrets.values()),
                cgroups=group.directories,
                limits=group.limits,
                keep=(reservation.descriptor,),
                grace=float(order.spec.get("service", {}).get("drain_seconds", 10)),
            )
            place.control.mkdir(exist_ok=True, mode=0o700)
            facts = {"port": reservation.port, "attempt": order.attempt}
            try:
                (place.control / "launch.json").write_text(json.dumps(facts))
                mark = {"ROLLCALL_HOME": str(self.home), "ROLLCALL_SHIM_UID": order.replica_uid}
                running = Control(place.control).start(command, mark, release=lock)
            except OSError as error:
                raise trees.explain(error, "when the replica was to be started") from error
        append_to(order.log, f"run started as process {running.command.pid}, its port is {reservation.port}")
        return self._result(place, running)

    def _result(self, place: ReplicaDirectory, running: Running) -> Launched:
        handle = self._handle(place, running)
        return Launched(handle, f"http://127.0.0.1:{handle['port']}", running.command.pid, place.log)

    def _handle(self, place: ReplicaDirectory, running: Running) -> dict[str, Any]:
        return {
            "uid": place.root.name,
            "directory": str(place.root),
            "port": _facts(place).get("port"),
            "pid": running.command.pid,
            "start": running.command.start,
            "shim_pid": running.shim.pid,
            "shim_start": running.shim.start,
        }

    def down(
        self, order: LaunchOrder, handle: Handle | None, grace: timedelta, checkpoint: Checkpoint | None
    ) -> Gone | Waiting:
        """See Provider."""
        place = ReplicaDirectory(self.home, order.replica_uid)
        if not place.root.exists() and not self._setups.waited_for(order) and _shim(handle) is None:
            return Gone("nothing of it was there")
        try:
            with locks.held(place.lock):
                shims = [*self._setups.leave(order, place), *_shims(place, handle)]
                return _end(shims, grace.total_seconds(), checkpoint or {}) or self._clear(place, bool(handle))
        except locks.Busy:
            return Waiting(checkpoint or {}, BUSY, BUSY_SECONDS)

    def _clear(self, place: ReplicaDirectory, known: bool) -> Gone:
        """Remove what is left but the log, which stays for the user to see until the replica is forgotten."""
        record = Control(place.control).record()
        clear_processes(self.home, place)
        for each in (place.control, place.home, place.setup, place.venv, place.told):
            trees.remove(each)
        return Gone(_ending(record, known))

    def inspect(self, handle: Handle) -> Inspection:
        """See Provider."""
        place = ReplicaDirectory(self.home, str(handle["uid"]))
        control = Control(place.control)
        if control.running() or _shim(handle):
            return Inspection("running")
        # In this order: a shim that ends in between has written its record before.
        record = control.record()
        if record is None:
            return Inspection("gone", None, _lost(place, handle), logs.tail(place.log))
        return Inspection("exited", record.code, describe(record), logs.tail(place.log))

    def find(self, replica_uid: str) -> Handle | None:
        """See Provider."""
        place = ReplicaDirectory(self.home, replica_uid)
        found = Control(place.control).running() or Control(place.control).last()
        return self._handle(place, found) if found else None

    def watch(self, handle: Handle) -> tuple[int, int] | None:
        """See Watchable: the shim ends when the exit record is written. One that has ended is news too."""
        return int(handle["shim_pid"]), int(handle["shim_start"])

    def usage(self, handles: Sequence[Handle]) -> list[Usage | None]:
        """See Metering: what runs below each shim."""
        shims = [_shim(handle) for handle in handles]
        used = procs.used_below(shim.pid for shim in shims if shim)
        return [Usage(*used[shim.pid]) if shim else None for shim in shims]

    def read_log(self, handle: Handle, offset: int, limit: int) -> tuple[bytes, int]:
        """See Readable. Offsets count from the first byte ever written; a removed part is skipped."""
        return logs.read(ReplicaDirectory(self.home, str(handle["uid"])).log, offset, limit)

    def forget_replica(self, replica_uid: str) -> None:
        """See Collecting. Raises ProviderError when the replica runs."""
        place = ReplicaDirectory(self.home, replica_uid)
        if still_there(place):
            raise ProviderError(f"Replica {replica_uid} still runs: take it down before it is forgotten.")
        trees.remove(place.root)

    def forget_version(self, version_uid: str) -> None:
        """See Collecting. A setup that still runs is ended."""
        self._setups.forget(version_uid)

    def kept(self) -> Iterable[Kept]:
        """See Listing."""
        return kept(self.home)


def _facts(place: ReplicaDirectory) -> dict[str, Any]:
    return read_object(place.control / "launch.json") or {}


def _shim(handle: Handle | None) -> procs.Proc | None:
    """The living shim that a handle speaks of; it finds one whose directory was removed from under it."""
    if not handle or "shim_pid" not in handle:
        return None
    process = procs.Proc(int(handle["shim_pid"]), int(handle["shim_start"]))
    return process if procs.alive(*process) else None


def _shims(place: ReplicaDirectory, handle: Handle | None) -> list[tuple[Control, procs.Proc]]:
    control = Control(place.control)
    running = control.running()
    process = running.shim if running else _shim(handle)
    return [(control, process)] if process else []


def _end(shims: list[tuple[Control, procs.Proc]], grace: float, checkpoint: Checkpoint) -> Waiting | None:
    """Ask the shims to end; None when they have. A shim that does not react in time is ended with all below it."""
    now = time.clock_gettime(time.CLOCK_BOOTTIME)  # the same in every process, and no clock that somebody sets
    deadline = min(now + grace, float(checkpoint.get("deadline", now + grace)))
    for control, process in shims:
        asked = checkpoint.get("asked", {})
        if asked.get(str(process.pid)) != grace and not control.stop(grace):
            procs.send(*process, 15)
    left = [process for _, process in shims if not procs.wait(*process, SETTLE_SECONDS)]
    if not left:
        return None
    if now > deadline + OVERDUE_SECONDS:
        for process in left:
            kill_tree(process)
    state = {"deadline": deadline, "asked": {str(process.pid): grace for process in left}}
    remaining = max(0.0, deadline - now)
    reason = f"its processes have {remaining:.0f} s more to end" if remaining else "its processes are being killed"
    return Waiting(state, reason, min(1.0, max(0.1, remaining)), left[0])


def _ending(record: Record | None, known: bool) -> str:
    if record is None:
        return "already gone" if known else "what the unfinished launch had made was removed"
    return describe(record)


def describe(record: Record) -> str:
    """A sentence on how a command ended."""
    lost = f"; {record.lost_bytes} bytes of its output found no room on the disk" if record.lost_bytes else ""
    if record.forced:
        return f"killed: it did not end within its grace{lost}"
    if record.out_of_memory:
        return f"killed by the kernel: it needed more memory than resources.memory gives it{lost}"
    return f"{record.how}{' when asked to end' if record.stopped else ''}{lost}"


def _lost(place: ReplicaDirectory, handle: Handle) -> str:
    if not place.control.exists():
        return "nothing of it is left"
    return f"the process that supervised it ({handle.get('shim_pid')}) was killed, and it ended with that"
