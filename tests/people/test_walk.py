"""Every address that there is, found by walking the resolver, as everybody: one that the table lacks fails here."""

import fnmatch
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from replicas.actions import notices, roles, tokens
from replicas.actions.powers import ADMINISTER, DEPLOY, OPERATE, SEE
from replicas.core.values import NoticeKind, Role, Scope
from replicas.models import Event, Operation, Replica
from tests import cast
from tests.web.people import deployed

pytestmark = pytest.mark.django_db

PUBLIC, SIGNED_IN, TOKEN, STAFF, SUPER, NOBODY = "public", "signed in", "token", "staff", "superuser", "nobody"
# The first pattern that fits the name says what it takes. An address in the administration takes STAFF as well.
TABLE: dict[str, str] = {
    "healthz": PUBLIC,
    "readyz": PUBLIC,
    "login": PUBLIC,
    "logout": PUBLIC,
    "password_change": SIGNED_IN,
    "metrics": SEE,
    "session": SEE,
    "api:openapi-json": PUBLIC,
    "api-nothing": PUBLIC,
    "api:api-root": PUBLIC,  # there is nothing
    "api:*": TOKEN,
    "services": SEE,
    "services.json": SEE,
    "names.json": SEE,
    "service": SEE,
    "service.json": SEE,
    "samples.json": SEE,
    "figures.json": SEE,
    "events.json": SEE,
    "versions": SEE,
    "versions.json": SEE,
    "version": SEE,
    "plan.json": SEE,
    "compare": SEE,
    "spec": SEE,
    "replica": SEE,
    "replica.json": SEE,
    "replica-events.json": SEE,
    "system": SEE,
    "system.json": SEE,
    "disk.json": SEE,
    "prune.json": ADMINISTER,
    "prune": ADMINISTER,
    "operations": SEE,
    "operations.json": SEE,
    "*-log-download": SEE,
    "*-log-page": SEE,
    "*-log-search": SEE,
    "*-log-span": SEE,
    "schema": DEPLOY,
    "service-logs": SEE,
    "notices": SEE,
    "notices.json": SEE,
    "notice-*": DEPLOY,
    "tokens": SEE,
    "revoke": SEE,
    "new": DEPLOY,
    "edit": DEPLOY,
    "check": DEPLOY,
    "up": DEPLOY,
    "rollback": DEPLOY,
    "bulk": OPERATE,
    "bulk-operations": OPERATE,
    "scale": OPERATE,
    "release": OPERATE,
    "restart": OPERATE,
    "down": OPERATE,
    "terminate": OPERATE,
    "pause": OPERATE,
    "resume": OPERATE,
    "promote": OPERATE,
    "abort": OPERATE,
    "cancel": OPERATE,
    "retry": OPERATE,
    "admin:login": STAFF,  # the dashboard's own is where one signs in
    "admin:logout": PUBLIC,
    "admin:index": STAFF,
    "admin:app_list": STAFF,
    "admin:password_change*": STAFF,
    "admin:autocomplete": NOBODY,  # unless they say what they look for, and may see that
    "admin:jsi18n": STAFF,
    "admin:view_on_site": STAFF,
    "admin:auth_user_*": "auth.view_user",
    "admin:auth_user_password_change": "auth.change_user",
    "admin:auth_group_*": SUPER,
    "admin:django_q_schedule_add": SUPER,
    "admin:django_q_*_add": NOBODY,
    "admin:django_q_*": SUPER,
    "admin:replicas_service_add": DEPLOY,
    "admin:replicas_*_add": NOBODY,
    "admin:replicas_*_delete": NOBODY,
    "admin:replicas_apitoken_*": ADMINISTER,
    "admin:replicas_notice*": ADMINISTER,
    "admin:replicas_*": SEE,
    "admin:": STAFF,  # the page of what is not there
}
# In the administration a post to a page that shows is a wish to change, which rows that are history do not have.
POSTS: dict[str, str] = {
    "admin:replicas_service_change": OPERATE,
    "admin:replicas_*_change": NOBODY,
    "admin:auth_user_change": "auth.change_user",
    "admin:auth_user_add": "auth.add_user",
}
PEOPLE: dict[str, Role | None] = {
    "stranger": None,
    "viewer": Role.VIEWER,
    "operator": Role.OPERATOR,
    "admin": Role.ADMIN,
    "root": None,
}


@dataclass(frozen=True)
class Address:
    """An address by its full name, and the arguments that it takes."""

    name: str
    pattern: URLPattern

    def need(self, method: str = "get") -> str | None:
        """What it takes; None where the table forgets it."""
        table = POSTS | TABLE if method == "post" else TABLE
        return next((need for name, need in table.items() if fnmatch.fnmatchcase(self.name, name)), None)


def walk(resolver: URLResolver, spaces: tuple[str, ...] = ()) -> Iterator[Address]:
    """All addresses below."""
    for each in resolver.url_patterns:
        if isinstance(each, URLResolver):
            yield from walk(each, (*spaces, each.namespace) if each.namespace else spaces)
        else:
            yield Address(":".join((*spaces, each.name or "")), each)


def addresses() -> list[Address]:
    """All that there are."""
    return list(walk(get_resolver("controlplane.urls")))


@pytest.fixture
def one_of_each() -> dict[str, Any]:
    """A service with one replica in launch, a token, a user: what the arguments of addresses are filled with."""
    replica = cast.pending(deployed())
    other = User.objects.create_user("other", password="x")
    token, _ = tokens.make(other, "CI", Scope.READ)
    channel, _ = notices.add(
        "x", NoticeKind.WEBHOOK, "https://x/", "x", service=replica.service, occasions=notices.ALL, actor="ann"
    )
    return {
        "name": "web",
        "number": replica.number,
        "operation_id": Operation.objects.get().pk,
        "id": replica.pk,
        "token_id": token.pk,
        "channel_id": channel.pk,
        "object_id": "1",
        "user_id": str(other.pk),
        "app_label": "replicas",
        "content_type_id": 1,
        "url": "nothing",
    }


def path_of(address: Address, known: dict[str, Any]) -> str:
    """The address with arguments that lead somewhere."""
    if address.name in {"admin:", "api-nothing"} or "^" in str(address.pattern.pattern):
        return {"api-nothing": "/api/nothing", "admin:app_list": "/admin/replicas/"}.get(address.name, "/admin/nothing")
    return reverse(address.name, kwargs={name: known[name] for name in address.pattern.pattern.converters})


def person(name: str) -> Client:
    """Their browser, somewhere else on the network."""
    client = Client(raise_request_exception=False, REMOTE_ADDR="192.0.2.1")
    if name == "root":
        client.force_login(User.objects.create_superuser(name, password="x"))
    elif name != "anonymous":
        user = User.objects.create_user(name, password="x")
        roles.give(user, PEOPLE[name])
        client.force_login(User.objects.get(pk=user.pk))
    return client


def may(name: str, address: Address, method: str) -> bool:
    """The rule, by roles."""
    need = address.need(method)
    if need == PUBLIC:
        return True
    if need in {NOBODY, TOKEN} or name == "anonymous":
        return False
    if name == "root" or need == SIGNED_IN:
        return True
    powers = {"viewer": {SEE}, "operator": {SEE, OPERATE, DEPLOY}}.get(name, set())
    if name == "admin":
        powers = {SEE, OPERATE, DEPLOY, ADMINISTER, STAFF, "auth.view_user", "auth.add_user", "auth.change_user"}
    if address.name.startswith("admin:") and STAFF not in powers:
        return False
    return need in powers


def let_in(answer: Any) -> bool:
    """Whether somebody got past the door: neither refused nor sent to a login page."""
    sent_away = answer.status_code == 302 and "/login" in answer["Location"]
    return answer.status_code not in {401, 403} and not sent_away


def test_the_table_knows_every_address_and_no_other() -> None:
    names = {address.name for address in addresses()}
    assert not {address.name for address in addresses() if address.need() is None}
    unused = {pattern for pattern in TABLE if not fnmatch.filter(names, pattern)}
    assert not unused


@pytest.mark.parametrize("name", ["anonymous", *PEOPLE])
@pytest.mark.parametrize("method", ["get", "post"])
def test_everybody_reaches_what_they_may_and_nothing_else(name: str, method: str, one_of_each: dict[str, Any]) -> None:
    """A post acts: it is asked for last, so that what it ends is there for all others."""
    client, wrong = person(name), []
    session = dict(client.cookies)
    before = Event.objects.count()
    for address in sorted(addresses(), key=lambda each: each.need() in {OPERATE, DEPLOY}):
        client.cookies.clear()
        client.cookies.update(session)
        answer = getattr(client, method)(path_of(address, one_of_each))
        if address.name in {"logout", "admin:logout"} and method == "post":  # which nobody is refused
            if name != "anonymous":
                client.force_login(User.objects.get(username=name))
                session = dict(client.cookies)
            continue
        right = may(name, address, method)
        nowhere = answer.get("Location") == "/admin/"  # there is no such row, which is looked up before all else
        fault = answer.status_code >= 500 and address.name != "readyz"
        harmless = nowhere or (answer.status_code == 405 and not right)  # the method is refused to all alike
        if fault or (let_in(answer) != right and not harmless):
            wrong.append((address.name, address.need(method), answer.status_code, answer.get("Location", "")))
    assert not wrong
    if name in {"anonymous", "stranger", "viewer"} or method == "get":
        assert Event.objects.count() == before
        assert Replica.objects.get().retire_reason == ""
