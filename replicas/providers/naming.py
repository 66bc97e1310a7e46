"""Addresses of the hosts that probes ask: at once where none need be looked up, else by the resolver, in threads."""

import asyncio
import ipaddress
import socket
from concurrent.futures import ThreadPoolExecutor

LOOKUPS = 16  # names looked up at the same time
KEPT_SECONDS = 5.0
LOOPBACK = ("127.0.0.1", "::1")  # RFC 6761: what localhost means, whatever the hosts file leaves out


class Names:
    """Hosts and their addresses, in the order in which to try them. For one event loop; close it at the end."""

    def __init__(self) -> None:
        self._literals: dict[str, tuple[str, ...] | None] = {}
        self._asked: dict[str, asyncio.Future[tuple[str, ...]]] = {}
        self._pool: ThreadPoolExecutor | None = None

    async def addresses(self, host: str) -> tuple[str, ...]:
        """At least one address. Raises socket.gaierror for a name that has none."""
        if host not in self._literals:
            self._literals[host] = _literal(host)
        return self._literals[host] or await self._look_up(host)

    async def _look_up(self, host: str) -> tuple[str, ...]:
        """Ask the resolver, together with all who want the same name; who gives up does not stop it for the others.

        An answer is kept for KEPT_SECONDS, a failure is not kept.
        """
        asked = self._asked.get(host)
        if asked is None:
            loop = asyncio.get_running_loop()
            if self._pool is None:
                self._pool = ThreadPoolExecutor(LOOKUPS, thread_name_prefix="probe-names")
            asked = self._asked[host] = loop.run_in_executor(self._pool, _resolve, host)
            asked.add_done_callback(lambda done: self._answered(host, done))
        return await asyncio.shield(asked)

    def _answered(self, host: str, done: "asyncio.Future[tuple[str, ...]]") -> None:
        failed = done.cancelled() or done.exception() is not None
        done.get_loop().call_later(0 if failed else KEPT_SECONDS, self._asked.pop, host, None)

    def close(self) -> None:
        """Let go of the threads. A look-up that hangs is left to end by itself: a sweep never waits for it."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)


def _literal(host: str) -> tuple[str, ...] | None:
    """The addresses of a host that needs no look-up: an address, or localhost."""
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return LOOPBACK
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return None
    return (host,)


def _resolve(host: str) -> tuple[str, ...]:
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(info[4][0]) for info in found))
