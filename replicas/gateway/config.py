"""HAProxy's configuration as text, from plain values."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files

from replicas.gateway.places import Places
from replicas.gateway.values import Entry, Member, Wanted

# Members come and go over the socket; these are the rules for each, whether it stands in the file or is added.
# One refused connection takes it out, and then it is asked each half second whether it is back. One that is in traffic
# is left alone: whether it is ready is for the probes to say, and a bare connection upsets many a small server.
SERVER = "check inter 1h downinter 500ms fastinter 500ms rise 1 fall 3 observe layer4 error-limit 1 on-error mark-down"
HASHES = {"path": "path", "source": "src"}
POLICIES = {
    "round_robin": "roundrobin",
    "least_load": "leastconn",
    "instance_aware_least_load": "leastconn",
    "random_two": "random(2)",
    "sticky": "leastconn",
}
IDEMPOTENT = "GET HEAD OPTIONS"
LONGEST_LINE = 8192  # of the access log: HAProxy cuts what is longer, and then it is no JSON any more
NAMES = "names.map"
HOSTS = "hosts.map"
REASONS = "reasons.map"
ERRORS = {
    400: "the request is not valid HTTP",
    408: "the request did not arrive in time",
    500: "the gateway failed",
    502: "the replica broke off, or its answer is not valid HTTP",
    503: "no replica could take the request",
    504: "the replica did not answer within stream_timeout_seconds",
}


@dataclass(frozen=True, slots=True)
class Options:
    """What holds for all services. `host`: where addresses listen. `shared_port`: 0 for none."""

    places: Places
    host: str = "127.0.0.1"
    shared_port: int = 0
    connections: int = 4000


def render(wanted: Wanted, options: Options, shape: str = "") -> str:
    """The configuration, whose worker says `shape` (see `shape_of`) when asked for ROLLCALL_SHAPE."""
    parts = [*_global(options, shape), *_defaults()]
    for entry in wanted.entries:
        parts += _frontend(entry, options)
        parts += _backend(entry, wanted.members.get(entry.id, ()))
    if options.shared_port:
        parts += _shared(options)
    return "\n".join(parts) + "\n"


def shape_of(wanted: Wanted, options: Options) -> str:
    """A digest of all that only a reload can change: everything but members and reasons."""
    bare = render(Wanted(wanted.entries), options) + names(wanted) + str([entry.stamp for entry in wanted.entries])
    return hashlib.sha256(bare.encode()).hexdigest()[:16]


def names(wanted: Wanted) -> str:
    """The map from a service's name to its id."""
    return "".join(f"{entry.name} {entry.id}\n" for entry in wanted.entries)


def hosts(wanted: Wanted) -> str:
    """The map from a host name, which knows no case, to an id; of names that differ in case only the first has it."""
    found: dict[str, int] = {}
    for entry in wanted.entries:
        found.setdefault(entry.name.lower(), entry.id)
    return "".join(f"{name} {number}\n" for name, number in found.items())


def reasons(wanted: Wanted) -> str:
    """The map from an id to the sentence on why no replica is ready."""
    lines = ((entry.id, one_line(wanted.reasons.get(entry.id, ""))) for entry in wanted.entries)
    return "".join(f"{number} {text}\n" for number, text in lines)


def one_line(text: str) -> str:
    """The text without line breaks and control characters, never empty, bounded."""
    return "".join(c if c.isprintable() else " " for c in text)[:300].strip() or "no replica is ready"


def server(entry: Entry, member: Member) -> str:
    """Address and settings of a member, as both the file and `add server` take them. The id makes hashes stable."""
    limits = f" maxconn {entry.concurrency}" if entry.concurrency else ""
    sticky = f" cookie {member.name}" if entry.policy == "sticky" else ""
    tls = " ssl verify none alpn http/1.1" if member.tls else ""
    return (
        f"{_address(member.host)}:{member.port} id {member.number} weight {member.weight} {SERVER}{limits}{sticky}{tls}"
    )


def _address(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _text(value: object) -> str:
    """One word of the file, whatever is in it."""
    escaped = str(value).replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$")
    return f'"{escaped}"'


def _global(options: Options, shape: str) -> Iterator[str]:
    places = options.places
    yield "global"
    yield f"    setenv ROLLCALL_SHAPE {shape or '-'}"
    yield f"    stats socket {_text(places.stats)} mode 600 level admin"
    yield f"    lua-load {_text(files('replicas.gateway') / 'worker.lua')}"
    yield "    default-path config"
    yield f"    log ring@access len {LONGEST_LINE} format raw local0"
    yield f"    maxconn {options.connections}"
    yield "    nbthread 1"
    yield "    hard-stop-after 1h"
    yield "    mworker-max-reloads 20"
    yield "    tune.listener.default-shards by-process"
    yield "    ssl-default-bind-options ssl-min-ver TLSv1.2"
    yield "ring access"
    yield "    format raw"
    yield f"    maxlen {LONGEST_LINE}"
    yield "    size 4194304"
    yield "    timeout connect 1s"
    yield "    timeout server 10s"
    yield f"    server reader {_text('unix@' + str(places.access))} log-proto legacy"


def _defaults() -> Iterator[str]:
    yield "defaults"
    yield "    mode http"
    yield "    log global"
    yield "    option dontlognull"
    yield "    option http-no-delay"
    yield "    option abortonclose"
    yield "    option idle-close-on-response"  # a reload ends a connection with an answer, never under a request
    yield "    option redispatch 1"
    yield "    retries 3"
    # A connection that was never made, or that its replica closed before it answered (an idle one, say).
    yield "    retry-on conn-failure empty-response"
    yield "    timeout connect 2s"
    yield "    timeout client 60s"
    yield "    timeout server 120s"
    yield "    timeout http-request 10s"
    yield "    timeout http-keep-alive 30s"
    yield "    timeout tunnel 1h"
    for code, cause in ERRORS.items():
        retry = " hdr Retry-After 1" if code == 503 else ""
        yield f"    http-error status {code} content-type application/json string {_body(code, cause)}{retry}"


def _body(code: int, cause: str) -> str:
    return _text(json.dumps({"error": code, "reason": cause}))


LOG = (
    '{"at":%Ts.%ms,"client":"%ci","method":"%HM","host":"%[var(txn.host),json(utf8s)]",'
    '"path":"%[var(txn.path),json(utf8s)]","status":%ST,"replica":"%s","ended":"%ts","in":%U,"out":%B,'
    '"ms":{"request":%TR,"queue":%Tw,"connect":%Tc,"answer":%Tr,"all":%Ta},'
    '"queued":[%sq,%bq],"retries":"%rc","request_id":"%[var(txn.id),json(utf8s)]"}'
)


def _log(service: str) -> str:
    """The line of a request: five words for the statistics, then the line of the access log."""
    return f"    log-format '{service} %ST %Ta %s %ts {LOG}'"


def _arrival() -> Iterator[str]:
    # What the access log shows is short enough for a line, also when each character has to be escaped.
    yield "    http-request set-var(txn.path) path,bytes(0,1000)"
    yield "    http-request set-var(txn.host) req.hdr(host),bytes(0,250)"
    yield "    http-request set-header X-Request-ID %[uuid()] unless { req.hdr(X-Request-ID) -m found }"
    yield "    http-request set-var(txn.id) req.fhdr(X-Request-ID),bytes(0,100)"
    yield "    http-request set-header X-Forwarded-Proto https if { ssl_fc }"
    yield "    http-request set-header X-Forwarded-Proto http unless { ssl_fc }"
    yield "    http-request set-header X-Forwarded-Host %[req.hdr(host)]"
    yield "    http-request set-header X-Forwarded-Port %[dst_port]"


def _frontend(entry: Entry, options: Options) -> Iterator[str]:
    yield f"frontend {entry.frontend}"
    tls = f" ssl crt {_text(entry.certificate)} alpn h2,http/1.1" if entry.certificate else ""
    yield f"    bind {_address(options.host)}:{entry.port}{tls}"
    yield f"    timeout client {max(60, round(entry.stream_timeout))}s"
    yield _log(str(entry.id))
    yield from _arrival()
    yield f"    default_backend {entry.backend}"


def _shared(options: Options) -> Iterator[str]:
    """One port for all: by host name (NAME or NAME.localhost), or by path prefix, which is taken off."""
    yield "frontend shared"
    yield f"    bind {_address(options.host)}:{options.shared_port}"
    yield "    timeout client 1h"
    yield _log("%[var(txn.service)]")
    yield from _arrival()
    yield "    acl prefixed path_beg /services/"
    yield f"    http-request set-var(txn.service) path,field(3,/),url_dec,map({NAMES}) if prefixed"
    host = rf"req.hdr(host),host_only,lower,regsub(\.$,),regsub(\.localhost$,),map({HOSTS})"
    yield f"    http-request set-var(txn.service) {host} unless {{ var(txn.service) -m found }}"
    missing = json.dumps(
        {"error": 404, "reason": "no service of that name: ask for it by Host, or below /services/NAME/"}
    )
    found = "{ var(txn.service) -m found }"
    yield f"    http-request return status 404 content-type application/json string {_text(missing)} unless {found}"
    yield "    acl by_prefix var(txn.path),field(3,/),url_dec,map(" + NAMES + ") -m found"
    yield "    http-request set-header X-Forwarded-Prefix /services/%[path,field(3,/)] if prefixed by_prefix"
    yield r"    http-request replace-path /services/[^/]+/?(.*) /\1 if prefixed by_prefix"
    yield "    use_backend b%[var(txn.service)]"


def _backend(entry: Entry, members: Iterable[Member]) -> Iterator[str]:
    yield f"backend {entry.backend}"
    yield from _balance(entry)
    yield "    option forwardfor"
    yield "    option tcp-check"
    yield "    tcp-check connect linger"  # a check that ends in a reset is an error in the log of many a server
    yield f"    timeout server {max(1, round(entry.stream_timeout))}s"
    yield f"    timeout queue {max(1, round(entry.queue_timeout))}s"
    yield f"    timeout tunnel {max(3600, round(entry.stream_timeout))}s"
    yield from _refusals(entry)
    yield f"    http-request disable-l7-retry unless {{ method {IDEMPOTENT} }}"
    if entry.hold > 0:
        yield f"    http-request lua.hold {entry.backend} {entry.hold:g} if {{ nbsrv({entry.backend}) eq 0 }}"
    yield f"    http-request set-var(txn.reason) str({entry.id}),map({REASONS},no)"
    body = rf"{{\"error\":503,\"service\":\"{entry.name}\",\"reason\":\"%[var(txn.reason),json(utf8s)]\"}}"
    none = f"{{ nbsrv({entry.backend}) eq 0 }}"
    returned = "http-request return status 503 content-type application/json"
    yield f'    {returned} lf-string "{body}" hdr Retry-After 1 if {none}'
    for member in members:
        yield f"    server {member.name} {server(entry, member)}"


def _balance(entry: Entry) -> Iterator[str]:
    if entry.policy != "consistent_hash":
        yield f"    balance {POLICIES[entry.policy]}"
        if entry.policy == "sticky":
            yield f"    cookie rollcall_{entry.id} insert indirect nocache httponly attr SameSite=Lax"
        return
    kind, _, name = entry.hash_on.partition(":")
    fetch = HASHES.get(kind) or (f"req.hdr({name})" if kind == "header" else f"req.cook({name})")
    yield f"    balance hash {fetch}"
    yield "    hash-type consistent sdbm avalanche"


def _refusals(entry: Entry) -> Iterator[str]:
    """Answers that need no replica: too many, not allowed, too large."""
    returned = "http-request return content-type application/json"
    if entry.client_rate:
        yield "    stick-table type ipv6 size 100k expire 10s store gpc0_rate(1s)"
        yield "    http-request track-sc0 src"
        body = _body(429, f"more than {entry.client_rate} requests per second from one client")
        many = f"{{ sc_gpc0_rate(0) ge {entry.client_rate} }}"
        yield f"    {returned} status 429 string {body} hdr Retry-After 1 if {many}"
        yield "    http-request sc-inc-gpc0(0)"  # only what is let through counts
    if entry.token:
        scheme = "{ req.fhdr(authorization) -m reg -i ^bearer[[:space:]] }"
        given = "req.fhdr(authorization),regsub(^[a-zA-Z]+[[:space:]]+,),sha2(256),hex"
        body = _body(401, "this service asks for a bearer token: Authorization: Bearer ...")
        right = f"{{ {given} -m str {entry.token} }}"
        yield f"    {returned} status 401 string {body} hdr WWW-Authenticate Bearer unless {scheme} {right}"
    if entry.max_body:
        length = "req.fhdr(content-length)"
        body = _body(413, f"the body is larger than {entry.max_body} bytes")
        much = f"{{ {length},add(0) gt {entry.max_body} }}"  # not hdr_val, which has 32 bits
        yield f"    {returned} status 413 string {body} if {much}"
        yield from _unmeasured(returned)


def _unmeasured(returned: str) -> Iterator[str]:
    """Refuses a body whose size nobody tells beforehand, whatever the method.

    HTTP/2 has no header that says that there is one: the request waits for its end or its first byte.
    """
    body = _body(411, "a body needs a Content-Length here, as its size is limited")
    bare = "!{ req.fhdr(content-length) -m found }"
    chunked = "{ req.hdr(transfer-encoding) -m found }"
    yield f"    {returned} status 411 string {body} if {bare} {{ method POST PUT PATCH }} || {bare} {chunked}"
    # A WebSocket over HTTP/2 is the one request there with this header: HAProxy itself puts it in.
    second = f"{{ fc_http_major ge 2 }} {bare} !{{ req.hdr(upgrade) -m found }}"
    yield f"    http-request wait-for-body time 10s at-least 1 if {second}"
    yield f"    {returned} status 411 string {body} if {second} {{ req.body_size gt 0 }}"
