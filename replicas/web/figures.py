"""The traffic of a service over time, for plots."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta

from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from replicas import clock
from replicas.actions import samples
from replicas.models.public import stamp
from replicas.web import history, recent
from replicas.web.access import SEE, allowed
from replicas.web.numbers import whole
from replicas.web.replies import service_or_404

LEAST, MOST = 10, 7 * 24 * 3600
USUAL = 900


@allowed(SEE)
@never_cache
@require_safe
def samples_json(request: HttpRequest, name: str) -> JsonResponse:
    """`{now, range, resolution, columns}`: the samples of the last `?range=` seconds, as lists of equal length.

    Up to an hour by the second, beyond it by the minute. A sample covers the `seconds` before its `at`; where none
    does, nothing was measured. For the columns see the model Sample; latencies are milliseconds.

    With `&step=` seconds what plots need, see `history.plots`: `&after=` (a time) and `&cursor=` (of the answer before)
    ask for what has come since.
    """
    length = min(max(_number(request, "range") or USUAL, LEAST), MOST)
    service, now, step = service_or_404(name).pk, clock.now(), _number(request, "step")
    if step:
        return JsonResponse(history.plots(service, now, length, step, _time(request), _number(request, "cursor")))
    resolution = samples.SECOND if timedelta(seconds=length) <= samples.FINE_AGE else samples.MINUTE
    columns = samples.series(service, now - timedelta(seconds=length), resolution)
    columns["at"] = [stamp(at) for at in columns["at"]]
    return JsonResponse({"now": stamp(now), "range": length, "resolution": resolution, "columns": columns})


def _number(request: HttpRequest, key: str) -> int | None:
    return whole(request.GET.get(key), most=10**12)


def _time(request: HttpRequest) -> datetime | None:
    """`?after=` in UTC; None for none, and for what is no time that there can be."""
    with suppress(ValueError, OverflowError):
        at = datetime.fromisoformat(request.GET.get("after", ""))
        return at.astimezone(UTC) if at.tzinfo else None
    return None


@allowed(SEE)
@never_cache
@require_safe
def figures_json(request: HttpRequest) -> JsonResponse:
    """The last ten minutes of all services, for sparklines: see `recent.lines`."""
    return JsonResponse(recent.lines(clock.now()))
