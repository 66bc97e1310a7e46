"""`logs SERVICE NUMBER`: what a replica says, or what its launch said."""

import time
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from replicas.core.values import OperationKind, OperationStatus, ReplicaState
from replicas.management.following import LOOK_SECONDS, News
from replicas.management.verb import Exit, Verb, fail, find_replica, find_service, whole
from replicas.models import Operation, Replica
from replicas.providers import logs

PIECE = 256 * 1024
FOLLOW_SECONDS = 0.2  # the log is a file: nobody rings when it grows
BACK = 64 * 1024


class Command(Verb):
    """Prints a log byte for byte, as it was written."""

    help = "Print a replica's own output, or with --launch the log of its launch, which `setup` writes to as well."
    examples = "  manage.py logs web 3 --tail 100 --follow\n  manage.py logs web 3 --launch\n"

    def add_arguments(self, parser: CommandParser) -> None:
        """SERVICE, NUMBER and how much."""
        parser.add_argument("service", metavar="SERVICE")
        parser.add_argument("number", metavar="NUMBER", type=whole(1, 2**31 - 1, "replica number"))
        parser.add_argument("--launch", action="store_true", help="the log of the launch")
        parser.add_argument(
            "--follow", "-f", action="store_true", help="go on until the replica (or its launch) has ended"
        )
        parser.add_argument(
            "--tail", metavar="N", type=whole(0, 10**9, "number of lines"), help="only the last N lines"
        )

    def handle(self, *, service: str, number: int, launch: bool, follow: bool, tail: int | None, **_: Any) -> None:
        """Print, then follow."""
        replica = find_replica(find_service(service), number)
        source: Source = LaunchLog(replica) if launch else RunLog(replica)
        with News() as news:
            log = source.path()
            while log is None and follow and not source.ended():
                news.wait()
                log = source.path()
            if log is None:
                fail(source.missing(), Exit.NOT_FOUND)
            offset = 0 if tail is None else _start_of_tail(log, tail)
            if follow:
                self._follow(source, log, offset, news)
                return
            offset = self._copy(log, offset)
        if offset == 0:
            self.warn(f"{source.name} is empty{'' if source.ended() else ' so far'}.")

    def _follow(self, source: "Source", log: Path, offset: int, news: News) -> None:
        """Print what comes until the source has ended and all is read. The row is asked only now and then."""
        looked, rung, ended = 0.0, True, False
        while not ended:
            now = time.monotonic()
            if rung or now - looked >= LOOK_SECONDS:
                ended, looked = source.ended(), now  # asked before reading: what is written until then is still read
            offset = self._copy(log, offset)
            rung = not ended and news.wait(FOLLOW_SECONDS)

    def _copy(self, log: Path, offset: int) -> int:
        """Print what is there from `offset` on; the offset after it."""
        while True:
            piece, offset = logs.read(log, offset, PIECE)
            if not piece:
                return offset
            self._write(piece)

    def _write(self, piece: bytes) -> None:
        binary = getattr(self.stdout._out, "buffer", None)
        if binary is None:
            self.stdout.write(piece.decode(errors="replace"), ending="")
        else:
            binary.write(piece)
            binary.flush()


class Source:
    """A log that may not be there yet, and may come to an end."""

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        self.name = f"The log of {replica.service.name}/{replica.number}"

    def path(self) -> Path | None:
        """The log's file, once there is one."""
        raise NotImplementedError

    def ended(self) -> bool:
        """True once nothing more will be written."""
        raise NotImplementedError

    def missing(self) -> str:
        """Why there is no log, and what to do."""
        raise NotImplementedError


class RunLog(Source):
    """What `run` writes."""

    def path(self) -> Path | None:
        """See Source."""
        self._refresh()
        log = Path(self.replica.log) if self.replica.log else None
        return log if log is not None and log.exists() else None

    def ended(self) -> bool:
        """See Source."""
        return self._refresh().ended

    def missing(self) -> str:
        """See Source."""
        replica = self.replica
        hint = f"`manage.py logs {replica.service.name} {replica.number} --launch` shows its launch."
        if replica.log:
            return f"The log of {replica.service.name}/{replica.number} is gone: {replica.log} was removed. {hint}"
        return f"{replica.service.name}/{replica.number} has written no log: it is {replica.state}. {hint}"

    def _refresh(self) -> ReplicaState:
        try:
            self.replica.refresh_from_db(fields=("state", "log"))
        except Replica.DoesNotExist:
            return ReplicaState.TERMINATED  # its row was pruned or purged
        return ReplicaState(self.replica.state)


class LaunchLog(Source):
    """What the newest launch wrote, with the output of `setup`."""

    def __init__(self, replica: Replica) -> None:
        super().__init__(replica)
        self.name = f"The launch log of {replica.service.name}/{replica.number}"

    def _operation(self) -> Operation | None:
        launches = Operation.objects.filter(replica=self.replica.pk, kind=OperationKind.LAUNCH)
        return launches.order_by("-id").first()

    def path(self) -> Path | None:
        """See Source."""
        operation = self._operation()
        log = Path(operation.log) if operation and operation.log else None
        return log if log is not None and log.exists() else None

    def ended(self) -> bool:
        """See Source."""
        operation = self._operation()
        return operation is None or not OperationStatus(operation.status).live

    def missing(self) -> str:
        """See Source."""
        operation = self._operation()
        about = f"{self.replica.service.name}/{self.replica.number}"
        if operation is None:
            return f"The launch of {about} was pruned, and its log with it."
        if not OperationStatus(operation.status).live:
            return f"The launch of {about} left no log: it is {operation.status}. {operation.error}".rstrip()
        waits = f": it waits for {operation.waits_for}" if operation.waits_for else ""
        return f"The launch of {about} has written nothing yet{waits}. `manage.py operations` shows it."


def _start_of_tail(log: Path, lines: int) -> int:
    """The offset at which the last `lines` lines begin."""
    end = at = logs.end(log)
    if lines == 0:
        return end
    found = 0
    while at > 0:
        begin = max(0, at - BACK)
        piece, after = logs.read(log, begin, at - begin)
        if after > at:  # what is older was removed, and reading began later than asked for
            piece, after = piece[: max(0, len(piece) - (after - at))], at
        if not piece:
            return at
        begin = after - len(piece)
        position = len(piece)
        if at == end and piece.endswith(b"\n"):
            position -= 1  # the end of the last line begins no line
        while (position := piece.rfind(b"\n", 0, position)) >= 0:
            found += 1
            if found == lines:
                return begin + position + 1
        at = begin
    return 0
