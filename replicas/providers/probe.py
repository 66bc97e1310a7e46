"""One readiness probe: what is asked, what came of it, and the sentence that tells the user.

Any 2xx is ready (SkyServe takes only 200). No redirect is followed: a 3xx is not ready and the detail says where it
pointed (kubelet follows one to the same host and takes one to another host as a success).
"""

import asyncio
import codecs
import errno
import os
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal
from urllib.parse import urlsplit

import aiohappyeyeballs

from replicas.providers.exchange import Answer, Broken, Exchange, Phase, Target, request_bytes, tls_context
from replicas.providers.naming import Names

EXCERPT_BYTES = 512
LOCATION_CHARACTERS = 200
NEXT_ADDRESS_AFTER = 0.25  # seconds, as RFC 8305 advises
LATE = 1.0  # seconds past its deadline after which a probe says more about us than about the replica


class Fault(StrEnum):
    """Why a probe did not pass."""

    STATUS = "status"  # an HTTP answer, but neither 2xx nor 3xx
    REDIRECT = "redirect"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    RESET = "reset"
    CLOSED = "closed"  # without one byte
    TLS = "tls"
    BAD_RESPONSE = "bad_response"
    DNS = "dns"
    BAD_REQUEST = "bad_request"  # the probe itself cannot be sent
    LOCAL = "local"  # this process could not probe properly: nothing is known about the replica


LOCAL_ERRORS = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL, errno.EADDRINUSE}
FAULTS: Mapping[int, Fault] = {
    **dict.fromkeys(LOCAL_ERRORS, Fault.LOCAL),
    errno.ECONNREFUSED: Fault.REFUSED,
    errno.ECONNRESET: Fault.RESET,
    errno.ECONNABORTED: Fault.RESET,
    errno.EPIPE: Fault.RESET,
    errno.ETIMEDOUT: Fault.TIMEOUT,
}


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """A probe to make. `key` comes back in the result. `url` is the replica's base (http, https, or the fake scheme).

    `timeout` (seconds) is for the whole probe: name, connection, TLS, headers and body. `body` is JSON.
    """

    key: int
    url: str
    path: str
    method: Literal["GET", "POST"] = "GET"
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 15.0
    insecure_tls: bool = False

    @property
    def shown(self) -> str:
        """How the probe is named to users: without the query, which may hold a secret."""
        return f"{self.method} {printable(self.path.partition('?')[0])}"


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What came of a probe. `error` is a Fault, None if it passed; `detail` is a sentence; `seconds` is its duration.

    `excerpt` holds the first bytes of the body (at most 512) as printable text. It may repeat a secret: mask it before
    it is stored.
    """

    key: int
    ok: bool
    status: int | None
    error: str | None
    detail: str
    excerpt: str
    seconds: float

    @property
    def conclusive(self) -> bool:
        """False when the probe tells nothing about the replica (we were out of sockets, or stopped ourselves for a
        while): such a result must change nothing."""
        return self.error != Fault.LOCAL


def printable(text: str) -> str:
    """`text` on one line, without control characters, marks that change the direction of text, or lone surrogates."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c.isspace() else "" for c in text)


async def probe(request: ProbeRequest, names: Names, buffer: memoryview) -> ProbeResult:
    """Make one probe. It ends at its deadline at the latest; whatever the peer does becomes a result."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        target = Target.of(request.url, request.path)
        exchange = Exchange(request_bytes(request.method, target, request.headers, request.body), buffer, loop)
    except ValueError as error:
        return _failed(request, Fault.BAD_REQUEST, f"{request.shown} cannot be sent: {error}", 0.0)
    try:
        async with asyncio.timeout(request.timeout):
            await _connect(exchange, target, request, names)
            outcome = await exchange.outcome
    except OSError as error:
        result = _from_error(request, target, exchange, error, loop.time() - began)
    else:
        if isinstance(outcome, Answer):
            result = _from_answer(request, outcome, loop.time() - began)
        else:
            result = _from_broken(request, target, outcome, loop.time() - began)
    finally:
        exchange.close()
    if not result.ok and result.seconds > request.timeout + LATE:
        took = f"the probe was held up on our side ({result.seconds:.1f} s instead of {request.timeout:g} s)"
        return _failed(request, Fault.LOCAL, f"{request.shown} says nothing: {took}", result.seconds)
    return result


async def _connect(exchange: Exchange, target: Target, request: ProbeRequest, names: Names) -> None:
    """A new connection to the first address that takes one. Raises OSError (ssl and name errors are such, too)."""
    loop = asyncio.get_running_loop()
    infos = [_address_info(address, target.port) for address in await names.addresses(target.host)]
    if len(infos) == 1:
        sock = await _dial(loop, infos[0])
    else:
        sock = await aiohappyeyeballs.start_connection(infos, happy_eyeballs_delay=NEXT_ADDRESS_AFTER, interleave=1)
    tls = tls_context(request.insecure_tls) if target.secure else None
    if tls:
        exchange.phase = Phase.HANDSHAKE
    await loop.create_connection(
        lambda: exchange,
        sock=sock,
        ssl=tls,
        server_hostname=target.host if tls else None,
        ssl_handshake_timeout=request.timeout + LATE if tls else None,  # the deadline is the probe's own
    )


async def _dial(loop: asyncio.AbstractEventLoop, info: aiohappyeyeballs.AddrInfoType) -> socket.socket:
    """A connected socket. On this host's own addresses the kernel decides within the call, so that hundreds of
    replicas that are still starting are refused without a round through the event loop each."""
    sock = socket.socket(info[0], socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        code = sock.connect_ex(info[4])
        if code == errno.EINPROGRESS:
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, os.strerror(code))
        await loop.sock_connect(sock, info[4])  # returns at once if the connection is there
    except BaseException:
        sock.close()
        raise
    return sock


def _address_info(address: str, port: int) -> aiohappyeyeballs.AddrInfoType:
    if "%" in address:  # a zone, whose number the resolver knows
        return socket.getaddrinfo(address, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)[0]
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return (family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, port))


def _from_answer(request: ProbeRequest, answer: Answer, seconds: float) -> ProbeResult:
    status = answer.status
    detail = f"HTTP {status} from {request.shown}"
    fault: Fault | None = None
    if 300 <= status < 400:
        fault = Fault.REDIRECT
        detail += f"{_pointing_at(answer.location)}: redirects are not followed, only 2xx is ready"
    elif not 200 <= status < 300:
        fault = Fault.STATUS
    return ProbeResult(request.key, fault is None, status, fault, detail, excerpt(answer), seconds)


def _pointing_at(location: str) -> str:
    """Where a redirect goes, without query and password, which may hold a secret."""
    if not location:
        return ""
    try:
        parts = urlsplit(location)
    except ValueError:
        return " to an address that cannot be read"
    host = parts.netloc.rpartition("@")[2]
    there = f"{parts.scheme}://{host}{parts.path}" if host else parts.path
    return f" to {printable(there)[:LOCATION_CHARACTERS]}"


def excerpt(answer: Answer) -> str:
    """The beginning of the body as printable text. A compressed body is not expanded."""
    if answer.encoding.strip().lower() not in ("", "identity"):
        return f"({printable(answer.encoding)[:20]} body, not decoded)"
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(answer.body[:EXCERPT_BYTES], final=len(answer.body) <= EXCERPT_BYTES)
    return printable(text).strip()


def _from_broken(request: ProbeRequest, target: Target, broken: Broken, seconds: float) -> ProbeResult:
    if isinstance(broken.cause, ssl.SSLError):
        return _failed(request, Fault.TLS, _tls_detail(request, target, broken.cause), seconds)
    if isinstance(broken.cause, OSError):
        fault = FAULTS.get(broken.cause.errno or 0, Fault.RESET)
        return _failed(request, fault, f"{request.shown} {broken.why}: {_words(broken.cause)}", seconds)
    fault = Fault.CLOSED if broken.silent else Fault.BAD_RESPONSE
    return _failed(request, fault, f"{request.shown} {printable(broken.why)}", seconds)


def _from_error(
    request: ProbeRequest, target: Target, exchange: Exchange, error: OSError, seconds: float
) -> ProbeResult:
    """What a failed connection, or the deadline, means. The order matters: all of these are kinds of OSError."""
    where = target.authority
    if isinstance(error, TimeoutError) and error.errno is None:
        return _timed_out(request, exchange, seconds)
    if isinstance(error, socket.gaierror):
        detail = f"{request.shown}: the host name {printable(target.host)} has no address ({_words(error)})"
        return _failed(request, Fault.DNS, detail, seconds)
    if isinstance(error, ssl.SSLError):
        return _failed(request, Fault.TLS, _tls_detail(request, target, error), seconds)
    fault = _fault_of(error)
    if target.secure and fault is Fault.RESET:
        detail = f"{request.shown}: {where} dropped the connection in the TLS handshake; does it speak HTTPS?"
        return _failed(request, Fault.TLS, detail, seconds)
    if fault is Fault.REFUSED:
        return _failed(request, fault, f"{request.shown}: connection refused, nothing listens at {where}", seconds)
    if fault is Fault.LOCAL:
        detail = f"{request.shown} says nothing: this host could not open a connection ({_words(error)})"
        return _failed(request, fault, detail, seconds)
    return _failed(request, fault, f"{request.shown}: no connection to {where} ({_words(error)})", seconds)


def _fault_of(error: OSError) -> Fault:
    """The kind of a connection error. Of several addresses that failed in different ways, a fault of our own counts
    most, then a refusal."""
    if error.errno is not None:
        return FAULTS.get(error.errno, Fault.UNREACHABLE)
    if isinstance(error, ConnectionError):
        return Fault.RESET
    for code, fault in FAULTS.items():
        if f"[Errno {code}]" in str(error):
            return fault
    return Fault.UNREACHABLE


def _timed_out(request: ProbeRequest, exchange: Exchange, seconds: float) -> ProbeResult:
    answer = exchange.so_far()
    if answer is not None and not 200 <= answer.status < 300:
        return _from_answer(request, answer, seconds)  # the status says more than the body that never ended
    status = answer.status if answer else None
    shown = excerpt(answer) if answer else ""
    detail = f"no answer to {request.shown} within {request.timeout:g} s ({exchange.phase})"
    return ProbeResult(request.key, False, status, Fault.TIMEOUT, detail, shown, seconds)


def _tls_detail(request: ProbeRequest, target: Target, error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        why = printable(error.verify_message)
        advice = "insecure_tls: true in readiness_probe accepts any certificate"
        return f"{request.shown}: the certificate of {target.authority} is not trusted ({why}); {advice}"
    return f"{request.shown}: no TLS with {target.authority} ({_words(error)}); does it speak HTTPS?"


def _words(error: OSError) -> str:
    return printable(error.strerror or str(error) or type(error).__name__)


def _failed(request: ProbeRequest, fault: Fault, detail: str, seconds: float) -> ProbeResult:
    return ProbeResult(request.key, False, None, fault, detail, "", seconds)
