"""Who may have a socket open, and for how long: checked at the handshake, and again every few seconds for all."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple

from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY, get_user_model
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from replicas.actions.powers import SEE as VIEW
from replicas.web.offload import query

SIGNED_OUT = 4401
FORBIDDEN = 4403


class Viewer(NamedTuple):
    """A user by the session that the socket was opened with."""

    user_id: int
    session_key: str


class Refused(Exception):
    """The socket may not be opened. `code` is the websocket's close code: SIGNED_OUT or FORBIDDEN."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


async def admit(scope: Mapping[str, Any]) -> Viewer:
    """Who opens the socket of `scope`. Raises Refused."""
    user = scope.get("user")
    session = scope.get("session")
    if user is None or not user.is_authenticated or session is None or not session.session_key:
        raise Refused(SIGNED_OUT)
    if not await query(user.has_perm, VIEW):
        raise Refused(FORBIDDEN)
    return Viewer(user.pk, session.session_key)


class Guard:
    """The viewers with open sockets. One check costs three queries, however many there are."""

    def __init__(self) -> None:
        self._open: dict[Viewer, list[asyncio.Future[int]]] = {}

    @contextmanager
    def watching(self, viewer: Viewer) -> Iterator["asyncio.Future[int]"]:
        """A future that holds the close code once the viewer may no longer see anything."""
        dismissal: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        dismissals = self._open.setdefault(viewer, [])
        dismissals.append(dismissal)
        try:
            yield dismissal
        finally:
            dismissals.remove(dismissal)
            if not dismissals:
                self._open.pop(viewer, None)

    async def check(self) -> None:
        """Dismiss everybody who has signed out, was disabled or lost the permission. Raises django.db.Error."""
        if not self._open:
            return
        for viewer, code in (await query(verdicts, list(self._open))).items():
            for dismissal in self._open.get(viewer, ()):
                if not dismissal.done():
                    dismissal.set_result(code)


def verdicts(viewers: Iterable[Viewer]) -> dict[Viewer, int]:
    """Those of `viewers` who must go, with the close code."""
    sessions = live_sessions({viewer.session_key for viewer in viewers})
    people: Any = get_user_model()._default_manager
    users = people.in_bulk({viewer.user_id for viewer in viewers})
    permitted = set(people.with_perm(VIEW).filter(pk__in=users).values_list("pk", flat=True))
    found = {}
    for viewer in viewers:
        user = users.get(viewer.user_id)
        if user is None or not user.is_active or not belongs(sessions.get(viewer.session_key), user):
            found[viewer] = SIGNED_OUT
        elif viewer.user_id not in permitted:
            found[viewer] = FORBIDDEN
    return found


def live_sessions(keys: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The content of each of the sessions that has not ended."""
    model = import_module(settings.SESSION_ENGINE).SessionStore.get_model_class()
    rows = model.objects.filter(session_key__in=keys, expire_date__gt=timezone.now())
    return {row.session_key: row.get_decoded() for row in rows}


def belongs(session: Mapping[str, Any] | None, user: Any) -> bool:
    """True when the session is the user's and was begun under the password of today (django.contrib.auth's rule)."""
    if session is None or session.get(SESSION_KEY) != str(user.pk):
        return False
    known = session.get(HASH_SESSION_KEY, "")
    hashes = [user.get_session_auth_hash(), *user.get_session_auth_fallback_hash()]
    return any(constant_time_compare(known, each) for each in hashes)
