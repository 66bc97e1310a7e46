"""Servers for the tests of probing: well-behaved and hostile ones, on real sockets, in one event loop in a thread."""

import asyncio
import contextlib
import datetime
import ipaddress
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Servers:
    """Starts servers and stops them all at the end. `seen` holds the head of each request that `answering` got."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.seen: list[str] = []
        self.peers: list[tuple[str, int]] = []
        self._servers: list[asyncio.Server] = []
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def start(self, handler: Handler, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> int:
        """The port of a new server whose connections `handler` serves."""

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.peers.append(writer.get_extra_info("peername")[:2])
            with contextlib.suppress(OSError, EOFError, asyncio.CancelledError):
                await handler(reader, writer)
                writer.close()
                await writer.wait_closed()
            writer.transport.abort()

        async def begin() -> asyncio.Server:
            return await asyncio.start_server(serve, host, 0, ssl=tls, backlog=1024)

        server = asyncio.run_coroutine_threadsafe(begin(), self.loop).result(5)
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    def answering(self, answer: bytes, **options: object) -> int:
        """The port of a server that reads the head of a request, sends `answer` and closes."""

        async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.seen.append((await reader.readuntil(b"\r\n\r\n")).decode())
            writer.write(answer)
            await writer.drain()

        return self.start(handler, **options)  # type: ignore[arg-type]

    def hanging(self, first: bytes = b"") -> int:
        """The port of a server that sends `first` and then nothing more, and keeps the connection open."""

        async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(first)
            await reader.read(-1)  # until the other side goes

        return self.start(handler)

    def flooding(self, first: bytes, again: bytes) -> int:
        """The port of a server that sends `first` and then `again` for ever, as fast as it is taken."""

        async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(first)
            while True:
                writer.write(again)
                await writer.drain()

        return self.start(handler)

    def dripping(self, first: bytes, drop: bytes, every: float = 0.05) -> int:
        """The port of a server that sends `first` and then `drop` again and again, slowly."""

        async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(first)
            while True:
                writer.write(drop)
                await writer.drain()
                await asyncio.sleep(every)

        return self.start(handler)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self.loop).result(5)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(5)
        self.loop.close()

    async def _stop(self) -> None:
        for server in self._servers:
            server.close()
        serving = asyncio.all_tasks() - {asyncio.current_task()}
        for connection in serving:
            connection.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
        await asyncio.sleep(0.01)  # the transports close their sockets in the rounds that follow


def http(status: str, body: bytes = b"", *headers: str) -> bytes:
    """An answer with its length, such as http("200 OK", b"ok")."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@contextlib.contextmanager
def refusing() -> Iterator[int]:
    """A port that nobody else can take and nobody listens on."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        yield sock.getsockname()[1]


@contextlib.contextmanager
def not_accepting() -> Iterator[int]:
    """A port whose server has no room for one more connection."""
    with contextlib.ExitStack() as stack:
        sock = stack.enter_context(socket.socket())
        sock.bind(("127.0.0.1", 0))
        sock.listen(0)
        for _ in range(8):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(sock.getsockname())
        yield sock.getsockname()[1]


def self_signed(directory: Path) -> ssl.SSLContext:
    """TLS for a server at 127.0.0.1 whose certificate nobody vouches for."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "replica")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = directory / "replica.pem"
    path.write_bytes(
        certificate.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context
