"""Plain HTTP beside the websockets: whether the session still stands, and logs by page, by search and whole."""

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from replicas.web.guard import VIEW


@never_cache
@require_safe
def session(request: HttpRequest) -> HttpResponse:
    """204 while the user may see services; 401 when signed out, 403 without the permission.

    A websocket's handshake that is refused tells a page nothing of the why, so it asks here.
    """
    if not request.user.is_authenticated:
        return HttpResponse(status=401)
    return HttpResponse(status=204 if request.user.has_perm(VIEW) else 403)


log_urls: list[URLPattern] = [
    path("session", session, name="session"),
]
