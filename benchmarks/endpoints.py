"""Many HTTP endpoints in one process, each on a port of its own: what the probe benchmarks ask.

    python -m benchmarks.endpoints COUNT HANGING

Prints the ports as one JSON list; the last HANGING of them accept connections and never answer. Ends with its stdin.
"""

import asyncio
import contextlib
import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nok\n"


class Endpoint(asyncio.Protocol):
    """Answers any complete request head with 200, and closes as the probes ask for."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if data.endswith(b"\r\n\r\n"):
            self.transport.write(ANSWER)
            if b"close" in data:
                self.transport.close()


async def serve(count: int, hanging: int) -> None:
    """Until stdin ends."""
    loop = asyncio.get_running_loop()
    kinds = [Endpoint] * (count - hanging) + [asyncio.Protocol] * hanging
    servers = [await loop.create_server(kind, "127.0.0.1", 0) for kind in kinds]
    print(json.dumps([server.sockets[0].getsockname()[1] for server in servers]), flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


def more_files() -> None:
    """Let this process have as many open files as the host allows it."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@contextlib.contextmanager
def endpoints(count: int, hanging: int = 0) -> Iterator[list[int]]:
    """The ports of endpoints that are there for the length of the block."""
    command = [sys.executable, "-m", "benchmarks.endpoints", str(count), str(hanging)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1]
    )
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())
    finally:
        process.communicate(timeout=20)


if __name__ == "__main__":
    more_files()
    asyncio.run(serve(int(sys.argv[1]), int(sys.argv[2])))
