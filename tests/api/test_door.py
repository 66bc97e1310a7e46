"""Who is let in: by a token alone, while it lives, as far as it and its user go."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import OperationalError
from django.test import Client

from replicas import clock
from replicas.actions import roles, tokens
from replicas.core.values import Role, Scope
from replicas.models import ApiToken, Service
from replicas.web.api import problems
from replicas.web.api.door import FAILURES, ROUTES, Route
from tests import cast
from tests.api.caller import PREFIX, Caller, user
from tests.web.people import browser, deployed, text

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def nobody_failed_yet() -> None:
    """The count of failures is of the process."""
    cache.clear()


def bare(token: str, path: str = "/services", **options: Any) -> Any:
    """A GET with whatever is sent as a token."""
    return Client(**options).get(PREFIX + path, headers={"Authorization": token})


def test_only_a_digest_of_a_token_is_kept() -> None:
    ann = Caller()
    row = ApiToken.objects.get()
    assert ann.text.startswith(row.prefix)
    assert len(ann.text) > 50
    assert all(ann.text not in str(value) for value in vars(row).values())


@pytest.mark.parametrize("token", ["", "Bearer", "Bearer x", "Bearer rollcall_x", "Basic YTpi", "Bearer \xff\xfe"])
def test_what_is_no_token_is_refused(token: str) -> None:
    answer = bare(token)
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"] == "Bearer"
    assert answer.json()["error"]["code"] == "unauthenticated"


def test_a_session_gives_no_right_here() -> None:
    deployed()
    client = browser("root")
    assert client.get(f"{PREFIX}/services").status_code == 401
    answer = client.post(f"{PREFIX}/services/web/scale", {"target": 9}, content_type="application/json")
    assert answer.status_code == 401
    assert Service.objects.get().target == 2


def test_a_token_needs_no_csrf_token_and_a_page_takes_no_token() -> None:
    deployed()
    ann = Caller()
    headers = {"Authorization": f"Bearer {ann.text}"}
    strict = Client(enforce_csrf_checks=True)
    sent: dict[str, Any] = {"content_type": "application/json", "headers": headers}
    assert strict.post(f"{PREFIX}/services/web/scale", {"target": 3}, **sent).status_code == 200
    assert Client().get("/", headers=headers).status_code == 302


def dead(row: ApiToken, how: str) -> None:
    """The token, or its user, comes to an end."""
    if how == "revoked":
        tokens.revoke(row.pk, actor="root")
    elif how == "expired":
        ApiToken.objects.update(expires_at=clock.now() - timedelta(seconds=1))
    elif how == "disabled":
        User.objects.filter(pk=row.owner_id).update(is_active=False)
    else:
        User.objects.filter(pk=row.owner_id).delete()


@pytest.mark.parametrize("how", ["revoked", "expired", "disabled", "deleted"])
def test_a_token_is_dead_at_once(how: str) -> None:
    ann = Caller(expires_at=clock.now() + timedelta(days=1))
    assert ann.get("/services").status_code == 200
    dead(ann.row, how)
    assert ann.get("/services").status_code == 401


def test_a_token_never_goes_further_than_its_user_may_now() -> None:
    deployed()
    ann = Caller()
    assert ann.post("/services/web/scale", {"target": 3}).status_code == 200
    roles.give(user(), Role.VIEWER)
    answer = ann.post("/services/web/scale", {"target": 4})
    assert (answer.status_code, ann.get("/services").status_code) == (403, 200)
    assert "Your account may not scale" in answer.json()["error"]["message"]
    roles.give(user(), None)
    assert ann.get("/services").status_code == 403


def test_use_is_noted_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    ann = Caller()
    ann.get("/services")
    first = ApiToken.objects.get()
    assert (first.last_used_from, first.last_used_at is not None) == ("192.0.2.9", True)
    ann.get("/services")
    assert ApiToken.objects.get().last_used_at == first.last_used_at
    later = clock.now() + timedelta(seconds=61)
    monkeypatch.setattr(clock, "now", lambda: later)
    ann.get("/services")
    assert ApiToken.objects.get().last_used_at == later


def test_whoever_fails_often_is_told_to_wait_and_a_right_token_is_let_in() -> None:
    ann = Caller()
    answers = [bare("Bearer rollcall_wrong", REMOTE_ADDR="192.0.2.9") for _ in range(FAILURES.most + 1)]
    assert {each.status_code for each in answers[:-1]} == {401}
    assert (answers[-1].status_code, answers[-1]["Retry-After"]) == (429, "60")
    assert bare("Bearer rollcall_wrong", REMOTE_ADDR="192.0.2.10").status_code == 401
    assert ann.get("/services").status_code == 200


def test_faults_of_ours_are_told_in_json_and_nothing_of_their_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    ann = Caller()

    def broken(*_: Any) -> None:
        raise RuntimeError("inside")

    monkeypatch.setattr("replicas.web.api.reading.newest", broken)
    answer = ann.get("/services")
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal")
    assert "inside" not in answer.content.decode().replace("inside of Rollcall", "")

    def away(*_: Any) -> None:
        raise OperationalError("gone")

    monkeypatch.setattr("replicas.web.api.reading.newest", away)
    assert ann.get("/services").status_code == 503


def test_every_refusal_has_a_next_step() -> None:
    assert all(step.endswith(".") for step in problems.NEXT.values())


# Every route, as everybody

BODIES: dict[str, Any] = {"scale": {"target": 3}, "apply": {"yaml": text()}, "plan": {"yaml": text()}}
REACH = {"read": 0, "operate": 1, "deploy": 2}
MAY = {None: -1, Role.VIEWER: 0, Role.OPERATOR: 2, Role.ADMIN: 2}


def ask(caller: Caller, route: Route, **query: str) -> Any:
    """The route for the one service, replica and operation that there is."""
    replica = cast.pending(deployed())
    known = {"{name}": "web", "{int:operation_id}": str(cast.operation_of(replica).pk)}
    path = route.path
    known["{int:number}"] = "1"
    for part, value in known.items():
        path = path.replace(part, value)
    return caller.ask(route.method, path, BODIES.get(route.name), "application/json", query)


@pytest.mark.parametrize("role", MAY, ids=str)
@pytest.mark.parametrize("scope", list(Scope))
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_every_route_asks_for_scope_and_role(route: Route, scope: Scope, role: Role | None) -> None:
    needed = {"replicas.view_service": 0, "replicas.operate_service": 1, "replicas.deploy_service": 2}[route.need]
    answer = ask(Caller(role=role, scope=scope), route)
    if needed <= min(REACH[scope], MAY[role]):
        assert answer.status_code not in {401, 403, 500}, answer.content
    else:
        assert answer.status_code == 403, answer.content


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_no_route_passes_over_an_option_that_it_does_not_have(route: Route) -> None:
    answer = ask(Caller(), route, expected_verison="1")
    assert (answer.status_code, b"expected_verison" in answer.content) == (400, True), answer.content


@pytest.mark.parametrize("route", [route for route in ROUTES if "{" in route.path], ids=lambda route: route.name)
def test_every_route_asks_whose_service_it_is_and_for_which_the_token_is(route: Route) -> None:
    assert ask(Caller(services=["other"]), route).status_code == 403
    Service.objects.update(owner=user("bob"))
    path = route.path.replace("{name}", "web").replace("{int:number}", "1")
    path = path.replace("{int:operation_id}", str(Service.objects.get().operations.get().pk))
    answer = Caller().ask(route.method, path, BODIES.get(route.name), "application/json")
    assert (answer.status_code == 403) == (route.method == "POST")


def test_what_acts_is_a_post_and_what_reads_is_a_get() -> None:
    assert all((route.method == "GET") == (route.need == "replicas.view_service") for route in ROUTES)
