"""Requests that cannot be read: they are refused before a view or another error page trips over them."""

from typing import NamedTuple

from asgiref.sync import iscoroutinefunction
from django.conf import settings
from django.core.exceptions import (
    DisallowedHost,
    RequestDataTooBig,
    TooManyFieldsSent,
    TooManyFilesSent,
)
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.multipartparser import MultiPartParserError
from django.shortcuts import render
from django.utils.decorators import sync_and_async_middleware

from replicas.web.access import wants_json

FORM = "application/x-www-form-urlencoded"


class Refusal(NamedTuple):
    """What is answered: the status of HTTP, and what was wrong with the next step."""

    status: int
    message: str


@sync_and_async_middleware
def readable(get_response):  # type: ignore[no-untyped-def]
    """Refuse forms that are not UTF-8. Django reads the form of each request again to make an error page, and fails
    again."""
    if iscoroutinefunction(get_response):

        async def awaited(request: HttpRequest):  # type: ignore[no-untyped-def]
            return foreign(request) or await get_response(request)

        return awaited

    def called(request: HttpRequest):  # type: ignore[no-untyped-def]
        return foreign(request) or get_response(request)

    return called


def foreign(request: HttpRequest) -> HttpResponse | None:
    """The refusal of a form in another encoding; None for what can be read."""
    encoding = (request.content_params or {}).get("charset", "utf-8")
    if request.content_type != FORM or encoding.lower() in {"utf-8", "utf8"}:
        return None
    said = f"A form is sent as UTF-8, but this one says {encoding[:40]}. Nothing was changed."
    return refused(request, Refusal(415, said))


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Django's `handler400`."""
    return refused(request, told(request, exception))


def told(request: HttpRequest, error: Exception | None) -> Refusal:
    """What a request was refused for."""
    if isinstance(error, DisallowedHost):
        host = str(request.META.get("HTTP_HOST", ""))[:100]
        return Refusal(
            400,
            f"Rollcall does not answer under the name {host!r}. If people are to reach it there, whoever runs it adds"
            " the name to ROLLCALL_ALLOWED_HOSTS and starts it again.",
        )
    if isinstance(error, RequestDataTooBig):
        most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE >> 10
        return Refusal(413, f"More than {most} KiB were sent at once. Nothing was changed: send less.")
    if isinstance(error, TooManyFieldsSent | TooManyFilesSent):
        most = settings.DATA_UPLOAD_MAX_NUMBER_FIELDS
        return Refusal(400, f"More than {most} fields were sent at once. Nothing was changed: choose fewer.")
    if isinstance(error, MultiPartParserError):
        return Refusal(400, "The form is damaged: its parts cannot be told apart. Nothing was changed: send it again.")
    return Refusal(400, "The request cannot be read. Nothing was changed: go back and try again.")


def refused(request: HttpRequest, refusal: Refusal) -> HttpResponse:
    """The refusal as a page of its own, or as JSON; neither needs a session, a form or a host name."""
    status, message = refusal
    if wants_json(request):
        return JsonResponse({"level": "error", "message": message}, status=status)
    return render(None, "400.html", {"message": message}, status=status)  # type: ignore[arg-type]
