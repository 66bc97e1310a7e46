"""`setup`, once for a version and host or once for a replica: started once, waited for by many, ended when nobody
waits."""

from dataclasses import dataclass
from pathlib import Path

from replicas.providers import cgroups, environment, joblog, local_check, locks, logs, procs, trees
from replicas.providers.base import Checkpoint, LaunchOrder, ProviderError, Waiting
from replicas.providers.control import BASH, PYTHON, Command, Control, Running
from replicas.providers.layout import ReplicaDirectory, VersionDirectory
from replicas.providers.local_clear import clear, kill_tree, tries
from replicas.providers.local_snapshot import WORK, Snapshots, copy_home
from replicas.providers.local_told import Telling

VENV_MAKER = Path(__file__).with_name("local_venv.py")
LOOK_SECONDS = 1.0
LOST_LIMIT = 3  # so many times a setup whose shim was killed is started again
SETUP_GRACE = 5.0


@dataclass(frozen=True, slots=True)
class Site:
    """Where one setup works, for a version or for a replica. `marks` is what its processes carry in their
    environment."""

    per_version: bool
    name: str
    setup: Path
    home: Path
    venv: Path
    log: Path
    marks: dict[str, str]

    def latest(self) -> Control | None:
        """The control directory of the last try."""
        controls = tries(self.setup)
        return controls[-1] if controls else None


class Setups:
    """The setups of one ROLLCALL_HOME."""

    def __init__(self, home: Path, snapshots: Snapshots) -> None:
        self._home = home
        self._snapshots = snapshots

    def step(self, order: LaunchOrder, place: ReplicaDirectory, checkpoint: Checkpoint) -> Waiting | None:
        """Take the setup one step on; None when it is done or there is none.

        The checkpoint holds `setup` (which try it waits for) and `lost` (how many shims were killed). Raises
        ProviderError when the setup failed, locks.Busy.
        """
        if not order.spec.get("setup"):
            return None
        self._snapshots.tree(order)  # before the lock below, under which it is made
        site = self._site(order, place)
        if not site.per_version:
            return self._advance(order, site, checkpoint)
        version = VersionDirectory(self._home, order.version_uid)
        with locks.held(version.lock):
            waiting = self._advance(order, site, checkpoint)
            if waiting is None:
                (version.waiters / order.replica_uid).unlink(missing_ok=True)
            return waiting

    def _advance(self, order: LaunchOrder, site: Site, checkpoint: Checkpoint) -> Waiting | None:
        latest = site.latest()
        if latest is None:
            return self._start(order, site, 1, checkpoint)
        number = int(latest.directory.name)
        running = latest.running()
        if running:
            return self._wait(order, site, latest, running, checkpoint)
        record = latest.record()
        telling = self._telling(order, site, latest)
        mine = checkpoint.get("setup") == number or telling.begun
        if record and record.code == 0:
            if mine:
                telling.go_on(_begin(latest), f"setup is done, it took {record.cpu_seconds:.1f} s of CPU")
            elif site.per_version:
                done = f"setup of version {order.version} was done before; its output is in {site.log}"
                telling.go_on(logs.end(site.log), done)
            return None
        if record and not record.stopped and mine:
            telling.go_on(_begin(latest))
            raise ProviderError(
                f"setup {record.how}: see the last lines of its output, correct it and apply again.",
                retryable=False,
                user_fault=True,
                tail=logs.tail(site.log, since=_begin(latest)),
            )
        lost = int(checkpoint.get("lost", 0)) + (record is None and mine)
        if lost > LOST_LIMIT:
            raise ProviderError(
                f"The process that supervises setup was killed {lost} times: see whether memory is short."
            )
        return self._start(order, site, number + 1, {**checkpoint, "lost": lost})

    def _start(self, order: LaunchOrder, site: Site, number: int, checkpoint: Checkpoint) -> Waiting:
        self._clear(site)
        copy_home(self._snapshots.tree(order), site.home)
        trees.remove(site.venv)
        limits = local_check.limits(order.spec)
        group = cgroups.plan(self._home, f"{site.name}-setup{number}", limits)
        for sentence in group.missing:
            joblog.append_to(order.log, sentence)
        control = Control(site.setup / str(number))
        command = Command(
            argv=(PYTHON, "-I", str(VENV_MAKER), str(site.venv), BASH, "-c", str(order.spec["setup"])),
            cwd=site.home / WORK,
            env=environment.of_setup(order, self._home, site.home, site.venv, site.per_version),
            log=site.log,
            secrets=tuple(order.secrets.values()),
            cgroups=group.directories,
            limits=group.limits,
            grace=SETUP_GRACE,
        )
        try:
            control.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            (control.directory / "begin").write_text(str(logs.end(site.log)))
            running = control.start(command, {"ROLLCALL_HOME": str(self._home), "ROLLCALL_SHIM_UID": site.name})
        except OSError as error:
            raise trees.explain(error, "when setup was to be started") from error
        return self._wait(order, site, control, running, checkpoint)

    def _wait(
        self, order: LaunchOrder, site: Site, control: Control, running: Running, checkpoint: Checkpoint
    ) -> Waiting:
        if site.per_version:
            waiter = VersionDirectory(self._home, order.version_uid).waiters / order.replica_uid
            waiter.parent.mkdir(exist_ok=True, mode=0o700)
            waiter.touch()
        if control.stopping:
            return Waiting(checkpoint, "an earlier setup to end", LOOK_SECONDS, running.shim)
        self._telling(order, site, control).go_on(_begin(control))
        state = {**checkpoint, "setup": int(control.directory.name)}
        # Without the time that it has taken: each second would be an event for every replica that waits.
        return Waiting(state, "setup to be done", LOOK_SECONDS, running.shim)

    def _telling(self, order: LaunchOrder, site: Site, control: Control) -> Telling:
        """How much of this try's output this attempt has in its log."""
        note = ReplicaDirectory(self._home, order.replica_uid).told
        return Telling(site.log, order.log, note, f"{site.name}/{control.directory.name} {order.attempt}")

    def furnish(self, order: LaunchOrder, place: ReplicaDirectory) -> None:
        """Give the replica its own copy of what its version has; with `setup_scope: replica` it has one already."""
        site = self._site(order, place)
        if order.spec.get("setup") and not site.per_version:
            return
        copy_home(site.home if order.spec.get("setup") else self._snapshots.tree(order), place.home)

    def venv(self, order: LaunchOrder, place: ReplicaDirectory) -> Path | None:
        """The virtual environment that `run` is to have, None without a setup."""
        return self._site(order, place).venv if order.spec.get("setup") else None

    def waited_for(self, order: LaunchOrder) -> bool:
        """True when a launch of this replica waits for its version's setup, or did when it was cut off."""
        return (VersionDirectory(self._home, order.version_uid).waiters / order.replica_uid).exists()

    def leave(self, order: LaunchOrder, place: ReplicaDirectory) -> list[tuple[Control, procs.Proc]]:
        """The replica waits no more. The shims to be ended before it is gone: its own setup, or its version's when no
        other launch waits for that. Raises locks.Busy."""
        own = tries(place.setup)
        running = own[-1].running() if own else None
        if running:
            return [(own[-1], running.shim)]
        version = VersionDirectory(self._home, order.version_uid)
        if not version.setup.exists():
            return []
        with locks.held(version.lock):
            (version.waiters / order.replica_uid).unlink(missing_ok=True)
            site = self._version_site(order.version_uid)
            latest = site.latest()
            running = latest.running() if latest else None
            if latest and running and (latest.stopping or not any(version.waiters.iterdir())):
                return [(latest, running.shim)]
            if latest and not running and latest.record() is None:
                self._clear(site)
        return []

    def forget(self, version_uid: str) -> None:
        """Remove all that is kept for a version; a setup that still runs is killed."""
        version = VersionDirectory(self._home, version_uid)
        if not version.root.exists():
            return
        try:
            with locks.held(version.lock):
                site = self._version_site(version_uid)
                latest = site.latest()
                running = latest.running() if latest else None
                if running:
                    kill_tree(running.shim)
                self._clear(site)
                trees.remove(version.root)
        except locks.Busy:
            raise ProviderError(f"Version {version_uid} is in use: a launch is at work. Try again.") from None

    def _clear(self, site: Site) -> None:
        controls = tries(site.setup)
        if controls:
            clear(controls[-1:], site.marks, f"setup of {site.name}")

    def _site(self, order: LaunchOrder, place: ReplicaDirectory) -> Site:
        if order.spec.get("setup_scope") != "replica":
            return self._version_site(order.version_uid)
        marks = {"ROLLCALL_HOME": str(self._home), "ROLLCALL_REPLICA_UID": order.replica_uid}
        return Site(False, order.replica_uid, place.setup, place.home, place.venv, place.setup_log, marks)

    def _version_site(self, version_uid: str) -> Site:
        at = VersionDirectory(self._home, version_uid)
        marks = {"ROLLCALL_HOME": str(self._home), "ROLLCALL_SETUP_VERSION": version_uid}
        return Site(True, version_uid, at.setup, at.home, at.venv, at.setup_log, marks)


def _begin(control: Control) -> int:
    try:
        return int((control.directory / "begin").read_text())
    except (FileNotFoundError, ValueError):
        return 0
