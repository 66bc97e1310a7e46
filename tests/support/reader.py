"""A browser's websocket on the feed: collects every event, and comes back with its cursor whenever it is cut off."""

import json
import socket
import threading
import time
from typing import Any

from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidMessage
from websockets.sync.client import ClientConnection, connect

from tests.support.person import Person

BROKEN = (ConnectionClosed, InvalidHandshake, InvalidMessage, OSError, EOFError, TimeoutError)


class FeedReader(threading.Thread):
    """`events` holds what came, in the order in which it came."""

    def __init__(self, person: Person, cursor: int = 0) -> None:
        super().__init__(name="feed-reader", daemon=True)
        self.person = person
        self.cursor = cursor
        self.events: list[dict[str, Any]] = []
        self.connections = 0
        self.resets: list[str] = []
        self._socket: ClientConnection | None = None
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.is_set():
            plane = self.person.plane
            address = f"{plane.url.replace('http', 'ws', 1)}/ws/feed?after={self.cursor}"
            try:
                with connect(
                    address,
                    origin=plane.url,  # type: ignore[arg-type]
                    additional_headers={"Cookie": self.person.cookie},
                    open_timeout=10,
                    max_size=None,
                ) as ws:
                    self.connections += 1
                    self._socket = ws
                    while not self._over.is_set():
                        self._take(json.loads(ws.recv(timeout=12)))
            except BROKEN:
                time.sleep(0.1)

    def drop(self) -> bool:
        """Cut the line without a word, as a network does; False when there is none."""
        if self._socket is None:
            return False
        try:
            self._socket.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            return False
        return True

    def stop(self) -> None:
        """Read no more."""
        self._over.set()
        self.join(15)

    def _take(self, message: dict[str, Any]) -> None:
        if message["type"] == "reset":
            self.resets.append(message["reason"])
            self._over.set()
        self.events += message.get("events", [])
        self.cursor = max(self.cursor, message.get("cursor", 0))
