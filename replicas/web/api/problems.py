"""What a refused request is answered with: one shape, the right status, and the next step."""

import logging
from collections.abc import Sequence
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.db import OperationalError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from replicas.actions.operations import Refused
from replicas.actions.versions import Conflict
from replicas.core.spec import SpecErrors
from replicas.core.wording import sentence
from replicas.web import examples, intake

log = logging.getLogger(__name__)

NEXT = {
    "unauthenticated": "Send the header Authorization: Bearer TOKEN; make a token in the dashboard, under your name.",
    "throttled": "Wait for as many seconds as Retry-After says, and correct the token.",
    "forbidden": "Use a token that reaches further, or ask an administrator.",
    "not_found": "Look at what there is: GET /api/v1/services.",
    "method_not_allowed": "GET /api/v1/openapi.json lists what each address takes.",
    "invalid_request": "GET /api/v1/openapi.json says what is right.",
    "invalid_spec": "Correct the YAML; docs/spec.md has every field.",
    "impossible": "Change the YAML or the request; the message says what stands in the way.",
    "refused": "Look at the service: GET /api/v1/services/NAME.",
    "conflict": "Look at what changed, and ask again.",
    "key_reused": "Send another request with a key of its own, and the same one only with the same body.",
    "at_work": "Ask again in some seconds, with the same key and body.",
    "too_large": "Send less: a YAML has at most 256 KiB, and a request 1 MiB.",
    "unsupported_media_type": "Send the YAML as application/yaml, or JSON as application/json.",
    "unavailable": "Try again in some seconds.",
    "internal": "Look at the log of the control plane; this is a fault of Rollcall.",
}


class Problem(Exception):
    """What ends a request. `code` is a key of NEXT."""

    def __init__(self, status: int, code: str, message: str, *, next: str = "") -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.next = status, code, message, next


def answer(
    status: int, code: str, message: str, *, next: str = "", faults: Sequence[dict[str, Any]] = ()
) -> HttpResponse:
    """The JSON of a refusal, as schemas.Error has it."""
    body = {"code": code, "message": message, "next": next or NEXT[code], "faults": list(faults)}
    response = JsonResponse({"error": body}, status=status)
    response["Cache-Control"] = "no-store"
    if status == 401:
        response["WWW-Authenticate"] = "Bearer"
    if status == 429:
        response["Retry-After"] = "60"
    return response


def told(status: int, code: str, error: Exception) -> HttpResponse:
    """A refusal of ours: its text is "what and why; what to do"."""
    message, _, then = str(error).partition("; ")
    return answer(status, code, sentence(message), next=sentence(then) if then else "")


def invalid_spec(errors: SpecErrors) -> HttpResponse:
    """Faults of a text, at their lines. Paths are looked for on the server: whoever sends one may not think of that."""
    faults = [{"line": e.line, "column": e.column, "path": e.path, "message": e.message} for e in errors.errors]
    local = any(error.path.split(".")[0].split("[")[0] in {"workdir", "file_mounts"} for error in errors.errors)
    then = (
        f"Paths in workdir and file_mounts are looked for on the server, relative ones from {examples.base()}: files of"
        " the machine that asks cannot be sent. Put them there, or name an absolute path or a git repository."
    )
    return answer(400, "invalid_spec", str(errors), next=then if local else "", faults=faults)


def invalid_request(error: ValidationError) -> HttpResponse:
    """Which fields of the request are wrong."""
    lines = [f"{place(each['loc'])}: {each['msg']}" for each in error.errors]
    return answer(400, "invalid_request", "; ".join(lines))


def place(where: Sequence[Any]) -> str:
    """The field that is meant, without the name by which our own code calls the whole body."""
    inner = where[2:] if where[0] == "body" else where[1:]
    return ".".join(map(str, inner)) or "body"


def install(api: NinjaAPI) -> None:
    """Have the API answer each fault in this shape."""
    simple = {
        Conflict: (409, "conflict"),
        Refused: (409, "refused"),
        intake.IntakeError: (422, "impossible"),
        PermissionDenied: (403, "forbidden"),
        Http404: (404, "not_found"),
    }
    for kind, (status, code) in simple.items():
        api.add_exception_handler(kind, lambda _, error, s=status, c=code: told(s, c, error))
    api.add_exception_handler(SpecErrors, lambda _, errors: invalid_spec(errors))
    api.add_exception_handler(ValidationError, lambda _, error: invalid_request(error))
    api.add_exception_handler(Problem, lambda _, p: answer(p.status, p.code, p.message, next=p.next))
    api.add_exception_handler(
        AuthenticationError, lambda *_: answer(401, "unauthenticated", "The request has no token.")
    )
    api.add_exception_handler(
        RequestDataTooBig, lambda *_: answer(413, "too_large", "The body of the request is too large.")
    )
    # Of the framework itself: a body that it cannot parse.
    api.add_exception_handler(HttpError, lambda _, e: answer(e.status_code, "invalid_request", sentence(e.message)))
    api.add_exception_handler(OperationalError, _unavailable)
    api.add_exception_handler(Exception, _fault)


def _unavailable(request: HttpRequest, error: Exception) -> HttpResponse:
    log.warning("The API cannot answer %s since the database does not: %s", request.path, error)
    return answer(503, "unavailable", "The database does not answer.")


def _fault(request: HttpRequest, error: Exception) -> HttpResponse:
    log.error("The API failed at %s %s", request.method, request.path, exc_info=error)
    return answer(500, "internal", "Something went wrong inside of Rollcall.")
