"""Who did what to the installation itself is among the events: tokens, roles, rights, pruning, channels."""

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import call_command
from django.test import Client

from replicas import clock
from replicas.actions import notices, pruning, roles, tokens
from replicas.core.values import NoticeKind, Role, Scope
from replicas.jobs import queue
from replicas.management.verb import actor
from replicas.models import Event, NoticeChannel
from replicas.web import outbox
from tests import cast

pytestmark = pytest.mark.django_db


def client(name: str, role: Role | None = None, **rights: Any) -> Client:
    """The browser of a user, from an address of documentation."""
    user = User.objects.create_user(name, password="x", **rights)
    roles.give(user, role, actor="setup")
    found = Client(REMOTE_ADDR="192.0.2.7")
    found.force_login(User.objects.get(pk=user.pk))
    return found


def told(kind: str) -> list[tuple[str, str, str, str]]:
    """(trigger, actor, source, address) of the events of a kind, but for those of the setup."""
    rows = Event.objects.filter(kind=kind).exclude(actor="setup").order_by("id")
    return list(rows.values_list("trigger", "actor", "source", "address"))


def test_tokens_that_are_made_and_revoked() -> None:
    browser = client("ann", Role.OPERATOR)
    browser.post("/tokens", {"name": "CI", "scope": "read", "services": "", "days": "30"})
    event = Event.objects.get(kind="token")
    assert event.data["name"] == "CI"
    assert not {"digest", "text"} & event.data.keys()
    for _ in range(2):
        browser.post(f"/tokens/{event.object_id}/revoke")
    assert told("token") == [("made", "ann", "web", "192.0.2.7"), ("revoked", "ann", "web", "192.0.2.7")]


def test_roles_and_rights_that_change_in_the_administration() -> None:
    root = client("root", is_superuser=True, is_staff=True)
    bob = User.objects.create_user("bob", password="x")
    path = f"/admin/auth/user/{bob.pk}/change/"
    for sent in ({"role": "operator", "is_active": "on"}, {"role": "operator"}, {"role": "operator"}):
        answer = root.post(path, {"username": "bob", "first_name": "", "last_name": "", "email": "", **sent})
        assert answer.status_code == 302, answer.content
    root.post(f"/admin/auth/user/{bob.pk}/delete/", {"post": "yes"})
    assert [each[0] for each in told("person")] == ["role", "disabled", "deleted"]
    assert {each[1:] for each in told("person")} == {("root", "admin", "192.0.2.7")}
    assert list(Event.objects.filter(trigger="role").exclude(actor="setup").values_list("old", "new")) == [
        ("", "operator")
    ]


def test_passwords_that_change_and_users_that_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    new = "Quite-a-long-word-9"
    root = client("root", is_superuser=True, is_staff=True)
    bob = User.objects.create_user("bob", password="x")
    user = f"/admin/auth/user/{bob.pk}/password/"
    assert root.post(user, {"usable_password": "true", "password1": new, "password2": "other"}).status_code == 200
    assert told("person") == []
    for sent in ({"usable_password": "true", "password1": new, "password2": new}, {"usable_password": "false"}):
        assert root.post(user, sent | {"set-password": "", "unset-password": ""}).status_code == 302
    where = ("192.0.2.7",)
    assert told("person") == [("password", "root", "admin", *where)] * 2
    reasons = Event.objects.filter(trigger="password").order_by("id").values_list("reason", flat=True)
    assert list(reasons) == ["password changed in the administration", "password taken away in the administration"]
    assert root.get("/admin/password_change/").url == "/password"
    own = {"old_password": "x", "new_password1": new, "new_password2": new}
    assert root.post("/password", own | {"old_password": "wrong"}).status_code == 200
    assert root.post("/password", own).status_code == 302
    assert told("person")[2:] == [("password", "root", "web", *where)]
    monkeypatch.setattr("getpass.getpass", lambda prompt="": new)
    call_command("changepassword", "bob", stdout=StringIO())
    call_command("createsuperuser", "--noinput", "--username", "eve", "--email", "", stdout=StringIO())
    assert told("person")[3:] == [("password", actor(), "command", ""), ("made", actor(), "command", "")]
    assert User.objects.get(username="bob").check_password(new)
    assert not Event.objects.filter(data__icontains=new).exists()


def test_permissions_of_a_role_and_of_a_person() -> None:
    root = client("root", is_superuser=True, is_staff=True)
    group, bob = roles.group(Role.VIEWER), User.objects.create_user("bob", password="x")
    act = Permission.objects.get(codename="operate_service")
    fields = {"username": "bob", "first_name": "", "last_name": "", "email": "", "role": "", "is_active": "on"}
    for path, sent in (
        (f"/admin/auth/group/{group.pk}/change/", {"name": "viewer", "permissions": [act.pk]}),
        (f"/admin/auth/group/{group.pk}/change/", {"name": "viewer", "permissions": [act.pk]}),
        (f"/admin/auth/group/{group.pk}/delete/", {"post": "yes"}),
        (f"/admin/auth/user/{bob.pk}/change/", fields | {"user_permissions": [act.pk]}),
    ):
        assert root.post(path, sent).status_code == 302
    where = ("root", "admin", "192.0.2.7")
    assert told("role") == [("permissions", *where), ("deleted", *where)]
    assert told("person") == [("permissions", *where)]
    reasons = Event.objects.filter(trigger="permissions").order_by("id").values_list("reason", flat=True)
    first, second = reasons
    assert first == "given: replicas.operate_service; taken away: replicas.view_service"
    assert second == "given: replicas.operate_service"


def test_who_prunes_is_told_and_pruning_does_not_remove_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "offer_pruning", lambda _days: None)
    browser = client("adam", Role.ADMIN)
    browser.post("/system/prune", {"days": "0"})
    cast.service()
    pruning.prune(clock.now() + timedelta(seconds=1), forget_replica=lambda *_: None)
    assert told("pruning") == [("pruned", "adam", "web", "192.0.2.7")]
    assert not Event.objects.filter(kind="service").exists()
    page = browser.get("/system/").content.decode()
    assert "192.0.2.7" in page
    assert "what ended more than 0 days ago" in page


def test_only_admins_see_it_on_the_page_of_the_system() -> None:
    tokens.make(User.objects.create_user("tom"), "s3cret name", Scope.READ)
    assert "s3cret name" not in client("vic", Role.VIEWER).get("/system/").content.decode()
    assert "s3cret name" in client("adam", Role.ADMIN).get("/system/").content.decode()


def test_the_events_of_a_user_of_whom_all_is_pruned_begin_anew() -> None:
    user = User.objects.create_user("ann")
    roles.give(user, Role.VIEWER)
    roles.give(user, Role.VIEWER)
    assert Event.objects.filter(kind="person").count() == 1
    Event.objects.all().delete()
    roles.give(user, None)
    assert Event.objects.get(kind="person").new == ""


NEW = {"name": "on call", "url": "https://hooks.example.org/s3cret", "occasions": ["failed"], "service": "web"}


def test_channels_are_made_by_who_may_deploy_their_service() -> None:
    web, other = cast.service("web"), cast.service("other")
    owner = User.objects.create_user("owner")
    type(other).objects.filter(pk=other.pk).update(owner=owner)
    assert web.owner_id is None
    ann = client("ann", Role.OPERATOR)
    assert ann.post("/notices/add", NEW | {"service": "other"}).status_code == 403
    assert ann.post("/notices/add", NEW | {"service": ""}).status_code == 400
    assert client("vic", Role.VIEWER).post("/notices/add", NEW).status_code == 403
    assert not NoticeChannel.objects.exists()
    answer = ann.post("/notices/add", NEW)
    assert answer.status_code == 200
    assert "whsec_" in answer.content.decode()
    assert "no-store" in answer["Cache-Control"]
    page = ann.get("/notices/").content.decode()
    assert "https://hooks.example.org/…" in page
    assert "s3cret" not in page + answer.content.decode()
    assert "whsec_" not in page
    assert told("channel") == [("made", "ann", "web", "192.0.2.7")]
    adam = client("adam", Role.ADMIN)
    assert adam.post("/notices/add", NEW | {"service": "", "name": "all"}).status_code == 200
    everything = NoticeChannel.objects.get(name="all")
    for verb in ("test", "switch", "remove"):
        assert ann.post(f"/notices/{everything.pk}/{verb}").status_code == 403
    assert adam.post(f"/notices/{everything.pk}/switch", {}).status_code == 302
    assert not NoticeChannel.objects.get(name="all").enabled
    assert adam.post(f"/notices/{everything.pk}/remove").status_code == 302
    assert [each[0] for each in told("channel")] == ["made", "made", "switched_off", "removed"]


def test_what_is_about_the_installation_is_for_those_who_administer() -> None:
    """Sockets and tokens are everybody's who sees services; what is about a service stays there."""
    service = cast.service("web")
    for of, name in ((service, "own"), (None, "all")):
        notices.add(
            name, NoticeKind.WEBHOOK, "https://x/s", "https://x/…", service=of, occasions=notices.ALL, actor="a"
        )
    roles.give(User.objects.create_user("eve"), Role.OPERATOR)
    _, key = tokens.make(User.objects.get(username="eve"), "ci", Scope.DEPLOY)
    kinds = {"channel", "person", "token"}
    assert set(Event.objects.filter(service=None).values_list("kind", flat=True)) == kinds
    seen = [(item.kind, item.service) for item in outbox.items_after(0) if item.kind in kinds]
    assert seen == [("channel", "web")]
    answer = Client().get("/api/v1/events", {"after": 0}, headers={"Authorization": f"Bearer {key}"}).json()
    assert [(row["kind"], row["service"]) for row in answer["events"] if row["kind"] in kinds] == seen
    assert answer["cursor"] == outbox.newest()
    shown, hidden = (client(name, role).get("/system/") for name, role in (("adam", Role.ADMIN), ("vic", Role.VIEWER)))
    assert "with the scope deploy" in shown.content.decode()
    assert "with the scope deploy" not in hidden.content.decode()


@pytest.mark.parametrize("wrong", [{"url": "exec://s3cret"}, {"name": ""}, {"occasions": []}, {"name": "taken"}])
def test_what_is_wrong_with_a_channel_is_said(wrong: dict[str, Any]) -> None:
    service = cast.service("web")
    notices.add("taken", NoticeKind.WEBHOOK, "x", "x", service=service, occasions=notices.ALL, actor="ann")
    answer = client("ann", Role.OPERATOR).post("/notices/add", NEW | wrong)
    assert answer.status_code == 400
    assert 'role="alert"' in answer.content.decode()


def test_the_administration_shows_no_address_and_acts() -> None:
    row, _ = notices.add(
        "ops", NoticeKind.WEBHOOK, "https://x/s3cret", "https://x/…", service=None, occasions=notices.ALL, actor="ann"
    )
    notices.test(row.pk, actor="ann")
    adam = client("adam", Role.ADMIN)
    for path in ("noticechannel/", f"noticechannel/{row.pk}/change/", "notice/"):
        page = adam.get(f"/admin/replicas/{path}").content.decode()
        assert "ops" in page
        assert "s3cret" not in page
        assert row.sealed not in page
    for action in ("switch_off", "switch_on", "remove"):
        sent = {"action": action, "_selected_action": [row.pk], "confirmed": "yes"}
        assert adam.post("/admin/replicas/noticechannel/", sent).status_code == 302
    assert not NoticeChannel.objects.exists()
