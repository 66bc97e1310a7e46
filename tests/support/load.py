"""Steady requests from several clients at a time, which never repeat one; what became of each."""

import http.client
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urlsplit


class Answer(NamedTuple):
    """One request: when it was sent and answered (monotonic), status (0: none came) and body or error."""

    sent: float
    done: float
    status: int
    body: str

    @property
    def ok(self) -> bool:
        """Whether it was served."""
        return self.status == 200


@dataclass(slots=True)
class Load:
    """`answers` grows while the load lasts. Half of the clients keep their connection, the others take a new one each
    time; every third request is a POST."""

    url: str
    path: str = "/"
    pause: float = 0.01
    answers: list[Answer] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def client(self, keeps: bool) -> None:
        """Ask until the load is over."""
        parts = urlsplit(self.url)
        assert parts.hostname
        link = http.client.HTTPConnection(parts.hostname, parts.port, timeout=20)
        number = 0
        while not self.over.is_set():
            number += 1
            sent = time.monotonic()
            try:
                link.request("POST" if number % 3 == 0 else "GET", self.path, b"x" if number % 3 == 0 else None)
                answer = link.getresponse()
                self.answers.append(Answer(sent, time.monotonic(), answer.status, answer.read().decode()))
            except (OSError, http.client.HTTPException) as error:
                self.answers.append(Answer(sent, time.monotonic(), 0, repr(error)))
                link.close()
            if not keeps:
                link.close()
            self.over.wait(self.pause)
        link.close()

    @property
    def failed(self) -> list[Answer]:
        """The requests that were not served."""
        return [answer for answer in list(self.answers) if not answer.ok]

    def since(self, moment: float) -> list[Answer]:
        """The requests that were sent after a moment."""
        return [answer for answer in list(self.answers) if answer.sent > moment]


@contextmanager
def load(url: str, clients: int = 6, path: str = "/", pause: float = 0.01) -> Iterator[Load]:
    """A load that lasts as long as the block."""
    made = Load(url, path, pause)
    threads = [threading.Thread(target=made.client, args=(number % 2 == 0,), daemon=True) for number in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield made
    finally:
        made.over.set()
        for thread in threads:
            thread.join(30)
