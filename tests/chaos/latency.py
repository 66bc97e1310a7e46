"""How long a change takes: from the end of a replica to the event of it on a websocket."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from replicas.providers.base import ProviderError
from replicas.providers.fake import FakeProvider
from tests.support.patience import starvation
from tests.support.reader import FeedReader
from tests.support.rows import Row, Rows

LONGEST_SECONDS = 30.0
PAUSE_SECONDS = 0.3  # so that one death does not wait behind the one before it


class Latency:
    """Ends replicas, and times how that is told."""

    def __init__(self, home: Path, rows: Rows, reader: FeedReader) -> None:
        self.rows = rows
        self.reader = reader
        self.fake = FakeProvider(home)

    def kill(self, service: str, pick: float) -> bool:
        """End a ready replica of a service: SIGKILL for a process. False where there is none."""
        ready = self.rows.replicas(service, "READY")
        return bool(ready) and self.end(ready[int(pick * len(ready))])

    def end(self, row: Row) -> bool:
        """End this one. False when it has just gone."""
        if row["provider"] == "fake":
            with suppress(ProviderError):
                self.fake.end(row["uid"], 9)
                return True
            return False
        with suppress(ProcessLookupError):
            os.kill(row["pid"], signal.SIGKILL)
            return True
        return False

    def of_a_death(self, number: int) -> tuple[float, float]:
        """Seconds from SIGKILL of a process to the event that it has ended, and how starved the machine was then.

        Raises AssertionError when none comes.
        """
        time.sleep(PAUSE_SECONDS)  # deaths are to be apart
        local = [row for row in self.rows.query("SELECT * FROM replicas_replica WHERE state = 'READY'") if row["pid"]]
        assert local, "no process is ready"
        row = local[number % len(local)]
        starved = starvation()
        place, began = len(self.reader.events), time.monotonic()
        assert self.end(row)
        while time.monotonic() - began < LONGEST_SECONDS:
            for event in self.reader.events[place:]:
                ended = event["kind"] == "replica" and event["object_id"] == row["id"]
                if ended and event["new"] == "SHUTTING_DOWN":
                    took = time.monotonic() - began
                    return took, (starved + starvation()) / 2
            time.sleep(0.001)
        raise AssertionError(f"replica {row['number']} was killed and no event came")
