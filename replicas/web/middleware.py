"""Notes for each request where what it writes comes from."""

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest
from django.urls import reverse
from django.utils.decorators import sync_and_async_middleware

from replicas.actions.origin import ADMIN, WEB, Origin, acting


@sync_and_async_middleware
def origin(get_response):  # type: ignore[no-untyped-def]
    """The last middleware: after it knows who asks. The address is the server's word (see ROLLCALL_TRUSTED_PROXIES)."""
    if iscoroutinefunction(get_response):

        async def awaited(request: HttpRequest):  # type: ignore[no-untyped-def]
            with acting(of(request)):
                return await get_response(request)

        return awaited

    def called(request: HttpRequest):  # type: ignore[no-untyped-def]
        with acting(of(request)):
            return get_response(request)

    return called


def of(request: HttpRequest) -> Origin:
    """Where the request comes from. Its user is looked up when something is written, if ever."""
    door = ADMIN if request.path.startswith(reverse("admin:index")) else WEB
    return Origin(door, address(request), user=request.user)


def address(request: HttpRequest) -> str:
    """The client's address; "" where there is none, as on a unix socket."""
    return str(request.META.get("REMOTE_ADDR") or "")[:45]
