"""Roles: the groups that the migration makes, and who is given which, by command and in the administration."""

import importlib
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from replicas.actions import roles
from replicas.actions.powers import ADMINISTER, ANY, DEPLOY, OPERATE, SEE
from replicas.core.values import Role

pytestmark = pytest.mark.django_db
POWERS = (SEE, OPERATE, DEPLOY, ANY, ADMINISTER)


def user(name: str = "ann", role: Role | None = None) -> User:
    """A user with a role, read anew so that no permission is remembered."""
    made = User.objects.create_user(name, password="x")
    roles.give(made, role)
    return User.objects.get(pk=made.pk)


def boss(client: Client) -> Client:
    """Signed in as a superuser."""
    client.force_login(User.objects.create_superuser("root", password="x"))
    return client


def person(client: Client, target: User, **changed: Any) -> dict[str, Any]:
    """The form of the user as a browser would post it."""
    form = client.get(f"/admin/auth/user/{target.pk}/change/").context["adminform"].form
    values = {bound.html_name: bound.value() for bound in form}
    return {name: value for name, value in values.items() if value not in (None, False, [])} | changed


@pytest.mark.parametrize(
    ("role", "powers"),
    [
        (None, ()),
        (Role.VIEWER, (SEE,)),
        (Role.OPERATOR, (SEE, OPERATE, DEPLOY)),
        (Role.ADMIN, POWERS),
    ],
)
def test_a_role_gives_its_powers(role: Role | None, powers: tuple[str, ...]) -> None:
    found = user(role=role)
    assert tuple(each for each in POWERS if found.has_perm(each)) == powers
    assert found.is_staff == (role is Role.ADMIN)
    assert found.has_perm("auth.change_user") == (role is Role.ADMIN)


def test_the_migration_makes_the_groups_as_the_code_has_them() -> None:
    for role in Role:
        group = Group.objects.get(name=role.value)
        assert set(group.permissions.values_list("codename", flat=True)) == set(roles.PERMISSIONS[role])
    texts = {each.codename: each.name for each in Permission.objects.all()}
    frozen = importlib.import_module("replicas.migrations.0011_roles").GROUPS
    for wanted in frozen.values():
        for words in wanted.values():
            assert {codename: texts[codename] for codename in words} == words
    assert not Permission.objects.filter(codename="operate_service").count() > 1


def test_a_group_that_was_deleted_is_made_anew_and_a_changed_one_stays() -> None:
    Group.objects.get(name="viewer").delete()
    Group.objects.get(name="operator").permissions.remove(Permission.objects.get(codename="deploy_service"))
    assert user("ann", Role.VIEWER).has_perm(SEE)
    assert not user("bob", Role.OPERATOR).has_perm(DEPLOY)


def test_a_new_role_takes_the_old_one_away() -> None:
    found = user(role=Role.ADMIN)
    roles.give(found, Role.VIEWER)
    found = User.objects.get(pk=found.pk)
    assert (roles.role_of(found), found.is_staff, found.has_perm(OPERATE)) == (Role.VIEWER, False, False)


def test_the_administration_gives_roles(client: Client) -> None:
    boss(client)
    new = {"username": "eve", "usable_password": "true", "password1": "correct horse b", "password2": "correct horse b"}
    assert client.post("/admin/auth/user/add/", new | {"role": "operator"}).status_code == 302
    eve = User.objects.get(username="eve")
    assert roles.role_of(eve) is Role.OPERATOR
    assert client.post(f"/admin/auth/user/{eve.pk}/change/", person(client, eve, role="admin")).status_code == 302
    eve = User.objects.get(username="eve")
    assert (roles.role_of(eve), eve.is_staff) == (Role.ADMIN, True)
    assert client.post(f"/admin/auth/user/{eve.pk}/change/", person(client, eve, email="e@x.org")).status_code == 302
    assert roles.role_of(User.objects.get(username="eve")) is Role.ADMIN
    assert "admin" in client.get("/admin/auth/user/").content.decode()


def test_an_admin_makes_nobody_a_superuser_and_changes_none(client: Client) -> None:
    root = User.objects.create_superuser("root", password="x")
    client.force_login(user("adam", Role.ADMIN))
    bob = user("bob", Role.VIEWER)
    sent = person(client, bob, role="operator", is_superuser="on", is_staff="on", user_permissions=["1"])
    assert client.post(f"/admin/auth/user/{bob.pk}/change/", sent).status_code == 302
    bob = User.objects.get(pk=bob.pk)
    assert (roles.role_of(bob), bob.is_superuser, bob.user_permissions.count()) == (Role.OPERATOR, False, 0)
    for page in ("change/", "password/", "delete/"):
        assert client.post(f"/admin/auth/user/{root.pk}/{page}", {"role": "", "post": "yes"}).status_code == 403
    assert User.objects.filter(pk=root.pk).exists()
    assert client.get("/admin/auth/group/").status_code == 403


@pytest.mark.parametrize("role", [None, Role.VIEWER, Role.OPERATOR])
def test_nobody_else_manages_people(client: Client, role: Role | None) -> None:
    found = user(role=role)
    found.is_staff = True
    found.save()
    client.force_login(found)
    assert client.get("/admin/auth/user/").status_code == 403
    assert client.get(f"/admin/auth/user/{found.pk}/change/").status_code == 403


def test_the_command_lists_and_gives(run: Callable[..., Any]) -> None:
    made = run("role", "ann", "operator", "--create")
    assert made.code == 0
    assert User.objects.get(username="ann").check_password(made.out.split("password ")[1].split("\n")[0])
    assert roles.role_of(User.objects.get(username="ann")) is Role.OPERATOR
    assert run("role", "ann", "none").code == 0
    assert "ann   -     yes" in run("role").out
    assert run("role", "anne", "viewer").code == 4
    assert "Did you mean ann?" in run("role", "anne").err
    assert run("role", "ann", "boss").code == 2
    assert run("role", "ann", "viewer", "--create").code == 1
    assert "no name for a user" in run("role", "a b", "viewer", "--create").err
