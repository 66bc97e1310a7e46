"""The traffic of a service over time, for plots."""

from datetime import timedelta

from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from replicas import clock
from replicas.actions import samples
from replicas.models.public import stamp
from replicas.web import recent
from replicas.web.access import SEE, allowed
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
    """
    text = request.GET.get("range", "")
    length = min(max(int(text), LEAST), MOST) if text.isdecimal() and len(text) < 10 else USUAL
    resolution = samples.SECOND if timedelta(seconds=length) <= samples.FINE_AGE else samples.MINUTE
    now = clock.now()
    columns = samples.series(service_or_404(name).pk, now - timedelta(seconds=length), resolution)
    columns["at"] = [stamp(at) for at in columns["at"]]
    return JsonResponse({"now": stamp(now), "range": length, "resolution": resolution, "columns": columns})


@allowed(SEE)
@never_cache
@require_safe
def figures_json(request: HttpRequest) -> JsonResponse:
    """The last ten minutes of all services, for sparklines: see `recent.lines`."""
    return JsonResponse(recent.lines(clock.now()))
