"""The JSON API under /api/v1: what the commands do, for programs of others, by token."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import URLPattern, include, path, re_path
from django.views.decorators.csrf import csrf_exempt
from ninja import NinjaAPI

from replicas.web.api import acting, operations, problems, reading, repeating
from replicas.web.api.door import Token, router

__all__ = ["acting", "api", "api_urls", "operations", "reading"]

api = NinjaAPI(
    title="Rollcall",
    version="1",
    description="Services that are kept running as N ready replicas. docs/api.md has examples.",
    urls_namespace="api",
    auth=Token(),
    docs_url=None,  # its page would load scripts of another site
    openapi_url="/openapi.json",
)
api.add_router("", router)
problems.install(api)
api.add_exception_handler(repeating.Repeated, lambda _, repeated: repeating.again(repeated))


def told(view: Callable[..., Any]) -> Callable[..., HttpResponseBase]:
    """The view, with its refusal of a method in our shape, and answers that nobody keeps."""

    @wraps(view)
    def told_view(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response: HttpResponseBase = view(request, *args, **kwargs)
        if response.status_code == 405:
            allow = response.headers.get("Allow", "")
            message = f"{request.method} is not what {request.path} takes, but {allow}."
            response = problems.answer(405, "method_not_allowed", message)
            response["Allow"] = allow
        response["Cache-Control"] = "no-store"
        repeating.end(request, response)
        return response

    return told_view


@csrf_exempt
def nothing(request: HttpRequest) -> HttpResponse:
    """There is nothing at this address."""
    return problems.answer(404, "not_found", f"There is nothing at {request.path}.")


def _patterns() -> list[URLPattern]:
    patterns: list[URLPattern] = []
    for each in api.urls[0]:
        each.callback = told(each.callback)
        patterns.append(each)
    return patterns


api_urls = [path("api/v1/", include((_patterns(), "api"))), re_path(r"^api/", nothing, name="api-nothing")]
