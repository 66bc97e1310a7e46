"""`Idempotency-Key`: a POST that is sent again is answered as the first time, and does nothing.

As draft-ietf-httpapi-idempotency-key-header of the IETF has it. What it leaves open: a key is kept for a day, and is
its token's own.
"""

import re
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.crypto import salted_hmac

from replicas.actions import idempotency
from replicas.actions.idempotency import Answered, AtWork, Begun, Other
from replicas.web.api.problems import Problem

HEADER = "Idempotency-Key"
KEY = re.compile(r'"([\x20\x21\x23-\x5b\x5d-\x7e]{1,255})"|([\x21\x23-\x5b\x5d-\x7e]{1,255})')
PARAMETER: dict[str, Any] = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "description": "Up to 255 printable characters of your own; the same one for each attempt at one request.",
    "schema": {"type": "string"},
}


class Repeated(Exception):
    """The request was answered before."""

    def __init__(self, answered: Answered) -> None:
        super().__init__("the request was answered before")
        self.answered = answered


def begin(request: HttpRequest, token: Any) -> None:
    """Claim the key that the request has, if it is a POST with one. Raises Problem, Repeated."""
    text = request.headers.get(HEADER)
    if request.method != "POST" or text is None:
        return
    found = KEY.fullmatch(text.strip())
    if found is None:
        raise Problem(400, "invalid_request", f"{HEADER} is empty, too long, or has characters that are not printable.")
    try:
        begun = idempotency.begin(token, found[1] or found[2], fingerprint(request))
    except Other:
        raise Problem(422, "key_reused", f"This {HEADER} was sent with another request.") from None
    except AtWork:
        raise Problem(409, "at_work", f"The first request with this {HEADER} is being carried out.") from None
    if isinstance(begun, Answered):
        raise Repeated(begun)
    request.begun = begun  # type: ignore[attr-defined]


def fingerprint(request: HttpRequest) -> str:
    """What makes it the same request."""
    head = "\0".join((request.method or "", request.get_full_path(), request.content_type or ""))
    whole = head.encode(errors="surrogateescape") + b"\0" + request.body
    return salted_hmac("rollcall idempotency", whole, algorithm="sha256").hexdigest()


def end(request: HttpRequest, response: Any) -> None:
    """Keep the answer of a request whose key was claimed; not one that says only that it may be tried again."""
    begun: Begun | None = getattr(request, "begun", None)
    if begun is None:
        return
    if response.status_code >= 500 or response.status_code == 429:
        idempotency.forget(begun)
    else:
        idempotency.keep(begun, response.status_code, response.content.decode())


def again(repeated: Repeated) -> HttpResponse:
    """The answer of the first time."""
    answered = repeated.answered
    response = HttpResponse(answered.body, status=answered.status, content_type="application/json; charset=utf-8")
    response["Idempotent-Replayed"] = "true"
    return response
