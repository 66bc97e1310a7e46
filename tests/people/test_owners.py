"""Services that belong to somebody: who may act on them, at every door, and how they change hands."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.test import Client

from replicas.actions import roles, services
from replicas.actions.origin import WEB, Origin, acting
from replicas.actions.powers import OPERATE, refusal
from replicas.core.values import Role
from replicas.models import Event, Operation, Replica, Service
from replicas.models.public import service_row
from tests import cast
from tests.web.people import deployed, text

pytestmark = pytest.mark.django_db


def user(name: str, role: Role = Role.OPERATOR) -> User:
    """A user with a role."""
    made = User.objects.filter(username=name).first() or User.objects.create_user(name, password="x")
    roles.give(made, role)
    return User.objects.get(pk=made.pk)


def signed_in(name: str, role: Role = Role.OPERATOR, staff: bool = False) -> Client:
    """The browser of a user with a role."""
    made = user(name, role)
    if staff:
        User.objects.filter(pk=made.pk).update(is_staff=True)
    client = Client()
    client.force_login(made)
    return client


def anns(name: str = "web") -> Service:
    """A service of ann's."""
    made = deployed(name)
    services.give(made.pk, user("ann"), actor="root")
    return Service.objects.get(pk=made.pk)


def test_the_rule() -> None:
    mine, nobodys = anns(), deployed("free")
    ann, bob, adam = user("ann"), user("bob"), user("adam", Role.ADMIN)
    assert refusal(ann, OPERATE, mine) == refusal(adam, OPERATE, mine) == refusal(bob, OPERATE, nobodys) == ""
    assert refusal(bob, OPERATE, mine) == "Service web belongs to ann: only ann and administrators may act on it."
    assert refusal(user("vic", Role.VIEWER), OPERATE, nobodys).startswith("Your account may not scale")


ACTS = [
    ("scale", {"target": "3"}),
    ("release", {}),
    ("restart", {"expected": "1"}),
    ("down", {}),
    ("up", {}),
    ("rollback", {}),
    ("edit", {"text": text("web", 5)}),
    ("replicas/1/terminate", {}),
    ("rollout/pause", {}),
    ("rollout/resume", {}),
    ("rollout/promote", {}),
    ("rollout/abort", {}),
]


@pytest.mark.parametrize(("path", "data"), ACTS, ids=lambda each: each if isinstance(each, str) else "")
def test_others_act_on_it_by_no_address(path: str, data: dict[str, str]) -> None:
    cast.pending(anns())
    bob = signed_in("bob")
    newest = Event.objects.latest("id").pk
    answer = bob.post(f"/services/web/{path}", data)
    assert answer.status_code == 403
    assert "belongs to ann" in answer.content.decode()
    assert Event.objects.latest("id").pk == newest


def test_others_cancel_and_retry_nothing_of_it() -> None:
    cast.pending(anns())
    for verb in ("cancel", "retry"):
        answer = signed_in("bob").post(f"/operations/{Operation.objects.get().pk}/{verb}")
        assert answer.status_code == 403
    assert Operation.objects.get().cancel_requested_at is None


def test_nobody_revives_it_as_a_new_one() -> None:
    services.take_down(anns().pk, purge=False, actor="ann")
    answer = signed_in("bob").post("/new", {"text": text("web", 5)})
    assert answer.status_code == 403
    assert Service.objects.get().desired == "DOWN"


@pytest.mark.parametrize("more", [{}, {"service": "web"}])
def test_others_learn_nothing_of_its_secrets_by_the_check(more: dict[str, str]) -> None:
    services.give(deployed("web", 2, "secrets:\n  KEY: hush\n").pk, user("ann"), actor="root")
    guess = {"text": text("web", 2, "secrets:\n  KEY: guess\n")} | more
    told = signed_in("bob").post("/check", guess).json()
    assert (told["kind"], told["changes"], told["plan"]) == ("", [], [])
    assert "belongs to ann" in told["errors"][0]["message"]
    own = signed_in("ann").post("/check", guess | {"service": "web"}).json()
    assert any("KEY" in line for line in own["changes"])


def test_others_see_it_without_its_buttons() -> None:
    anns()
    page = signed_in("bob").get("/services/web/").content.decode()
    assert '<bdi id="owner">ann</bdi>' in page
    assert ">Scale<" not in page
    assert ">Edit<" not in page
    assert ">Scale<" in signed_in("ann").get("/services/web/").content.decode()


def test_the_administration_leaves_others_alone() -> None:
    mine, nobodys = anns(), deployed("free")
    replica = cast.pending(mine)
    client = signed_in("bob", staff=True)
    both = {"_selected_action": [mine.pk, nobodys.pk], "confirmed": "yes"}
    for action in ("take_down", "restart", "pause", "rollback"):
        page = client.post("/admin/replicas/service/", both | {"action": action}, follow=True).content.decode()
        assert "web belongs to ann" in page, action
    assert [each.desired for each in Service.objects.order_by("name")] == ["DOWN", "UP"]
    assert Service.objects.get(name="web").last_version == 1
    for kind, pk, action in (
        ("replica", replica.pk, "terminate"),
        ("operation", Operation.objects.get().pk, "cancel"),
        ("rollout", mine.rollouts.get().pk, "abort"),
    ):
        sent = {"_selected_action": [pk], "confirmed": "yes", "action": action}
        page = client.post(f"/admin/replicas/{kind}/", sent, follow=True).content.decode()
        assert "web belongs to ann" in page, action
    assert Replica.objects.get().retire_reason == ""
    form = client.get(f"/admin/replicas/service/{mine.pk}/change/").content.decode()
    assert 'name="target"' not in form
    assert client.post(f"/admin/replicas/service/{mine.pk}/change/", {"target": "9"}).status_code == 403


def test_a_door_that_forgets_to_ask_writes_nothing() -> None:
    mine = anns()
    with acting(Origin(WEB, user=user("bob"))), pytest.raises(PermissionDenied, match="belongs to ann"):
        services.scale(mine.pk, 9, actor="bob")
    assert Service.objects.get().target == 2


def test_who_makes_a_service_owns_it() -> None:
    assert signed_in("ann").post("/new", {"text": text("web", 1)}).status_code == 302
    assert service_row(Service.objects.get())["owner"] == "ann"
    assert deployed("free").owner is None


def test_an_admin_gives_it_away() -> None:
    mine = anns()
    bob = user("bob")
    client = signed_in("adam", Role.ADMIN)
    page = f"/admin/replicas/service/{mine.pk}/change/"
    form = client.get(page).context["adminform"].form
    sent = {}
    for bound in form:
        sent[bound.html_name] = sent[bound.html_initial_name] = "" if bound.value() is None else str(bound.value())
    assert client.post(page, sent | {"owner": str(bob.pk)}).status_code == 302
    event = Event.objects.get(trigger="given", actor="adam")
    assert (event.reason, event.source, event.data["owner"]) == ("given to bob by adam", "admin", "bob")
    assert client.post(page, sent | {"owner": ""}).status_code == 302
    assert Service.objects.get().owner is None
    assert Service.objects.get().last_version == 1


def test_an_owner_does_not_give_it_away() -> None:
    mine = anns()
    form = signed_in("ann", staff=True).get(f"/admin/replicas/service/{mine.pk}/change/").content.decode()
    assert 'name="target"' in form
    assert 'name="owner"' not in form


def test_apply_gives_it_to_a_user(run: Callable[..., Any], tmp_path: Any) -> None:
    user("ann")
    path = tmp_path / "web.yaml"
    path.write_text(text("web", 1))
    assert run("apply", path).code == 0
    assert Service.objects.get().owner is None
    assert run("apply", path, "--owner", "nobody").code == 4
    assert run("apply", path, "--owner", "ann").code == 0
    assert Service.objects.get().owner == user("ann")


def test_a_service_outlives_its_owner() -> None:
    anns()
    User.objects.get(username="ann").delete()
    assert service_row(Service.objects.get())["owner"] is None
    assert refusal(user("bob"), OPERATE, Service.objects.get()) == ""
