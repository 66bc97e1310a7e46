"""Refuses websockets that a page of another origin opens, before they are accepted."""

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from channels.security.websocket import WebsocketDenier
from django.conf import settings

Application = Callable[[dict[str, Any], Any, Any], Awaitable[None]]


class SameOrigin:
    """Lets a websocket pass if its Origin names the host AND port that were asked for, or is a trusted origin.

    The port counts: replicas serve on other ports of the same host, and browsers send our cookie along from there.
    """

    def __init__(self, application: Application) -> None:
        self.application = application
        self.denier = WebsocketDenier()

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        allowed = same_origin(scope.get("headers", []), settings.CSRF_TRUSTED_ORIGINS)
        await (self.application if allowed else self.denier)(scope, receive, send)


def same_origin(headers: list[tuple[bytes, bytes]], trusted: list[str]) -> bool:
    """Whether the handshake comes from our own page. A handshake without Origin does not: every browser sends one."""
    origins = [value.decode("latin-1") for name, value in headers if name == b"origin"]
    hosts = [value.decode("latin-1").lower() for name, value in headers if name == b"host"]
    if len(origins) != 1 or len(hosts) != 1:
        return False
    origin = origins[0].lower()
    if origin in {each.lower() for each in trusted}:
        return True
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and parts.netloc == hosts[0]
