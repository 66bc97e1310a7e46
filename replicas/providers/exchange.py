"""One HTTP/1.1 request and its answer over one fresh connection, with a limit on everything that a peer may send.

The parser is llhttp (by httptools). A general HTTP client would follow, retry, decompress and keep more than a probe
may, and costs a probing process twice the processor time and 15 MB.
"""

import asyncio
import functools
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import quote, urlsplit

from httptools import HttpParserCallbackError, HttpParserError, HttpParserUpgrade, HttpResponseParser

BODY_LIMIT = 4096  # bytes of the body that are read; what comes after them is not waited for
WIRE_LIMIT = 65536  # bytes in all before the answer must be complete
CHUNK = 16384  # bytes taken from the socket at a time, so that one flood cannot hold up the other probes

# RFC 3986: what may stand in a path and query as it is; the rest is percent-encoded, control characters included.
PATH_SAFE = "/?%:@!$&'()*+,;=-._~[]"
TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110: the name of a header
CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
OURS = frozenset({"connection", "content-length", "transfer-encoding", "accept-encoding"})
DEFAULT_PORTS = {"http": 80, "https": 443}


class Phase(StrEnum):
    """How far an exchange has got, in words that stand in a sentence for the user."""

    CONNECTING = "not connected yet"
    HANDSHAKE = "connected, TLS handshake not complete yet"
    WAITING = "connected, no complete headers yet"
    BODY = "connected, body still arriving"


@dataclass(frozen=True, slots=True)
class Target:
    """Where to ask and what. `host` is a name, or an address without brackets; `path` is percent-encoded."""

    secure: bool
    host: str
    port: int
    authority: str
    path: str

    @classmethod
    @functools.lru_cache(maxsize=4096)  # the same replicas are asked again and again
    def of(cls, url: str, path: str) -> "Target":
        """The target of `path` under the base `url`. Raises ValueError for a url that is no http or https address."""
        parts = urlsplit(url)
        if parts.scheme not in DEFAULT_PORTS:
            raise ValueError(f"{parts.scheme or url!r} is not http or https")
        if not parts.hostname:
            raise ValueError(f"{url!r} has no host")
        default = DEFAULT_PORTS[parts.scheme]
        port = parts.port or default
        bare = parts.hostname.split("%")[0]  # a zone, as in fe80::1%eth0, is for this host alone
        host = f"[{bare}]" if ":" in bare else bare
        full = parts.path.rstrip("/") + (path if path.startswith("/") else f"/{path}")
        return cls(
            secure=parts.scheme == "https",
            host=parts.hostname,
            port=port,
            authority=host if port == default else f"{host}:{port}",
            path=quote(full.partition("#")[0], safe=PATH_SAFE),
        )


def request_bytes(method: str, target: Target, headers: Mapping[str, str], body: bytes | None) -> bytes:
    """The request as it is sent. Given headers win over our own, except those that say how the message is framed.

    Raises ValueError for a header whose name or value cannot be sent.
    """
    lines = {"host": target.authority, "user-agent": "rollcall-probe", "accept": "*/*"}
    if body is not None:
        lines["content-type"] = "application/json"
    for name, value in headers.items():
        if not TOKEN.fullmatch(name):
            raise ValueError(f"{name!r} is not the name of a header")
        if CONTROL.search(value):
            raise ValueError(f"the value of header {name} has a control character")
        if name.lower() not in OURS:
            lines[name.lower()] = value
    lines["connection"] = "close"
    lines["accept-encoding"] = "identity"
    if body is not None or method == "POST":
        lines["content-length"] = str(len(body or b""))
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"{method} {target.path} HTTP/1.1\r\n{head}\r\n".encode() + (body or b"")


@functools.cache
def tls_context(insecure: bool) -> ssl.SSLContext:
    """How to speak TLS: `insecure` accepts any certificate, otherwise the host's trust store decides."""
    if not insecure:
        return ssl.create_default_context()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete answer, or as much of it as a probe reads. `body` holds at most BODY_LIMIT bytes, as they came."""

    status: int
    body: bytes
    location: str
    encoding: str


@dataclass(frozen=True, slots=True)
class Broken:
    """The connection was there and gave no answer: `cause` is the error of the connection, None if the peer is at fault
    for what it sent (or did not send), which `why` says as the end of a sentence that begins with the request."""

    why: str
    cause: Exception | None = None
    silent: bool = False  # not one byte came


class Exchange(asyncio.BufferedProtocol):
    """Sends the request when the connection is made; `outcome` is set once. Never raises what the peer causes.

    `buffer` may be shared by all exchanges of a loop: what is in it is used before anybody else runs.
    """

    def __init__(self, request: bytes, buffer: memoryview, loop: asyncio.AbstractEventLoop) -> None:
        self.phase = Phase.CONNECTING
        self.outcome: asyncio.Future[Answer | Broken] = loop.create_future()
        self.status: int | None = None  # of the final answer, once its headers are complete
        self._request = request
        self._buffer = buffer
        self._transport: asyncio.Transport | None = None
        self._parser = HttpResponseParser(self)
        self._received = 0
        self._headers: dict[bytes, bytes] = {}
        self._body = bytearray()

    def close(self) -> None:
        """Drop the connection at once, whatever is still to be sent or read."""
        if self._transport is not None:
            self._transport.abort()

    def so_far(self) -> Answer | None:
        """What has been read when the headers were complete, None before that."""
        if self.status is None:
            return None
        return Answer(
            self.status,
            bytes(self._body[:BODY_LIMIT]),
            self._headers.get(b"location", b"").decode("utf-8", "replace"),
            self._headers.get(b"content-encoding", b"").decode("ascii", "replace"),
        )

    # --- called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.phase = Phase.WAITING
        transport.write(self._request)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._received += nbytes
        try:
            self._parser.feed_data(self._buffer[:nbytes])
        except HttpParserCallbackError:
            raise  # a fault in this class, not in the peer
        except HttpParserUpgrade:
            pass  # a 101, which is complete with its headers
        except HttpParserError as error:
            self._settle(Broken(f"got something that is not HTTP ({error})"))
        if self._received > WIRE_LIMIT:
            self._settle(Broken(f"got {WIRE_LIMIT // 1024} KiB and still no complete answer"))

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is not None:
            self._settle(Broken("lost its connection", exc, silent=not self._received))
        elif self.status is not None and self._ends_with_connection():
            self._settle(self.so_far())
        elif self.status is not None:
            self._settle(Broken("was cut off in the middle of the body"))
        elif self._received:
            self._settle(Broken("was cut off in the middle of the headers"))
        else:
            self._settle(Broken("got no answer: the connection was closed", silent=True))

    # --- called by the parser

    def on_message_begin(self) -> None:
        self._headers.clear()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status >= 200 or status == 101:  # the other 1xx only announce the answer
            self.status = status
            self.phase = Phase.BODY

    def on_body(self, body: bytes) -> None:
        self._body += body
        if len(self._body) >= BODY_LIMIT:
            self._settle(self.so_far())

    def on_message_complete(self) -> None:
        if self.status is not None:
            self._settle(self.so_far())

    def _ends_with_connection(self) -> bool:
        return b"content-length" not in self._headers and b"transfer-encoding" not in self._headers

    def _settle(self, outcome: Answer | Broken | None) -> None:
        if outcome is not None and not self.outcome.done():
            self.outcome.set_result(outcome)
            self.close()
