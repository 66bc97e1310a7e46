"""Ports for replicas on this host: below the ephemeral range, verified free, and reserved for as long as the replica
lives."""

import hashlib
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from replicas.providers.base import ProviderError

ATTEMPTS = 500


@dataclass(frozen=True, slots=True)
class Reservation:
    """A port and the descriptor whose being open reserves it."""

    port: int
    descriptor: int


@contextmanager
def reserved(owner: str, first: int, last: int, fixed: int | None = None) -> Iterator[Reservation]:
    """A free port between `first` and `last`, or `fixed`, reserved while the descriptor or a copy of it is open.

    The reservation is an abstract unix socket named after the port: the kernel gives it to one process of this network
    namespace (also of another Rollcall home, also of another user), and takes it back when the last holder ends,
    however it ends. A shim holds it for its replica. Where the search begins depends on `owner`, so that launches at
    the same time do not meet. Raises ProviderError when none is free.
    """
    span = last - first + 1
    begin = int.from_bytes(hashlib.blake2b(owner.encode(), digest_size=8).digest()) % span
    candidates = [fixed] if fixed else [first + (begin + step * 7919) % span for step in range(min(ATTEMPTS, span))]
    for port in candidates:
        holder = _reserve(port)
        if holder is None:
            continue
        with holder:
            if is_free(port):
                yield Reservation(port, holder.fileno())
                return
    if fixed:
        raise ProviderError(
            f"Port {fixed}, which `run` asks for by number, is in use on this machine: let `run` listen on $PORT, or"
            " end what uses it. The launch is tried again."
        )
    raise ProviderError(
        f"No free port found between {first} and {last}: end what uses them, or widen the range by"
        " ROLLCALL_REPLICA_PORT_FIRST and ROLLCALL_REPLICA_PORT_LAST. The launch is tried again."
    )


def _reserve(port: int) -> socket.socket | None:
    holder = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        holder.bind(f"\0rollcall-port-{port}")
    except OSError:
        holder.close()
        return None
    return holder


def is_free(port: int) -> bool:
    """True when a server could listen on the port now, on every address of this host."""
    for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):  # noqa: S104  (nothing listens)
        try:
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                if family == socket.AF_INET6:
                    probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                # As servers do: connections of the last user that linger in TIME_WAIT are no hindrance.
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind((address, port))
        except OSError as error:
            if family == socket.AF_INET6 and not _in_use(error):
                continue  # no IPv6 here
            return False
    return True


def _in_use(error: OSError) -> bool:
    return error.errno in (98, 13)  # EADDRINUSE, EACCES
