"""The listening socket: taken before anything is started, and kept when the web process is replaced."""

import errno
import socket

from django.core.management.base import CommandError

BACKLOG = 512


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens on host and port (0: any free one). Raises CommandError."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (socket.gaierror, OverflowError) as error:
        raise CommandError(
            f"--host {host}: no such address here ({error}). Use 127.0.0.1 or a name of this machine."
        ) from None
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise CommandError(_why_not(error, host, port)) from None
    return listener


def url(listener: socket.socket) -> str:
    """Where a browser on this machine finds what the socket listens on; by this machine's name if on all addresses."""
    host, port = listener.getsockname()[:2]
    if host in {"0.0.0.0", "::"}:  # noqa: S104  (a comparison)
        host = socket.gethostname()
    if ":" in host:
        host = f"[{host}]"
    return f"http://{host}:{port}"


def _why_not(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        other = f"--port {port + 1}, or `make up PORT={port + 1}`"
        return f"Port {port} on {host} is in use by another program. Choose another one: {other}"
    if error.errno == errno.EACCES:
        return f"Port {port} on {host} is not allowed for this user. Choose one above 1023: --port 8000"
    return f"Cannot listen on {host}, port {port}: {error.strerror}. Choose with --host and --port."
