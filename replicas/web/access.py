"""Who may see and do what: one decorator for pages, one for what a page's script asks for."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse

SEE = "replicas.view_service"
OPERATE = "replicas.operate_service"
DEPLOY = "replicas.deploy_service"
SENTENCES = {
    SEE: "Your account may not look at services.",
    OPERATE: "Your account may not scale, restart, steer rollouts, terminate or take down.",
    DEPLOY: "Your account may not create or edit services, nor bring versions back.",
}

View = Callable[..., HttpResponseBase]


def allowed(permission: str) -> Callable[[View], View]:
    """Let only users with `permission` (and the right to see) reach the view.

    Somebody who is not signed in is sent to the login page, a script of ours gets 401; others get 403 with the reason.
    """

    def wrap(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if not request.user.is_authenticated:
                return _sign_in(request)
            if not (request.user.has_perm(SEE) and request.user.has_perm(permission)):
                reason = SENTENCES[permission if request.user.has_perm(SEE) else SEE]
                if wants_json(request):
                    return JsonResponse(
                        {"level": "error", "message": f"{reason} Ask an administrator for it."}, status=403
                    )
                raise PermissionDenied(reason)
            return view(request, *args, **kwargs)

        return guarded

    return wrap


def wants_json(request: HttpRequest) -> bool:
    """Whether a script of ours asks, and not the browser for a page."""
    return request.headers.get("Accept", "").startswith("application/json")


def powers(request: HttpRequest) -> dict[str, bool]:
    """What the user may do, for templates and scripts; the views check again."""
    return {"operate": request.user.has_perm(OPERATE), "deploy": request.user.has_perm(DEPLOY)}


def _sign_in(request: HttpRequest) -> HttpResponse:
    if wants_json(request):
        return JsonResponse({"level": "error", "message": "You are signed out. Sign in again."}, status=401)
    return redirect_to_login(request.get_full_path() if request.method in {"GET", "HEAD"} else "/")
