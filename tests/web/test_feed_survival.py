"""Nothing is lost and nothing doubled: over broken sockets, a killed server, a reader that does not read."""

import json
import random
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidMessage
from websockets.sync.client import ClientConnection

from tests.support.patience import within
from tests.support.polling import eventually
from tests.web.site import Site, receive, receive_events

BROKEN = (ConnectionClosed, InvalidHandshake, InvalidMessage, OSError, EOFError, TimeoutError)


@pytest.fixture
def own_site() -> Iterator[Site]:
    """A server for one test, which may do to it what it likes."""
    made = Site()
    try:
        yield made.start()
    finally:
        made.close()


class Reader(threading.Thread):
    """A browser with a bad line: it breaks its socket again and again, and comes back with its cursor."""

    def __init__(self, site: Site, session: str, cursor: int, seed: int) -> None:
        super().__init__()
        self.site, self.session, self.cursor = site, session, cursor
        self.random = random.Random(seed)
        self.ids: list[int] = []
        self.breaks = 0
        self.last: int | None = None
        self.deadline = time.monotonic() + 150

    def run(self) -> None:
        while (self.last is None or self.cursor < self.last) and time.monotonic() < self.deadline:
            try:
                with self.site.socket(f"/ws/feed?after={self.cursor}", self.session) as ws:
                    for _ in range(self.random.randint(1, 6)):
                        self.take(json.loads(ws.recv(timeout=1)))
                    ws.socket.shutdown(socket.SHUT_RDWR)  # no closing handshake
                    self.breaks += 1
            except BROKEN:
                time.sleep(0.02)

    def take(self, message: dict[str, object]) -> None:
        assert message["type"] in ("hello", "events", "ping"), message
        for event in message.get("events", []):  # type: ignore[attr-defined]
            self.ids.append(event["id"])
        self.cursor = max(self.cursor, message["cursor"])  # type: ignore[call-overload]


def test_broken_sockets_and_a_killed_server_lose_and_double_nothing(own_site: Site) -> None:
    session = own_site.scribe.user(name="ann", permissions=["view_service"])["session"]
    service = own_site.scribe.service(name="web")
    start = own_site.scribe.newest()
    readers = [Reader(own_site, session, start, seed) for seed in range(4)]
    for reader in readers:
        reader.start()
    for turn in range(30):
        last = own_site.scribe.emit(service_id=service, count=50, each=10)[-1]
        if turn == 15:
            own_site.kill()
            own_site.scribe.emit(service_id=service, count=50)
            own_site.start()
    for reader in readers:
        reader.last = last
    for reader in readers:
        reader.join(180)
        assert reader.ids == list(range(start + 1, last + 1))
    assert sum(reader.breaks for reader in readers) > 20


def slow_socket(site: Site) -> socket.socket:
    """A connection that takes little before it blocks its writer."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.connect(("127.0.0.1", site.port))
    return made


def test_a_reader_that_does_not_read_costs_no_memory_and_loses_nothing(own_site: Site) -> None:
    """What it misses is more than the window in memory, so it is read back from the database."""
    session = own_site.scribe.user(name="ann", permissions=["view_service"])["session"]
    service = own_site.scribe.service(name="web")
    own_site.scribe.emit(service_id=service, count=1000, each=100, reason="x" * 9000)  # fills the window
    start = own_site.scribe.newest()
    assert own_site.process is not None
    with (
        own_site.socket(f"/ws/feed?after={start}", session, sock=slow_socket(own_site), max_queue=1) as slow,
        own_site.socket(f"/ws/feed?after={start}", session) as quick,
    ):
        receive(quick)
        before = psutil.Process(own_site.process.pid).memory_info().rss
        with ThreadPoolExecutor(1) as writer:
            work = writer.submit(own_site.scribe.emit, service_id=service, count=2000, each=100, reason="x" * 9000)
            got: list[int] = []
            while len(got) < 2000:
                got += [event["id"] for event in receive(quick, 60)["events"]]
            ids = work.result()
        assert got == ids
        grown = psutil.Process(own_site.process.pid).memory_info().rss - before
        assert grown < 12e6, f"{grown / 1e6:.0f} MB for 18 MB of events that one reader does not take"
        found = taken(slow, ids[-1])
    if found != ids:  # the server gave it up as dead meanwhile: it comes back with its cursor
        assert found == ids[: len(found)]
        cursor = found[-1] if found else start
        with own_site.socket(f"/ws/feed?after={cursor}", session) as again:
            receive(again)
            found += [event["id"] for event in receive_events(again, ids[-1])]
    assert found == ids


def taken(ws: ClientConnection, last: int) -> list[int]:
    """The ids of the events up to `last`, or up to where the socket was closed."""
    ids: list[int] = []
    while not ids or ids[-1] < last:
        try:
            ids += [event["id"] for event in receive(ws).get("events", [])]
        except ConnectionClosed:
            break
    return ids


def test_sockets_are_closed_and_the_server_ends_soon_when_it_is_stopped(own_site: Site) -> None:
    session = own_site.scribe.user(name="ann", permissions=["view_service"])["session"]
    service = own_site.scribe.service(name="web")
    log = own_site.home / "run.log"
    log.write_text("hello\n")
    replica = own_site.scribe.replica(service_id=service, log=str(log))["replica"]
    with (
        own_site.socket("/ws/feed", session) as feed,
        own_site.socket(f"/ws/log?replica={replica}", session) as lines,
        own_site.socket("/ws/feed", session, sock=slow_socket(own_site), max_queue=1),
    ):
        receive(feed)
        receive(lines)
        with within(5):
            own_site.stop()
        for ws in (feed, lines):
            with pytest.raises(ConnectionClosed) as closed:
                while True:
                    receive(ws)
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1012
    assert not list((own_site.home / "run" / "bells" / "events").iterdir())
    assert "Traceback" not in own_site.output.read_text()


def test_a_server_that_was_killed_leaves_a_bell_that_the_next_ring_removes(own_site: Site) -> None:
    service = own_site.scribe.service(name="web")
    bells = own_site.home / "run" / "bells" / "events"
    own_site.kill()
    assert len(list(bells.iterdir())) == 1
    own_site.scribe.emit(service_id=service)
    eventually(lambda: not list(bells.iterdir()))
