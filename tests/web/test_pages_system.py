"""The page of the system: parts, versions, settings without secrets, the room that logs take, and pruning."""

import os
import re
import subprocess
import tomllib
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import DatabaseError, connection
from django.test.utils import CaptureQueriesContext

from replicas import VERSION, clock
from replicas.actions import leases, replicas
from replicas.jobs import pruning, queue
from replicas.models import Heartbeat, Operation, Replica
from replicas.web import health, system
from tests import cast
from tests.web.people import browser, deployed

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def looked_at_anew() -> None:
    """Sizes are remembered for some seconds."""
    system._folders.cache_clear()


def parts() -> dict[str, dict[str, Any]]:
    """The parts as the page gets them."""
    return {each["name"]: each for each in browser("viewer").get("/system.json").json()["parts"]}


def test_parts_that_were_heard_of_are_well_and_silent_ones_are_not() -> None:
    for name in ("long", "controller"):
        leases.beat(name)
    Heartbeat.objects.create(name="short", host="elsewhere", pid=7, at=clock.now() - timedelta(minutes=2))
    Heartbeat.objects.filter(name="controller").update(host="elsewhere")
    found = parts()
    assert found["pool long"]["ok"] is True
    assert found["pool short"]["ok"] is False
    assert found["pool short"]["detail"].startswith("last heard of 1")
    assert (found["pool short"]["host"], found["pool short"]["pid"]) == ("elsewhere", 7)
    assert found["database"]["detail"] in {"sqlite", "postgresql"}
    assert "nobody holds the lease" in found["controller"]["detail"]


def silent(name: str, seconds: float, host: str = "elsewhere", pid: int = 7) -> None:
    Heartbeat.objects.create(name=name, host=host, pid=pid, at=clock.now() - timedelta(seconds=seconds))


def test_of_a_silent_pool_nothing_is_known_while_no_controller_asks_it() -> None:
    for name in ("long", "short", "controller"):
        silent(name, 30)
    found = parts()
    assert (found["pool long"]["ok"], found["pool short"]["ok"], found["controller"]["ok"]) == (None, None, False)
    assert "not known while no controller asks it" in found["pool long"]["detail"]


def test_nor_while_the_controller_has_only_just_begun() -> None:
    silent("long", 30)
    with subprocess.Popen(["sleep", "60"]) as process:
        silent("controller", 0, os.uname().nodename, process.pid)
        found = parts()["pool long"]
        process.kill()
    assert found["ok"] is None
    assert "the controller has only just begun" in found["detail"]


def test_what_readyz_answers_is_no_error_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    client = browser("viewer")
    assert client.get("/readyz").status_code == 503
    assert client.get("/nowhere/").status_code == 404
    assert [record.args for record in caplog.records if record.name == "django.request"] == [("Not Found", "/nowhere/")]


def test_who_holds_the_lease_is_told() -> None:
    leases.beat("controller")
    assert leases.acquire("controller", "controller-1", 30)
    assert parts()["controller"]["detail"].startswith("controller-1 holds the lease")
    assert parts()["controller"]["ok"] is True


def test_a_database_that_is_away_is_said_on_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: Any, **__: Any) -> None:
        raise DatabaseError("server closed the connection")

    monkeypatch.setattr(system, "_counts", away)
    assert browser("viewer").get("/system.json").json()["counts"] is None
    monkeypatch.setattr(health.Heartbeat.objects, "filter", away)
    assert parts()["database"]["ok"] is False
    assert "server closed the connection" in parts()["database"]["detail"]


def test_versions_and_settings_are_shown_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://ann:hunter2@db.example:5432/roll?password=hunter3")
    page = browser("viewer").get("/system/").content.decode()
    assert VERSION in page
    assert "ROLLCALL_METRICS_TOKEN" in page
    assert "postgres://db.example:5432/roll" in page
    assert "hunter" not in page
    assert settings.SECRET_KEY not in page


def test_the_version_is_the_project_s() -> None:
    project = tomllib.loads((Path(settings.BASE_DIR) / "pyproject.toml").read_text())
    assert project["project"]["version"] == VERSION


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("", ""),
        ("redis://:secret@cache:6379/0", "redis://cache:6379/0"),
        ("postgres:///roll", "postgres:///roll"),
        ("postgres://h:notaport/x", "set"),
    ],
)
def test_an_address_is_shown_without_its_password(address: str, shown: str) -> None:
    assert system.without_password(address) == shown


def test_a_token_is_only_said_to_be_set(settings: Any) -> None:
    from dataclasses import replace

    settings.ROLLCALL = replace(settings.ROLLCALL, metrics_token="do-not-tell")
    page = browser("viewer").get("/system/").content.decode()
    assert "do-not-tell" not in page
    assert re.search(r"ROLLCALL_METRICS_TOKEN</code></td><td class=\"value\"><bdi>set</bdi>", page)


def test_the_room_that_logs_take_is_counted() -> None:
    folder = settings.ROLLCALL.logs / "operations"
    folder.mkdir(parents=True, exist_ok=True)
    before = {each["name"]: each for each in browser("viewer").get("/system/disk.json").json()["folders"]}
    (folder / "990001.log").write_text("x" * 1234)
    system._folders.cache_clear()
    answer = browser("viewer").get("/system/disk.json").json()
    after = {each["name"]: each for each in answer["folders"]}
    assert after["operations"]["bytes"] == before["operations"]["bytes"] + 1234
    assert after["operations"]["files"] == before["operations"]["files"] + 1
    assert 0 < answer["free"] <= answer["total"]
    (folder / "990001.log").unlink()


def test_the_page_takes_a_constant_number_of_queries() -> None:
    client = browser("viewer")
    client.get("/system/")
    with CaptureQueriesContext(connection) as few:
        client.get("/system/")
    for name in ("web", "other"):
        service = deployed(name)
        for _ in range(4):
            cast.ready(service)
    with CaptureQueriesContext(connection) as many:
        client.get("/system/")
    assert len(many) == len(few) <= 14


def test_pruning_is_for_administrators_and_done_by_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []
    monkeypatch.setattr(queue, "offer_pruning", asked.append)
    for role, status in (("viewer", 403), ("operator", 403), ("root", 200)):
        answer = browser(role).post("/system/prune", {"days": "0.5"}, headers={"Accept": "application/json"})
        assert answer.status_code == status
    assert asked == [0.5]
    assert answer.json()["message"] == "What ended more than 0.5 days ago is being removed, with its logs."
    wrong = browser("root").post("/system/prune", {"days": "-1"}, headers={"Accept": "application/json"})
    assert (wrong.status_code, len(asked)) == (400, 1)


def test_a_queue_that_is_away_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(_days: float) -> None:
        raise queue.Away("the job queue does not answer: refused")

    monkeypatch.setattr(queue, "offer_pruning", away)
    answer = browser("root").post("/system/prune", {"days": "1"}, headers={"Accept": "application/json"})
    assert answer.status_code == 503
    assert "Nothing was removed: the job queue does not answer" in answer.json()["message"]


def test_what_would_go_is_counted_first_and_the_job_removes_that() -> None:
    service = deployed()
    for _ in range(22):
        replicas.withdraw(cast.pending(service).pk, reason="not wanted", actor="controller")
    client = browser("root")
    assert client.get("/system/prune.json?days=1").json() == {"replicas": 0, "operations": 0, "events": 0}
    would = client.get("/system/prune.json?days=0").json()
    assert (would["replicas"], would["operations"]) == (2, 20)
    pruning.run(queue.USUAL_DAYS)
    assert Replica.objects.count() == 22
    pruning.run(0)
    assert Replica.objects.count() == 20
    assert Operation.objects.count() == 0
    assert client.get("/system/prune.json?days=x").status_code == 400
