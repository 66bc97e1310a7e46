"""What an outsider may ask without login: is it alive, and is every part of it at work."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from replicas import clock
from replicas.web.health import check


@never_cache
@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """200 while the web process answers."""
    return HttpResponse("ok\n", content_type="text/plain")


@never_cache
@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """200 when every part works, else 503: `{"ready": bool, "parts": {name: {"ok": bool, "detail": text}}}`.

    `ok` is null where nobody can tell.
    """
    parts = check(clock.now(settings.ROLLCALL.run))
    ready = all(part["ok"] for part in parts.values())
    return JsonResponse({"ready": ready, "parts": parts}, status=200 if ready else 503)
