"""A job that tells how long it was on its way."""

import socket
import time


def note(sent: float, path: str) -> None:
    """Send the seconds since `sent` (on the monotonic clock) to the datagram socket at `path`."""
    taken = time.monotonic() - sent
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(str(taken).encode(), path)
