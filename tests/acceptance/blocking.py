"""Holds a worker in the middle of a step: the operation's log is a pipe, and opening it takes until somebody reads."""

import os
from pathlib import Path

from tests.acceptance.scene import Scene
from tests.support.polling import eventually
from tests.support.rows import Row


class BlockedLogs:
    """The logs of the next operations are pipes, until `release`."""

    def __init__(self, scene: Scene, number: int = 1) -> None:
        (sequence,) = scene.rows.query(
            "SELECT coalesce(max(seq), 0) AS seq FROM sqlite_sequence WHERE name = 'replicas_operation'"
        )
        folder = scene.plane.home / "logs" / "operations"
        folder.mkdir(parents=True, exist_ok=True)
        self.paths = [folder / f"{sequence['seq'] + 1 + place}.log" for place in range(number)]
        for path in self.paths:
            os.mkfifo(path)
        self.readers: list[int] = []

    def wait_at_work(self, scene: Scene, number: int) -> list[Row]:
        """Wait until so many operations are in a step and come no further."""

        def look() -> list[Row] | None:
            rows = [row for row in scene.rows.operations() if row["status"] == "RUNNING" and waits_for_pipe(row)]
            return rows if len(rows) >= number else None

        return eventually(look, 30, lambda: f"{scene.rows.operations()[-3:]}\n{scene.plane.tail()}")

    def release(self) -> None:
        """Let everything that waits go on, now and later."""
        for path in self.paths:
            self.readers.append(os.open(path, os.O_RDONLY | os.O_NONBLOCK))

    def close(self) -> None:
        """Read no more, and remove the pipes."""
        for reader in self.readers:
            os.close(reader)
        for path in self.paths:
            path.unlink(missing_ok=True)


def waits_for_pipe(operation: Row) -> bool:
    """Whether the operation's owner is held by the pipe."""
    try:
        return Path(f"/proc/{operation['owner_pid']}/wchan").read_text() in ("wait_for_partner", "fifo_open")
    except OSError:
        return False
