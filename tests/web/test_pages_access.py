"""Who sees and does what: every address of the dashboard as anonymous, stranger, viewer, operator, deployer, root."""

import logging
import sys
from urllib.parse import quote

import pytest
from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.urls import URLPattern, reverse

from controlplane.logline import LineFormatter, without_refusal
from replicas.actions import notices, services
from replicas.core.values import Desired, NoticeKind
from replicas.models import NoticeChannel, Operation, Replica, Service
from replicas.web import urls
from tests import cast
from tests.web.people import browser, deployed, person, text

pytestmark = pytest.mark.django_db

OPERATES = {
    "scale",
    "release",
    "restart",
    "down",
    "terminate",
    "cancel",
    "retry",
    "pause",
    "resume",
    "promote",
    "abort",
    "bulk",
    "bulk-operations",
}
ADMINISTERS = {each.name for each in urls.administers}
DEPLOYS = {"new", "edit", "check", "schema", *(each.name for each in urls.deploys)}
OF_LOGS = {each.name for each in urls.log_urls}
ROLES = ["stranger", "viewer", "operator", "deployer", "root"]
POSTED = {"target": "3", "expected": "1", "text": text(), "verb": "restart", "names": "web", "days": "1"}
POSTED |= {"name": "y", "service": "web", "url": "https://y/", "occasions": "failed"}


def every() -> list[URLPattern]:
    """All addresses that are ours (logs have tests of their own)."""
    found = [each for each in urls.urlpatterns if isinstance(each, URLPattern)]
    return [each for each in found if each.name not in OF_LOGS and each.name != "revoke"]


def address(pattern: URLPattern) -> str:
    """The address of the pattern for the one service, replica and operation that there is."""
    replica = Replica.objects.get()
    known = {"name": "web", "number": replica.number, "operation_id": Operation.objects.get().pk}
    known["channel_id"] = NoticeChannel.objects.get().pk
    wanted = {name: known[name] for name in pattern.pattern.converters}
    return reverse(pattern.name, kwargs=wanted)


@pytest.fixture(autouse=True)
def one_of_each() -> None:
    """A service with one replica in launch, and somebody who is told about it."""
    service = cast.pending(deployed()).service
    given = {"service": service, "occasions": notices.ALL, "actor": "ann"}
    notices.add("x", NoticeKind.WEBHOOK, "https://x/", "x", **given)


def ask(role: str | None, pattern: URLPattern, json: bool = False) -> HttpResponse:
    """The address as that person: posted where it acts, else fetched."""
    client = browser(role)
    headers = {"Accept": "application/json"} if json else {}
    posts = pattern in [*urls.posts, *urls.deploys] or pattern.name in {"check", "logout", "prune"}
    data = POSTED if posts or pattern.name == "prune.json" else None
    return (client.post if posts else client.get)(address(pattern), data, headers=headers)


def allowed(role: str, name: str) -> bool:
    """The rule: seeing needs view, acting needs operate or deploy on top; one's own account needs nothing."""
    if name in {"login", "logout", "password_change"}:
        return True
    powers = {"stranger": "", "viewer": "v", "operator": "vo", "deployer": "vd", "root": "voda"}[role]
    needed = "v" + ("o" if name in OPERATES else "d" if name in DEPLOYS else "a" if name in ADMINISTERS else "")
    return all(power in powers for power in needed)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("pattern", every(), ids=lambda each: each.name)
def test_each_role_reaches_what_it_may_and_nothing_else(role: str, pattern: URLPattern) -> None:
    answer = ask(role, pattern)
    if allowed(role, pattern.name):
        assert answer.status_code in {200, 302}, answer.content[:300]
    else:
        assert answer.status_code == 403
        assert "Your account may not" in answer.content.decode()


@pytest.mark.parametrize("pattern", every(), ids=lambda each: each.name)
def test_who_is_not_signed_in_goes_to_the_login_page(pattern: URLPattern) -> None:
    answer = ask(None, pattern)
    if pattern.name == "login":
        assert answer.status_code == 200
    else:
        assert answer.status_code == 302
        assert answer["Location"].startswith("/login")


@pytest.mark.parametrize("pattern", [*urls.pages, *urls.posts, *urls.deploys], ids=lambda each: each.name)
def test_scripts_are_told_in_json(pattern: URLPattern) -> None:
    signed_out, not_allowed = ask(None, pattern, json=True), ask("stranger", pattern, json=True)
    assert (signed_out.status_code, not_allowed.status_code) == (401, 403)
    assert "Sign in" in signed_out.json()["message"]
    assert "may not" in not_allowed.json()["message"]


@pytest.mark.parametrize("role", [None, "stranger", "viewer", "deployer"])
@pytest.mark.parametrize("pattern", urls.posts, ids=lambda each: each.name)
def test_who_may_not_operate_changes_nothing(role: str | None, pattern: URLPattern) -> None:
    before = Operation.objects.values_list("revision", "cancel_requested_at").get()
    ask(role, pattern)
    replica = Replica.objects.select_related("service").get()
    assert (replica.service.target, replica.service.desired, replica.retire_reason) == (2, Desired.UP, "")
    assert replica.service.last_version == 1
    assert Operation.objects.values_list("revision", "cancel_requested_at").get() == before


@pytest.mark.parametrize("role", ["operator", "root"])
@pytest.mark.parametrize("pattern", urls.posts, ids=lambda each: each.name)
def test_acting_takes_a_post(role: str, pattern: URLPattern) -> None:
    assert browser(role).get(address(pattern)).status_code == 405


@pytest.mark.parametrize("role", ["deployer", "root"])
@pytest.mark.parametrize("pattern", urls.deploys, ids=lambda each: each.name)
def test_deploying_takes_a_post(role: str, pattern: URLPattern) -> None:
    assert browser(role).get(address(pattern)).status_code == 405


@pytest.mark.parametrize("role", [None, "stranger", "viewer", "operator"])
@pytest.mark.parametrize("pattern", urls.deploys, ids=lambda each: each.name)
def test_who_may_not_deploy_brings_nothing_up(role: str | None, pattern: URLPattern) -> None:
    service = Service.objects.get()
    services.take_down(service.pk, purge=False, actor="ann")
    ask(role, pattern)
    service.refresh_from_db()
    assert (service.desired, service.last_version) == (Desired.DOWN, 1)


@pytest.mark.parametrize("pattern", [*urls.posts, *urls.deploys, *urls.editor], ids=lambda each: each.name)
def test_every_post_needs_the_csrf_token(pattern: URLPattern) -> None:
    answer = browser("root", enforce_csrf_checks=True).post(address(pattern), POSTED)
    assert answer.status_code == 403
    assert "The form is out of date" in answer.content.decode()
    assert Replica.objects.get().service.target == 2


@pytest.mark.parametrize(
    ("referer", "back"),
    [
        ("http://testserver/new?example=http", "/new?example=http"),
        ("http://elsewhere.example/new", "/"),
        ("http://testserver//elsewhere.example/new", "/"),
        ("", "/"),
    ],
)
def test_a_refused_post_leads_back_to_its_page(referer: str, back: str) -> None:
    signed_out = browser().post("/new", POSTED, headers={"Referer": referer})
    assert signed_out["Location"] == f"/login?next={quote(back)}"
    stale = browser("root", enforce_csrf_checks=True)
    answer = stale.post("/new", POSTED, headers={"Referer": referer})
    assert f'href="{back}">Open the page again' in answer.content.decode()
    told = stale.post("/check", POSTED, headers={"Referer": referer, "Accept": "application/json"})
    assert (told.status_code, "form is out of date" in told.json()["message"]) == (403, True)


@pytest.mark.parametrize(
    ("role", "buttons"),
    [
        ("viewer", set()),
        ("operator", {"Scale", "Restart", "Take down"}),
        ("deployer", {"Edit"}),
        ("root", {"Scale", "Restart", "Take down", "Edit"}),
    ],
)
def test_only_the_buttons_that_one_may_press_are_there(role: str, buttons: set[str]) -> None:
    page = browser(role).get("/services/web/").content.decode()
    shown = {each for each in ("Scale", "Restart", "Take down", "Edit") if f">{each}<" in page}
    assert shown == buttons
    assert ("dialog-terminate" in page) == (role in {"operator", "root"})


def test_a_power_alone_is_not_enough_to_act_on_what_one_may_not_see() -> None:
    from django.contrib.auth.models import Permission

    person("stranger").user_permissions.add(Permission.objects.get(codename="operate_service"))
    assert browser("stranger").post("/services/web/scale", {"target": "9"}).status_code == 403


def test_a_refused_page_is_one_line_of_the_log() -> None:
    record = logging.LogRecord(
        "django.request", logging.WARNING, __file__, 1, "Forbidden (%s): %s", ("no", "/new"), None
    )
    try:
        raise PermissionDenied("Your account may not deploy.")
    except PermissionDenied:
        record.exc_info = sys.exc_info()
    assert without_refusal(record)
    assert LineFormatter().format(record).endswith("Forbidden (no): /new (Your account may not deploy.)")
    assert settings.LOGGING["handlers"]["out"]["filters"] == ["refusal"]


def test_a_disabled_user_is_signed_out_at_once() -> None:
    client = browser("viewer")
    assert client.get("/").status_code == 200
    user = person("viewer")
    user.is_active = False
    user.save()
    assert client.get("/").status_code == 302
