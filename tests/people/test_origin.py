"""Where wishes come from: each event says by which door and from which address."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.auth.models import User
from django.test import AsyncClient, Client

from controlplane.children import table
from replicas.actions import operations
from replicas.config import Config, ConfigError
from replicas.models import Event
from tests import cast
from tests.web.people import browser, deployed, text

BASE = Path(__file__).parents[2]


def newest() -> Event:
    return Event.objects.latest("id")


@pytest.mark.django_db
def test_what_the_control_plane_does_by_itself_has_no_door() -> None:
    replica = cast.pending(deployed())
    operations.claim(cast.operation_of(replica).pk, cast.WORKER)
    assert {(event.source, event.address, event.token) for event in Event.objects.all()} == {("", "", "")}


@pytest.mark.django_db
def test_the_dashboard_notes_the_address() -> None:
    deployed()
    browser("operator", REMOTE_ADDR="192.0.2.7").post("/services/web/scale", {"target": "4"})
    assert (newest().actor, newest().source, newest().address) == ("operator", "web", "192.0.2.7")


@pytest.mark.django_db
def test_a_header_alone_changes_no_address() -> None:
    deployed()
    client = browser("operator", REMOTE_ADDR="192.0.2.7")
    client.post("/services/web/scale", {"target": "4"}, headers={"X-Forwarded-For": "203.0.113.9"})
    assert newest().address == "192.0.2.7"


@pytest.mark.django_db
def test_the_administration_is_a_door_of_its_own() -> None:
    service = deployed()
    client = Client(REMOTE_ADDR="2001:db8::1")
    client.force_login(User.objects.create_superuser("root", password="x"))
    sent = {"action": "take_down", "_selected_action": [service.pk], "confirmed": "yes"}
    client.post("/admin/replicas/service/", sent)
    assert (newest().actor, newest().source, newest().address) == ("root", "admin", "2001:db8::1")


@pytest.mark.django_db
def test_a_command_says_so(run: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "web.yaml"
    path.write_text(text())
    run("apply", path)
    row = json.loads(run("events", "--json").out.splitlines()[-1])
    assert (row["source"], row["address"], row["token"]) == ("command", "", "")
    assert row["actor"].endswith(" (command)")


@pytest.mark.django_db(transaction=True)
def test_it_holds_under_asgi_and_for_one_request_only() -> None:
    async_to_sync(posted_twice)()


async def posted_twice() -> None:
    await sync_to_async(deployed)()
    client = AsyncClient()
    await client.aforce_login(await User.objects.acreate_superuser("root", password="x"))
    assert (await client.post("/services/web/scale", {"target": "4"})).status_code == 302
    event = await Event.objects.alatest("id")
    assert (event.trigger, event.source, event.address) == ("scaled", "web", "127.0.0.1")
    await sync_to_async(deployed)("other")
    assert (await Event.objects.alatest("id")).source == ""


def test_forwarded_addresses_are_believed_from_named_proxies_only(monkeypatch: pytest.MonkeyPatch) -> None:
    web = table(BASE)[0].arguments
    assert "--no-proxy-headers" in web
    monkeypatch.setenv("ROLLCALL_TRUSTED_PROXIES", "10.0.0.5, 10.1.0.0/16")
    web = table(BASE)[0].arguments
    assert web[web.index("--forwarded-allow-ips") + 1] == "10.0.0.5,10.1.0.0/16"
    with pytest.raises(ConfigError, match="neither an address nor a network"):
        Config.from_env({"ROLLCALL_TRUSTED_PROXIES": "proxy.example"})
