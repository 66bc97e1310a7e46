"""Rollouts in Django admin: looked at, and steered through the same doors."""

from typing import Any

import pytest
from django.test import Client

from replicas.actions import rollouts
from replicas.core.values import RolloutState
from replicas.models import Event, Rollout, Service
from tests import cast
from tests.admin.conftest import TEXT, Make, SignIn
from tests.admin.test_services import again, body, messages

LIST = "/admin/replicas/rollout/"
SERVICES = "/admin/replicas/service/"


@pytest.fixture
def moving(make: Make) -> Service:
    """The service web, on its way from version 1, which has proved itself, to version 2."""
    service = make()
    cast.ready(service)
    going = Rollout.objects.get()
    assert rollouts.progress(going.pk, going.revision, 1, reason="ready", actor="controller")
    assert rollouts.succeed(going.pk, going.revision + 1, reason="done", actor="controller")
    return make(TEXT.replace("http.server", "http.server -d ."))


def act(client: Client, name: str, *rows: Any, at: str = LIST, **more: str) -> Any:
    chosen = {"action": name, "_selected_action": [str(row.pk) for row in rows], "index": "0"}
    return client.post(at, chosen | more)


def latest() -> Rollout:
    return Rollout.objects.latest("id")


def test_rollouts_are_listed_and_shown_but_never_edited(boss: Client, moving: Service) -> None:
    text = body(boss.get(LIST))
    assert "web v1 to v2" in text
    assert "v0 to" not in text
    assert '<span class="rc-badge rc-progressing">PROGRESSING</span>' in text
    shown = body(boss.get(f"{LIST}{latest().pk}/change/"))
    assert "<textarea" not in shown
    assert 'name="state"' not in shown
    assert boss.post(f"{LIST}{latest().pk}/change/", {"state": "SUCCEEDED"}).status_code == 403
    assert boss.get(f"{LIST}add/").status_code == 403
    assert f"{LIST}?service__id__exact={moving.pk}" in body(boss.get(f"{SERVICES}{moving.pk}/change/"))


def test_pause_and_resume(boss: Client, moving: Service) -> None:
    assert messages(act(boss, "pause", latest()))[-1] == "web v1 to v2: paused."
    assert latest().paused_at is not None
    assert "rc-paused" in body(boss.get(LIST))
    assert messages(act(boss, "resume", latest()))[-1] == "web v1 to v2: goes on."
    assert Event.objects.latest("id").actor == "boss"


def test_abort_is_confirmed_first_and_meets_no_other_rollout(boss: Client, moving: Service) -> None:
    first, going = Rollout.objects.order_by("id")
    assert "Abort these rollouts?" in body(act(boss, "abort", going))
    assert latest() == going
    done = act(boss, "abort", first, going, confirmed="yes")
    assert messages(done)[0] == "web v1 to v2: going back."
    assert "another rollout of service web is going on by now" in messages(done)[1].lower()
    going.refresh_from_db()
    assert going.state == RolloutState.ABORTED
    assert again(moving).version.number == 3


def test_the_service_has_the_same_actions(boss: Client, moving: Service) -> None:
    assert messages(act(boss, "pause", moving, at=SERVICES))[-1] == "web: the rollout is paused."
    assert messages(act(boss, "resume", moving, at=SERVICES))[-1] == "web: the rollout goes on."
    assert "has no canary" in messages(act(boss, "promote", moving, at=SERVICES, confirmed="yes"))[-1]
    assert messages(act(boss, "abort", moving, at=SERVICES, confirmed="yes"))[-1] == "web: going back."
    assert again(moving).version.number == 3


def test_rolling_back_takes_the_right_to_deploy(sign_in: SignIn, moving: Service) -> None:
    operator = sign_in("view", "operate")
    answer = act(operator, "rollback", moving, at=SERVICES, confirmed="yes")
    assert messages(answer) == ["To roll back is to deploy, which your account may not."]
    assert again(moving).version.number == 2
    both = sign_in("view", "operate", "deploy", name="eve")
    assert messages(act(both, "rollback", moving, at=SERVICES, confirmed="yes")) == ["web: going back."]
    assert again(moving).version.number == 3


def test_who_may_only_see_steers_nothing(sign_in: SignIn, moving: Service) -> None:
    viewer = sign_in("view")
    assert viewer.get(LIST).status_code == 200
    act(viewer, "pause", latest())
    act(viewer, "abort", latest(), confirmed="yes")
    assert (latest().paused_at, latest().to_version) == (None, 2)
