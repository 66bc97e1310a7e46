"""Drives one HAProxy: keeps what it serves equal to what is wanted, whatever it was or has become."""

import logging
import os
import re
import socket
import subprocess
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from replicas.core.wording import some
from replicas.gateway import config, members, runtime, statistics
from replicas.gateway.config import Options
from replicas.gateway.runtime import Unexpected, Unreachable
from replicas.gateway.statistics import Backend, Unreadable
from replicas.gateway.values import Entry, Wanted

log = logging.getLogger(__name__)

ASK = f"show env ROLLCALL_SHAPE; {statistics.ASK}"
CHECK_SECONDS = 20.0
AGAIN_SECONDS = 5.0  # until a port that was in use, or a configuration that was refused, is tried again
HELD = re.compile(r"value=<(\d+)")
BIND = re.compile(r"^    bind .*?:(\d+)(?: |$)", re.MULTILINE)


class EntryRefused(Unexpected):
    """An entry cannot be served, which has been said: the others are tried without it."""


@dataclass(slots=True)
class DataPlane:
    """`binary` is HAProxy's. After `follow`: `backends` has the figures, `problems` why an entry is not served (by id),
    `trouble` why nothing can be said or done at all ("" when all is well)."""

    options: Options
    binary: str
    backends: dict[str, Backend] = field(default_factory=dict)
    problems: dict[int, str] = field(default_factory=dict)
    trouble: str = ""
    _refused: dict[Entry, tuple[float, str]] = field(default_factory=dict)
    _written: tuple[str, dict[str, str]] | None = None
    _latest: tuple[Wanted, str] | None = None
    _filed: tuple[Wanted, str] | None = None
    _said: dict[Entry, str] = field(default_factory=dict)
    _told: dict[int, str] = field(default_factory=dict)
    _next_reload: float = 0.0
    _gone_since: float | None = None
    _old: list[dict[str, Backend]] = field(default_factory=list)
    _may_be_old: bool = True

    def follow(self, wanted: Wanted, kept: frozenset[tuple[int, str]] = frozenset()) -> bool:
        """Make HAProxy serve `wanted`. `kept`: (entry's id, member's name) of what is out and still counted.

        False when it could not; `trouble` says why. Costs a millisecond when nothing is to be done.
        """
        try:
            serving = self._possible(wanted)
            shape = self._shape(serving)
            if self._look() != shape:
                self._install(serving, shape)
                if self._look() != shape:
                    raise Unexpected("HAProxy has not taken its new configuration yet")
            self._write(serving, shape)
            self._move(serving, kept)
            self._follow_old(serving, kept)
        except Unreachable as error:
            return self._unreachable(wanted, str(error))
        except EntryRefused as error:
            self.trouble = str(error)
            return False
        except (Unexpected, Unreadable, OSError, subprocess.SubprocessError) as error:
            if self.trouble != str(error):
                log.warning("gateway: %s", error)
            self.trouble = str(error)
            return False
        self.options.places.starting.unlink(missing_ok=True)  # always: one that is back at once was never seen away
        self.trouble, self._gone_since = "", None
        for entry in serving.entries:
            self._said.pop(entry, None)
        return True

    def in_flight(self, entry_id: int, name: str) -> int:
        """Requests that a member has now, or that wait for it, in workers of earlier configurations too."""
        count = 0
        for backends in (self.backends, *self._old):
            backend = backends.get(f"b{entry_id}")
            figures = backend.servers.get(name) if backend else None
            count += figures.in_flight + figures.queued if figures else 0
        return count

    def held(self, wanted: Wanted) -> dict[int, int]:
        """How many requests wait for a first replica, by the entry's id; asked where there is none."""
        found = {}
        for entry in wanted.entries:
            if entry.hold > 0 and not wanted.members.get(entry.id):
                try:
                    said = runtime.ask(self.options.places.stats, f"get var proc.held_{entry.backend}")
                except Unreachable:
                    break
                value = HELD.search(said)
                found[entry.id] = int(value[1]) if value else 0
        return found

    # --- steps of `follow` ----------------------------------------------------------------------------------------

    def _shape(self, wanted: Wanted) -> str:
        """The shape of `wanted`, which is mostly the one that was asked about last."""
        if self._latest is None or self._latest[0] is not wanted:
            self._latest = (wanted, config.shape_of(wanted, self.options))
        return self._latest[1]

    def _look(self) -> str:
        """Read the figures; the shape that the worker was started with."""
        first, _, rest = runtime.ask(self.options.places.stats, ASK).lstrip().partition("\n")
        self.backends = statistics.parse(rest)
        return first.strip().removeprefix("ROLLCALL_SHAPE=")

    def _move(self, wanted: Wanted, kept: frozenset[tuple[int, str]]) -> None:
        """Bring members and reasons up to date over the socket."""
        moved = False
        for entry in wanted.entries:
            backend = self.backends.get(entry.backend)
            if backend is None:
                raise Unexpected(f"HAProxy knows no backend {entry.backend}")
            names = [name for number, name in kept if number == entry.id]
            for step in members.steps(entry, wanted.members.get(entry.id, ()), backend.servers, names):
                runtime.tell(self.options.places.stats, step.line, *step.accepted)
                moved = True
            self._explain(entry, config.one_line(wanted.reasons.get(entry.id, "")))
        if moved:
            self._look()

    def _follow_old(self, wanted: Wanted, kept: frozenset[tuple[int, str]]) -> None:
        """Workers of earlier configurations answer on the connections that they have, so members come and go there too.

        One may end at any moment: what it does not answer it need not know.
        """
        if not self._may_be_old:
            return
        master, self._old = self.options.places.master, []
        pids = runtime.old_workers(master)
        self._may_be_old = bool(pids)
        for pid in pids:
            try:
                backends = statistics.parse(runtime.ask(master, f"@!{pid} {statistics.ASK}"))
                for entry in wanted.entries:
                    if entry.backend in backends:
                        self._move_old(pid, entry, wanted, backends[entry.backend], kept)
            except (Unreadable, Unexpected) as error:
                log.debug("worker %d of an earlier configuration: %s", pid, error)
                continue
            self._old.append(backends)

    def _move_old(
        self, pid: int, entry: Entry, wanted: Wanted, backend: Backend, kept: frozenset[tuple[int, str]]
    ) -> None:
        names = [name for number, name in kept if number == entry.id]
        for step in members.steps(entry, wanted.members.get(entry.id, ()), backend.servers, names):
            for line in members.for_old_worker(step.line):
                runtime.tell(self.options.places.master, f"@!{pid} {line}", *step.accepted)

    def _explain(self, entry: Entry, reason: str) -> None:
        if self._told.get(entry.id) != reason:
            line = f"set map {config.REASONS} {entry.id} {runtime.quoted(reason)}"
            runtime.tell(self.options.places.stats, line)
            self._told[entry.id] = reason

    def _possible(self, wanted: Wanted) -> Wanted:
        """Without the entries that were refused lately; notes why these are not served."""
        now = time.monotonic()
        self._refused = {entry: (until, why) for entry, (until, why) in self._refused.items() if until > now}
        self.problems = {entry.id: self._refused[entry][1] for entry in wanted.entries if entry in self._refused}
        if not self.problems:
            return wanted
        return replace(wanted, entries=tuple(e for e in wanted.entries if e not in self._refused))

    def _install(self, wanted: Wanted, shape: str) -> None:
        """Write, check and load a configuration of another shape. Raises Unexpected."""
        now = time.monotonic()
        if now < self._next_reload:
            raise Unexpected("HAProxy gets its new configuration in a moment")
        self._next_reload = now + AGAIN_SECONDS
        self._refuse_busy(wanted, self._bound())
        if any(entry in self._refused for entry in wanted.entries):
            self._next_reload = now
            raise EntryRefused(next(iter(self._refused.values()))[1])
        self._check(wanted, shape)
        self._write(wanted, shape)
        runtime.reload(self.options.places.master)
        self._may_be_old = True
        self._told = {entry.id: config.one_line(wanted.reasons.get(entry.id, "")) for entry in wanted.entries}
        self._next_reload = now
        log.info("HAProxy serves %s now (configuration %s)", some(len(wanted.entries), "service"), shape)

    def _write(self, wanted: Wanted, shape: str) -> None:
        """Keep the file as things are, so that an HAProxy that starts from it has the members of this moment."""
        if self._filed is not None and self._filed[0] is wanted and self._filed[1] == shape:
            return
        self._filed = (wanted, shape)
        text = config.render(wanted, self.options, shape)
        maps = files_of(wanted)
        if (text, maps) == self._written:
            return
        places = self.options.places
        for name, content in maps.items():
            put(places.directory / name, content)
        put(places.configuration, text)
        self._written = (text, maps)

    def _check(self, wanted: Wanted, shape: str) -> None:
        """Ask HAProxy itself whether the configuration is right. Raises Unexpected and notes whose fault it is."""
        said = self._verdict(wanted, shape)
        if not said:
            return
        for entry in wanted.entries:
            alone = self._verdict(replace(wanted, entries=(entry,)), shape)
            if alone:
                self._refuse(entry, f"its configuration is refused by HAProxy: {alone}")
        if any(entry in self._refused for entry in wanted.entries):
            self._next_reload = 0.0
            raise EntryRefused(f"HAProxy refuses the configuration: {said}")
        raise Unexpected(f"HAProxy refuses the configuration: {said}")

    def _verdict(self, wanted: Wanted, shape: str) -> str:
        """What HAProxy has against it; "" if nothing."""
        draft = self.options.places.directory / "draft.cfg"
        put(draft, config.render(wanted, self.options, shape))
        for name, content in files_of(wanted).items():
            if not (self.options.places.directory / name).exists():
                put(self.options.places.directory / name, content)
        done = subprocess.run(
            [self.binary, "-c", "-f", str(draft)], capture_output=True, text=True, timeout=CHECK_SECONDS, check=False
        )
        draft.unlink(missing_ok=True)
        return "" if done.returncode == 0 else _alerts(done.stderr or done.stdout)

    # --- ports ----------------------------------------------------------------------------------------------------

    def _bound(self) -> set[int]:
        """The ports that our HAProxy has by the file it was started with."""
        try:
            return {int(port) for port in BIND.findall(self.options.places.configuration.read_text())}
        except FileNotFoundError:
            return set()

    def _refuse_busy(self, wanted: Wanted, bound: set[int]) -> None:
        """Note the entries whose port some other program has."""
        for entry in wanted.entries:
            if entry.port not in bound and not free(self.options.host, entry.port):
                self._refuse(entry, f"port {entry.port} is in use by another program: end it, or set endpoint_port")

    def _refuse(self, entry: Entry, why: str) -> None:
        if self._said.get(entry) != why:  # it is tried again each few seconds, and said once
            self._said[entry] = why
            log.warning("gateway: service %s has no endpoint: %s", entry.name, why)
        self._refused[entry] = (time.monotonic() + AGAIN_SECONDS, why)
        self.problems[entry.id] = why

    def _unreachable(self, wanted: Wanted, why: str) -> bool:
        """HAProxy is not there: leave a file for its next start, without the ports that keep it from starting."""
        now = time.monotonic()
        self._gone_since = self._gone_since or now
        if self.trouble != why:
            log.warning("gateway: %s", why)
        self.trouble, self.backends, self._old = why, {}, []
        if now - self._gone_since > AGAIN_SECONDS and not listens(self.options.places.stats):
            self._refuse_busy(wanted, set())
            serving = self._possible(wanted)
            shape = self._shape(serving)
            self._write(serving, shape)
        return False


def files_of(wanted: Wanted) -> dict[str, str]:
    """The maps beside the configuration, by name."""
    return {
        config.NAMES: config.names(wanted),
        config.HOSTS: config.hosts(wanted),
        config.REASONS: config.reasons(wanted),
    }


def put(path: Path, text: str) -> None:
    """Replace a file in one step, readable by its owner only."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    os.replace(draft, path)


def free(host: str, port: int) -> bool:
    """Whether a program could listen there now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except OSError:
            return False
    return True


def listens(path: Path) -> bool:
    """Whether a process listens on the unix socket, though it may be too busy to answer."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        link.settimeout(runtime.SECONDS)
        try:
            link.connect(str(path))
        except TimeoutError:
            return True
        except OSError:
            return False
    return True


def _alerts(text: str) -> str:
    """The lines of HAProxy's complaints that say what is wrong, in short."""
    lines = [line.split(" : ", 1)[-1].strip() for line in text.splitlines() if "[ALERT]" in line]
    return "; ".join(lines[:3])[:500] or text.strip()[-300:] or "no reason given"
