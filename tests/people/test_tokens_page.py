"""The page of one's own tokens: made and shown once, listed, revoked; those of others in the administration alone."""

from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from replicas import clock
from replicas.actions import roles, tokens
from replicas.core.values import Role, Scope
from replicas.models import ApiToken

pytestmark = pytest.mark.django_db
NEW = {"name": "CI of <b>the shop</b>", "scope": "read", "services": "web, api ,", "days": "30"}


def client(name: str = "ann", role: Role = Role.OPERATOR) -> Client:
    """The browser of a user."""
    user = User.objects.filter(username=name).first() or User.objects.create_user(name, password="x")
    roles.give(user, role)
    found = Client()
    found.force_login(user)
    return found


def text_of(answer: Any) -> str:
    """The token that a page shows."""
    page: str = answer.content.decode()
    return page.split('readonly value="')[1].split('"')[0]


def test_a_name_that_turns_what_follows_is_marked() -> None:
    page = client().post("/tokens", NEW | {"name": "a\u202egnp<b>"}).content.decode()
    assert page.count('a<bdi class="unseen" data-code="U+202E">\u202e</bdi>gnp&lt;b&gt;') == 2
    assert 'data-copy="' in page


def test_a_token_is_shown_once_and_works() -> None:
    browser = client()
    answer = browser.post("/tokens", NEW)
    assert "no-store" in answer["Cache-Control"]
    text = text_of(answer)
    assert Client().get("/api/v1/me", headers={"Authorization": f"Bearer {text}"}).json()["user"] == "ann"
    row = ApiToken.objects.get()
    assert (row.name, row.scope, row.services) == ("CI of <b>the shop</b>", "read", ["api", "web"])
    assert row.expires_at is not None
    assert timedelta(days=29) < row.expires_at - clock.now() < timedelta(days=31)
    page = browser.get("/tokens").content.decode()
    assert text not in page
    assert row.prefix in page
    assert "<b>the shop" not in page
    assert "CI of <b>the shop</b>" in unescape(page)


def test_the_page_loaded_again_makes_no_second_token() -> None:
    browser = client()
    browser.post("/tokens", NEW)
    again = browser.post("/tokens", NEW)
    assert again.status_code == 400
    assert "You have a token of this name, whose text was shown when it was made." in again.content.decode()
    browser.post(f"/tokens/{ApiToken.objects.get().pk}/revoke")
    assert browser.post("/tokens", NEW).status_code == 200
    assert ApiToken.objects.count() == 2


def test_nobody_makes_a_token_that_reaches_further_than_they_may() -> None:
    browser = client(role=Role.VIEWER)
    assert ">deploy<" not in browser.get("/tokens").content.decode()
    assert browser.post("/tokens", NEW | {"scope": "deploy"}).status_code == 400
    assert not ApiToken.objects.exists()


@pytest.mark.parametrize("wrong", [{"name": ""}, {"days": "5"}, {"days": "x"}, {"scope": "root"}, {"name": "x" * 101}])
def test_what_is_wrong_is_said(wrong: dict[str, str]) -> None:
    answer = client().post("/tokens", NEW | wrong)
    assert answer.status_code == 400
    assert 'role="alert"' in answer.content.decode()


def test_one_revokes_ones_own_and_no_others() -> None:
    ann, bob = client("ann"), client("bob")
    ann.post("/tokens", NEW)
    row = ApiToken.objects.get()
    assert row.name not in unescape(bob.get("/tokens").content.decode())
    assert bob.post(f"/tokens/{row.pk}/revoke").status_code == 404
    assert ApiToken.objects.get().revoked_at is None
    assert ann.post(f"/tokens/{row.pk}/revoke").status_code == 302
    first = ApiToken.objects.get()
    assert first.revoked_by == "ann"
    ann.post(f"/tokens/{row.pk}/revoke")
    assert ApiToken.objects.get().revoked_at == first.revoked_at
    assert "REVOKED" in ann.get("/tokens").content.decode()


def test_states_are_told() -> None:
    user = User.objects.create_user("ann")
    row, _ = tokens.make(user, "x", Scope.READ, expires_at=clock.now() + timedelta(hours=1))
    assert tokens.state(row, clock.now()) == "ACTIVE"
    assert tokens.state(row, clock.now() + timedelta(hours=2)) == "EXPIRED"
    user.is_active = False
    assert tokens.state(row, clock.now()) == "DISABLED"


def test_an_admin_sees_all_and_revokes_but_makes_none() -> None:
    client("ann").post("/tokens", NEW)
    row = ApiToken.objects.get()
    admin = client("adam", Role.ADMIN)
    page = admin.get("/admin/replicas/apitoken/").content.decode()
    assert row.prefix in page
    assert row.digest not in admin.get(f"/admin/replicas/apitoken/{row.pk}/change/").content.decode()
    for path in ("add/", f"{row.pk}/delete/"):
        assert admin.post(f"/admin/replicas/apitoken/{path}").status_code == 403
    sent = {"action": "revoke", "_selected_action": [row.pk]}
    assert "Revoke" in admin.post("/admin/replicas/apitoken/", sent).content.decode()
    assert ApiToken.objects.get().revoked_at is None
    admin.post("/admin/replicas/apitoken/", sent | {"confirmed": "yes"})
    assert ApiToken.objects.get().revoked_by == "adam"
