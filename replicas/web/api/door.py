"""The door of the API: who asks, by a token alone; and the one table of its routes."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Router
from ninja.operation import Operation
from ninja.security import HttpBearer

from replicas.actions import tokens
from replicas.actions.origin import API, Origin, acting
from replicas.actions.powers import SEE, refusal
from replicas.core.values import Scope
from replicas.models import ApiToken, Service
from replicas.web.access import service_of
from replicas.web.api import repeating
from replicas.web.api.problems import Problem
from replicas.web.api.schemas import Error
from replicas.web.middleware import address
from replicas.web.numbers import whole
from replicas.web.throttle import Failures

FAILURES = Failures("api", most=30, seconds=60)
BODY_MOST = 1 << 20
YAML = ("application/yaml", "application/x-yaml", "text/yaml", "text/plain")
KINDS = (*YAML, "application/json")

View = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Route:
    """One thing that the API does: `need` is the permission for it."""

    method: str
    path: str
    need: str
    name: str


ROUTES: list[Route] = []
router = Router()


class Token(HttpBearer):
    """`Authorization: Bearer rollcall_...`. Cookies count for nothing here, so no other site can use them."""

    def authenticate(self, request: HttpRequest, token: str) -> ApiToken:
        """The token, if it gives any right. Raises Problem."""
        if (whole(request.META.get("CONTENT_LENGTH")) or 0) > BODY_MOST:
            raise Problem(413, "too_large", "The body of the request is too large.")
        kind = (request.content_type or "").lower()
        if request.method == "POST" and request.META.get("CONTENT_LENGTH") not in (None, "", "0") and kind not in KINDS:
            said = f"The body is {kind[:100] or 'of no type'}, which is no YAML and no JSON."
            raise Problem(415, "unsupported_media_type", said)
        found = tokens.find(token)
        if found is None:
            raise self._failure(address(request))
        tokens.note_use(found, address(request))
        return found

    def _failure(self, where: str) -> Problem:
        """Whoever fails often is told to wait; a right token is let in all the same."""
        late = FAILURES.too_many(where)
        FAILURES.note(where)
        if late:
            return Problem(429, "throttled", "Too many requests with wrong tokens came from your address.")
        return Problem(401, "unauthenticated", "The token is wrong, expired or revoked, or its user is disabled.")


def token_of(request: HttpRequest) -> ApiToken:
    """The token of a request that was let in."""
    token: ApiToken = request.auth  # type: ignore[attr-defined]
    return token


def enforce(request: HttpRequest, need: str, service: Service | None = None) -> None:
    """Let the request do what needs the permission: as far as the token goes, and its user may now. Raises Problem."""
    token = token_of(request)
    reason = tokens.refusal(token, need, service.name if service else None) or refusal(token.owner, need, service)
    if reason:
        raise Problem(403, "forbidden", reason)


def route(method: str, path: str, need: str, *, gives: Any = None, **options: Any) -> Callable[[View], View]:
    """Put the view into the table: its address, its checks and its part of the OpenAPI document are made from that."""

    def wrap(view: View) -> View:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            if any("\0" in text for text in (request.path, *request.GET.values())):
                raise Problem(400, "invalid_request", "The address holds a NUL character.")
            if unknown := sorted(set(request.GET) - known):  # passed over, it would be what somebody relies on
                least = f"It takes {', '.join(sorted(known))}." if known else "It takes none there: see the document."
                raise Problem(400, "invalid_request", f"The query has no option {', '.join(unknown)}.", next=least)
            if request.method == "POST":
                enforce(request, need)
                repeating.begin(request, token_of(request))
            service = service_of(kwargs)
            if service is None and {"name", "operation_id"} & kwargs.keys():
                raise Problem(404, "not_found", _missing(kwargs))
            enforce(request, need, service)
            token = token_of(request)
            with acting(Origin(API, address(request), token.prefix, token.owner)):
                return view(request, *args, **kwargs)

        ROUTES.append(Route(method, path, need, view.__name__))
        answers = gives if isinstance(gives, dict) else {200: gives}
        scope = next(scope for scope in Scope if need in tokens.REACHES[scope])
        extra = {"x-scope": scope.value, **options.pop("openapi_extra", {})}
        if method == "POST":
            extra["parameters"] = [repeating.PARAMETER]
        register = router.api_operation(
            [method],
            path,
            response={**answers, frozenset({400, 401, 403, 404, 409, 413, 415, 422, 429, 500, 503}): Error},
            operation_id=view.__name__,
            summary=(view.__doc__ or "").split("\n")[0],
            openapi_extra=extra,
            **options,
        )
        register(guarded)
        known = options_of(router.path_operations[path].operations[-1])
        return view

    return wrap


def options_of(operation: Operation) -> frozenset[str]:
    """The names that the query of an operation may have."""
    queries = [model for model in operation.models if model.__ninja_param_source__ == "query"]
    return frozenset(name for model in queries for name in model.__ninja_flatten_map__)


def _missing(kwargs: dict[str, Any]) -> str:
    if "name" in kwargs:
        return f"There is no service {kwargs['name']}."
    return f"There is no operation {kwargs['operation_id']}."


def visible(request: HttpRequest, rows: Any, column: str) -> Any:
    """Those of the rows that are about services which the token is for; `column` holds their name."""
    names = token_of(request).services
    return rows.filter(**{f"{column}__in": names}) if names else rows


def plain(text: bytes, headers: dict[str, str]) -> HttpResponse:
    """A text as it is."""
    response = HttpResponse(text, content_type="text/plain; charset=utf-8", headers=headers)
    response["Cache-Control"] = "no-store"
    return response


__all__ = ["ROUTES", "SEE", "Route", "Token", "enforce", "plain", "route", "router", "token_of", "visible"]
