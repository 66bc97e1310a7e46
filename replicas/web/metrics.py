"""`/metrics` in the text format of Prometheus: the gateway's figures and the control plane's own."""

import hmac
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta

from django.conf import settings
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from replicas import clock
from replicas.gateway import runtime, statistics
from replicas.gateway.places import Places
from replicas.gateway.statistics import Backend, Figures
from replicas.models import Operation, Replica, Service
from replicas.models.fields import ALIVE
from replicas.web.access import SEE
from replicas.web.feed import feed_status

NEAR = {"127.0.0.1", "::1"}
RECENT = timedelta(minutes=5)
TEXT = "text/plain; version=0.0.4; charset=utf-8"
Sample = tuple[Mapping[str, object], float]


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """All figures. For programs of this host, whoever has ROLLCALL_METRICS_TOKEN, and users who may see services."""
    if not may_read(request):
        sentence = "Read it from this host, or with Authorization: Bearer and the value of ROLLCALL_METRICS_TOKEN.\n"
        return HttpResponse(sentence, status=401, content_type="text/plain", headers={"WWW-Authenticate": "Bearer"})
    return HttpResponse("".join(lines()), content_type=TEXT)


def may_read(request: HttpRequest) -> bool:
    """A proxy on this host speaks for others: what it forwards does not count as near."""
    token = settings.ROLLCALL.metrics_token
    kind, _, given = request.headers.get("Authorization", "").partition(" ")
    if token and kind.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode()):
        return True
    if request.user.is_authenticated and request.user.has_perm(SEE):
        return True
    forwarded = "X-Forwarded-For" in request.headers or "Forwarded" in request.headers
    return request.META.get("REMOTE_ADDR") in NEAR and not forwarded


def lines() -> Iterator[str]:
    """The text, family by family."""
    yield from gateway_lines()
    yield from replica_lines()
    yield from operation_lines()
    found = feed_status()
    if found["lag_seconds"] is not None:
        yield from family("rollcall_event_lag_seconds", "gauge", "Since new events were last looked for.",
                          [({}, found["lag_seconds"])])  # fmt: skip
        yield from family("rollcall_open_sockets", "gauge", "Browsers that follow events.", [({}, found["sockets"])])


def gateway_lines() -> Iterator[str]:
    """What HAProxy counts since its worker began."""
    try:
        backends = statistics.parse(runtime.ask(Places.of(settings.ROLLCALL).stats, statistics.ASK))
    except (runtime.Unreachable, statistics.Unreadable):
        backends = {}
    yield from family("rollcall_gateway_up", "gauge", "Whether HAProxy answers.", [({}, float(bool(backends)))])
    names = {f"b{number}": name for number, name in Service.objects.values_list("pk", "name")}
    known = [(names[backend], found) for backend, found in backends.items() if backend in names]
    total = [({"service": name}, backend.own.total) for name, backend in known]
    yield from family("rollcall_requests_total", "counter", "Requests that arrived.", total)
    codes = [
        ({"service": name, "class": f"{kind}xx"}, count)
        for name, backend in known
        for kind, count in enumerate(backend.own.codes, 1)
    ]
    yield from family("rollcall_responses_total", "counter", "Answers by class of status.", codes)
    for name, help_, value in (
        ("in_flight", "Requests that a replica has now.", lambda figures: figures.in_flight),
        ("queued", "Requests that wait for a replica.", lambda figures: figures.queued),
    ):
        samples = [(labels, value(figures)) for labels, figures in members(known)]
        yield from family(f"rollcall_replica_{name}_requests", "gauge", help_, samples)
    totals = [(labels, float(figures.total)) for labels, figures in members(known)]
    yield from family("rollcall_replica_requests_total", "counter", "Requests that a replica was given.", totals)
    errors = [(labels, float(figures.errors)) for labels, figures in members(known)]
    yield from family("rollcall_replica_errors_total", "counter", "Failures to connect or to answer.", errors)


def members(known: Iterable[tuple[str, Backend]]) -> Iterator[tuple[Mapping[str, object], Figures]]:
    """Each replica in traffic with its labels."""
    for name, backend in known:
        for figures in backend.servers.values():
            yield {"service": name, "replica": figures.name.removeprefix("r")}, figures


def replica_lines() -> Iterator[str]:
    """How many replicas there are, and how fast they answered their last probe."""
    live = Replica.objects.filter(ALIVE).order_by()
    counted = live.values_list("service__name", "state").annotate(number=Count("pk"))
    samples = [({"service": name, "state": state}, float(number)) for name, state, number in counted]
    yield from family("rollcall_replicas", "gauge", "Live replicas by state.", samples)
    targets = [({"service": name}, float(target)) for name, target in Service.objects.values_list("name", "target")]
    yield from family("rollcall_target_replicas", "gauge", "Replicas that are wanted.", targets)
    probes = [
        ({"service": name, "replica": number}, seconds)
        for name, number, seconds in live.exclude(probe_seconds=None).values_list(
            "service__name", "number", "probe_seconds"
        )
    ]
    yield from family("rollcall_probe_seconds", "gauge", "How long the last probe worth noting took.", probes)


def operation_lines() -> Iterator[str]:
    """What the queue does, and how long operations of the last five minutes waited and took."""
    live = Operation.objects.filter(ALIVE).order_by()
    counted = live.values_list("kind", "status").annotate(number=Count("pk"))
    samples = [({"kind": kind, "status": status}, float(number)) for kind, status, number in counted]
    yield from family("rollcall_operations", "gauge", "Live operations.", samples)
    recent = list(
        Operation.objects.filter(ended_at__gt=clock.now() - RECENT, started_at__isnull=False)
        .order_by()
        .values_list("kind", "created_at", "started_at", "ended_at")
    )
    kinds = sorted({kind for kind, *_ in recent})
    for name, help_, first, last in (
        ("wait", "From being asked for to the first step", 1, 2),
        ("duration", "From the first step to the end", 2, 3),
    ):
        found = {
            kind: sorted((row[last] - row[first]).total_seconds() for row in recent if row[0] == kind) for kind in kinds
        }
        quantiles = [
            ({"kind": kind, "quantile": share}, times[min(int(share * len(times)), len(times) - 1)])
            for kind, times in found.items()
            for share in (0.5, 0.95)
        ]
        yield from family(f"rollcall_operation_{name}_seconds", "gauge", f"{help_}, in five minutes.", quantiles)


def family(name: str, kind: str, help_: str, samples: Iterable[Sample]) -> Iterator[str]:
    """One family of figures."""
    yield f"# HELP {name} {help_}\n# TYPE {name} {kind}\n"
    for labels, value in samples:
        inside = ",".join(f'{key}="{escaped(each)}"' for key, each in labels.items())
        yield f"{name}{{{inside}}} {float(value)!r}\n" if inside else f"{name} {float(value)!r}\n"


def escaped(value: object) -> str:
    """A label's value as the format wants it."""
    return str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
