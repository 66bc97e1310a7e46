"""Doorbells: a datagram says that there may be news on a topic. A ring may be lost; listeners also look by time."""

import contextlib
import os
import select
import socket
from pathlib import Path

EVENTS = "events"


def topic_dir(run: Path, topic: str) -> Path:
    """The directory that holds the sockets of everybody who listens to `topic`."""
    return run / "bells" / topic


def ring(run: Path, topic: str) -> None:
    """Tell every listener of the topic. Never blocks and never fails: a full or dead listener is passed over."""
    try:
        names = os.listdir(topic_dir(run, topic))
    except FileNotFoundError:
        return
    if not names:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.setblocking(False)
        for name in names:
            path = topic_dir(run, topic) / name
            try:
                sender.sendto(b"1", str(path))
            except ConnectionRefusedError:  # its listener died without tidying up
                path.unlink(missing_ok=True)
            except OSError:  # full: it will wake up anyway; gone: nobody to tell
                continue


class Bell:
    """One listener of a topic: a socket with a file descriptor to wait on."""

    def __init__(self, run: Path, topic: str) -> None:
        directory = topic_dir(run, topic)
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path = directory / f"{os.getpid()}-{os.urandom(3).hex()}"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.setblocking(False)
        self.socket.bind(str(self.path))

    def fileno(self) -> int:
        """For select and event loops."""
        return self.socket.fileno()

    def drain(self) -> bool:
        """Forget the rings so far; True if there was one."""
        rung = False
        with contextlib.suppress(BlockingIOError):
            while self.socket.recv(64):
                rung = True
        return rung

    def wait(self, seconds: float) -> bool:
        """Wait for a ring, at most `seconds`; True if there was one."""
        readable, _, _ = select.select([self.socket], [], [], max(0.0, seconds))
        return bool(readable) and self.drain()

    def close(self) -> None:
        """Stop listening and remove the socket."""
        self.socket.close()
        self.path.unlink(missing_ok=True)
