"""Who may see and do what: one decorator for pages, one for what a page's script asks for."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any
from urllib.parse import urlsplit

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.utils.http import url_has_allowed_host_and_scheme

from replicas.actions.powers import ADMINISTER, ANY, DEPLOY, OPERATE, SEE, refusal
from replicas.models import Operation, Service

__all__ = ["ADMINISTER", "ANY", "DEPLOY", "OPERATE", "SEE", "allowed", "powers", "refusal", "wants_json"]
View = Callable[..., HttpResponseBase]


def allowed(permission: str) -> Callable[[View], View]:
    """Let only users with `permission` (and the right to see) reach the view, and act only on services that they may.

    The service is the one that the address names, by itself or by an operation. Somebody who is not signed in is sent
    to the login page, a script of ours gets 401; others get 403 with the reason.
    """

    def wrap(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if not request.user.is_authenticated:
                return _sign_in(request)
            if reason := refusal(request.user, permission, None if permission == SEE else service_of(kwargs)):
                if wants_json(request):
                    return JsonResponse({"level": "error", "message": f"{reason} Ask an administrator."}, status=403)
                raise PermissionDenied(reason)
            return view(request, *args, **kwargs)

        return guarded

    return wrap


def wants_json(request: HttpRequest) -> bool:
    """Whether a script of ours asks, and not the browser for a page."""
    return request.headers.get("Accept", "").startswith("application/json")


def service_of(named: Mapping[str, Any]) -> Service | None:
    """The service that an address is about: its `name`, or that of its `operation_id`. None where there is none."""
    services = Service.objects.select_related("owner")
    if "name" in named:
        return services.filter(name=named["name"]).first()
    if "operation_id" in named:
        return services.filter(pk__in=Operation.objects.filter(pk=named["operation_id"]).values("service")).first()
    return None


def powers(request: HttpRequest, service: Service | None = None) -> dict[str, Any]:
    """What the user may do (with `service`), for templates and scripts; the views check again.

    `{operate, deploy, any, administer, user}`: where `any` is false, only services of `user` or of nobody are acted on.
    """
    user: Any = request.user
    return {
        "operate": not refusal(user, OPERATE, service),
        "deploy": not refusal(user, DEPLOY, service),
        "any": user.has_perm(ANY),
        "administer": user.has_perm(ADMINISTER),
        "user": user.get_username(),
    }


def _sign_in(request: HttpRequest) -> HttpResponse:
    if wants_json(request):
        return JsonResponse({"level": "error", "message": "You are signed out. Sign in again."}, status=401)
    return redirect_to_login(request.get_full_path() if request.method in {"GET", "HEAD"} else came_from(request))


def came_from(request: HttpRequest) -> str:
    """The page of ours whose form was posted: path and query of the Referer, "/" where it is missing or not of here."""
    referer = request.headers.get("Referer", "")
    if not url_has_allowed_host_and_scheme(referer, {request.get_host()}, require_https=request.is_secure()):
        return "/"
    parts = urlsplit(referer)
    page = parts.path + (f"?{parts.query}" if parts.query else "")
    return page if url_has_allowed_host_and_scheme(page, None) else "/"  # http://us//them would lead to them


def out_of_date(request: HttpRequest, reason: str = "") -> HttpResponse:
    """What Django calls in place of a view whose CSRF token is missing or of an earlier session."""
    elsewhere = elsewhere_sent(request) if "checking failed" in reason else ""
    if wants_json(request):
        message = elsewhere or "The form is out of date: you signed in or out meanwhile. Reload the page and try again."
        return JsonResponse({"level": "error", "message": message}, status=403)
    return render(request, "403_csrf.html", {"back": came_from(request), "elsewhere": elsewhere}, status=403)


def elsewhere_sent(request: HttpRequest) -> str:
    """What is wrong with a form that comes from another address than it goes to."""
    origin = request.headers.get("Origin") or request.headers.get("Referer") or "no address at all"
    return (
        f"The form was sent from {origin[:100]}, and Rollcall was asked as {request.scheme}://{request.get_host()}. If"
        " both are Rollcall's, its proxy has to pass the Host header on, and ROLLCALL_HTTPS and ROLLCALL_ALLOWED_HOSTS"
        " have to name what people see."
    )
