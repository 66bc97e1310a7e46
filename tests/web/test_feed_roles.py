"""Websockets by role: every address of one as everybody, how soon a role's end closes them, and what watching costs."""

from itertools import count
from typing import Any

import pytest
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.db import connection
from django.test.utils import CaptureQueriesContext
from websockets.exceptions import ConnectionClosed, InvalidStatus

from replicas.actions import roles
from replicas.core.values import Role
from replicas.web.guard import FORBIDDEN, SIGNED_OUT, Viewer, verdicts
from replicas.web.routing import websocket_urlpatterns
from tests.support.patience import within
from tests.web.site import Site, close_code, receive, receive_events

CLOSES_WITHIN = 5.0
SOCKETS = 100
_numbers = count(1)


def member(site: Site, role: str) -> tuple[str, str]:
    """The name and the session of somebody with that role."""
    name = f"{role or 'stranger'}-{next(_numbers)}"
    session: str = site.scribe.user(name=name, permissions=[])["session"]
    site.scribe.role(name=name, role=role)
    return name, session


def opens(site: Site, path: str, session: str | None) -> bool:
    """Whether the handshake is let through."""
    try:
        with site.socket(path, session) as ws:
            return bool(receive(ws))
    except InvalidStatus as refusal:
        return refusal.response.status_code != 403


def test_every_websocket_asks_who_it_is(site: Site, service: int) -> None:
    replica = site.scribe.replica(service_id=service)["replica"]
    paths = {"ws/feed": "/ws/feed", "ws/log": f"/ws/log?replica={replica}", "": "/ws/anything"}
    assert {str(each.pattern) for each in websocket_urlpatterns} == set(paths)
    people: dict[str, str | None] = {role: member(site, role)[1] for role in ("", *Role)}
    for pattern, path in paths.items():
        assert not opens(site, path, None)
        for role, session in people.items():
            assert opens(site, path, session) == (bool(role) and pattern != ""), (role, path)


@pytest.mark.parametrize("how", ["role", "password", "disabled"])
def test_what_was_open_closes_soon(site: Site, service: int, how: str) -> None:
    replica = site.scribe.replica(service_id=service)["replica"]
    name, session = member(site, "operator")
    with site.socket("/ws/feed", session) as feed, site.socket(f"/ws/log?replica={replica}", session) as log:
        receive(feed)
        receive(log)
        if how == "role":
            site.scribe.role(name=name, role="")
        elif how == "password":
            site.scribe.set_password(name=name, password="another one")
        else:
            site.scribe.change_user(name=name, is_active=False)
        with within(CLOSES_WITHIN):
            codes = [close_code(ws) for ws in (feed, log)]
        assert codes == [4403 if how == "role" else 4401] * 2


def test_a_lower_role_that_still_sees_keeps_its_sockets(site: Site, service: int) -> None:
    name, session = member(site, "admin")
    with site.socket("/ws/feed", session) as ws:
        receive(ws)
        site.scribe.role(name=name, role="viewer")
        gone, other = member(site, "viewer")
        with site.socket("/ws/feed", other) as leaving:  # its end tells that the check has been made since
            receive(leaving)
            site.scribe.role(name=gone, role="")
            with pytest.raises(ConnectionClosed):
                while True:
                    receive(leaving)
        last = site.scribe.emit(service_id=service)[-1]
        assert receive_events(ws, last)[-1]["id"] == last


def viewers() -> list[Viewer]:
    """A hundred people, each with an open socket: a quarter of them without a role, and some superusers."""
    found = []
    for number in range(SOCKETS):
        user = User.objects.create_user(f"user-{number}", is_superuser=number % 10 == 0)
        if number % 4:
            roles.give(user, Role.VIEWER)
        session: Any = SessionStore()
        session[SESSION_KEY] = str(user.pk)
        session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
        session[HASH_SESSION_KEY] = user.get_session_auth_hash()
        session.create()
        found.append(Viewer(user.pk, session.session_key))
    return found


@pytest.mark.django_db
def test_a_check_costs_three_queries_for_a_hundred_sockets() -> None:
    everybody = viewers()
    User.objects.filter(pk=everybody[1].user_id).update(is_active=False)
    SessionStore(everybody[2].session_key).flush()
    with CaptureQueriesContext(
        connection,
    ) as queries:
        found = verdicts(everybody)
    assert len(queries) == 3
    expected = {
        viewer: FORBIDDEN for number, viewer in enumerate(everybody) if number % 4 == 0 and number % 10 != 0
    } | {everybody[1]: SIGNED_OUT, everybody[2]: SIGNED_OUT}
    assert found == expected
