"""`notices`: channels from the shell, whose addresses come from standard input and are never shown."""

import io
import json

import pytest

from replicas.actions import sealing
from replicas.models import Event, Notice, NoticeChannel
from tests import cast
from tests.commands.conftest import Run

URL = "https://hooks.example.org/s3cret"


@pytest.fixture(autouse=True)
def typed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read from standard input."""
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{URL}\n"))


def test_a_channel_is_made_tried_switched_and_removed(run: Run) -> None:
    cast.service("web")
    made = run("notices", "add", "on-call", "--service", "web", "--on", "failed,recovered")
    assert made.code == 0
    assert "whsec_" in made.out
    row = NoticeChannel.objects.get()
    assert (row.service.name if row.service else "", row.occasions) == ("web", ["failed", "recovered"])
    assert sealing.unseal(row.sealed)["url"] == URL
    listed = run("notices").out
    assert "https://hooks.example.org/…" in listed
    assert json.loads(run("notices", "--json").out)[0]["name"] == "on-call"
    assert run("notices", "test", "on-call").code == 0
    assert Notice.objects.get().test
    assert run("notices", "off", "on-call").code == 0
    assert not NoticeChannel.objects.get().enabled
    assert run("notices", "remove", "on-call").code == 0
    assert not NoticeChannel.objects.exists()
    told = run("events").out
    assert "channel on-call" in told
    assert "s3cret" not in made.out + listed + told + str(list(Event.objects.values_list("data", "reason")))
    kinds = list(Event.objects.filter(kind="channel").values_list("trigger", "source", "service_name"))
    assert kinds == [(each, "command", "web") for each in ("made", "switched_off", "removed")]


def test_what_is_wrong_is_said(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("notices", "test", "nobody").code == 4
    assert run("notices", "add").code == 2
    assert run("notices", "add", "x", "--service", "nothing").code == 4
    monkeypatch.setattr("sys.stdin", io.StringIO("exec://rm s3cret\n"))
    refused = run("notices", "add", "x")
    assert refused.code == 1
    assert "s3cret" not in refused.err
    assert run("notices").out.startswith("Nobody is told anything.")
