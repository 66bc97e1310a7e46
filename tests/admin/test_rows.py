"""Versions, replicas, operations, events, leases, heartbeats: seen by those who may, acted on where it makes sense."""

import re
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from replicas import clock
from replicas.actions import leases, operations, replicas
from replicas.core.values import OperationStatus, ReplicaState
from replicas.models import Event, Heartbeat, Lease, Operation, Replica, Service, ServiceVersion
from tests import cast
from tests.admin.conftest import TEXT, Make, SignIn

KINDS = ("service", "serviceversion", "replica", "operation", "event", "lease", "heartbeat")
READ_ONLY = KINDS[1:]


def address(kind: str, *rest: object) -> str:
    return "/".join(["/admin/replicas", kind, *map(str, rest), ""])


def body(answer: Any) -> str:
    return unescape(answer.content.decode())


def act(client: Client, kind: str, name: str, *rows: Any, **more: str) -> Any:
    chosen = {"action": name, "_selected_action": [str(row.pk) for row in rows], "index": "0"}
    return client.post(address(kind), chosen | more)


def messages(answer: Any) -> list[str]:
    return [str(message) for message in answer.wsgi_request._messages]


@pytest.fixture
def service(make: Make) -> Service:
    """A service with a ready replica, one that failed, and one that is being launched."""
    found = make()
    cast.ready(found)
    failed = cast.starting(found)
    replicas.observe(failed.pk, "exited", reason="exit <7>", actor="controller", last_lines=["<b>last</b>", "words"])
    cast.pending(found)
    leases.acquire("controller", "me", 60)
    leases.beat("long")
    return found


def rows(kind: str) -> Any:
    models = (Service, ServiceVersion, Replica, Operation, Event, Lease, Heartbeat)
    return dict(zip(KINDS, models, strict=True))[kind].objects


@pytest.mark.parametrize("kind", KINDS)
def test_every_list_and_every_row_can_be_looked_at(boss: Client, service: Service, kind: str) -> None:
    shown = boss.get(address(kind))
    assert shown.status_code == 200
    assert rows(kind).count() > 0
    for row in rows(kind).all():
        answer = boss.get(address(kind, row.pk, "change"))
        assert answer.status_code == 200
        assert not re.search(r"\s(style|onclick|onchange|onsubmit)=", answer.content.decode())
    assert boss.get(address(kind), {"q": "web"}).status_code == 200


@pytest.mark.parametrize("kind", READ_ONLY)
def test_no_row_is_added_changed_or_deleted(boss: Client, service: Service, kind: str) -> None:
    row = rows(kind).first()
    before = rows(kind).values().get(pk=row.pk)
    assert boss.get(address(kind, "add")).status_code == 403
    assert boss.post(address(kind, "add"), {}).status_code == 403
    assert boss.post(address(kind, row.pk, "change"), {"state": "TERMINATED", "reason": "x"}).status_code == 403
    assert boss.get(address(kind, row.pk, "delete")).status_code == 403
    assert boss.post(address(kind, row.pk, "delete"), {"post": "yes"}).status_code == 403
    assert "<textarea" not in body(boss.get(address(kind, row.pk, "change")))
    assert rows(kind).values().get(pk=row.pk) == before


@pytest.mark.parametrize("kind", KINDS)
def test_only_who_may_see_services_sees_their_rows(sign_in: SignIn, service: Service, kind: str) -> None:
    row = rows(kind).first()
    stranger, viewer = sign_in(name="eve"), sign_in("view", name="vic")
    for place in (address(kind), address(kind, row.pk, "change")):
        assert stranger.get(place).status_code == 403
        assert viewer.get(place).status_code == 200


@pytest.mark.parametrize("kind", ["serviceversion", "replica", "operation", "event"])
def test_a_list_costs_the_same_for_a_thousand_rows(boss: Client, make: Make, kind: str) -> None:
    found = make()
    for _ in range(3):
        cast.pending(found)
    boss.get(address(kind))
    with CaptureQueriesContext(connection) as few:
        assert boss.get(address(kind)).status_code == 200
    multiply(kind, 1100)
    with CaptureQueriesContext(connection) as many:
        answer = boss.get(address(kind))
    assert len(many) == len(few)
    assert len(answer.context["cl"].result_list) == 100
    assert boss.get(address(kind), {"p": "11"}).status_code == 200


def multiply(kind: str, count: int) -> None:
    """Make copies of the newest row, as many services would leave them."""
    if kind == "operation":
        done = Operation.objects.select_related("replica").latest("id")
        copies = [Operation(service_id=done.service_id, replica=done.replica, kind=done.kind) for _ in range(count)]
        now = clock.now()
        for copy in copies:
            copy.status, copy.created_at, copy.ended_at = OperationStatus.SUCCEEDED, now, now
        Operation.objects.bulk_create(copies)
        return
    template = rows(kind).latest("id")
    highest = template.pk
    made = []
    for number in range(1, count + 1):
        values = {field.attname: getattr(template, field.attname) for field in template._meta.concrete_fields}
        values |= {"id": highest + number}
        if kind in ("replica", "serviceversion"):
            values |= {"uid": f"{number:032}", "number": template.number + number}
        if kind == "event":
            values |= {"object_id": 10_000 + number}
        made.append(type(template)(**values))
    rows(kind).bulk_create(made)


def test_search_and_filters_find(boss: Client, service: Service, make: Make) -> None:
    cast.ready(make(name="other"))
    failed = Replica.objects.get(state=ReplicaState.SHUTTING_DOWN)
    for query in ({"q": "exit"}, {"q": failed.uid}, {"state__exact": "SHUTTING_DOWN"}, {"outcome__exact": "FAILED"}):
        found = boss.get(address("replica"), query).context["cl"].result_list
        assert [row.pk for row in found] == [failed.pk], query
    assert {e.trigger for e in boss.get(address("event"), {"q": "exited"}).context["cl"].result_list} == {"exited"}
    kinds = {o.status for o in boss.get(address("operation"), {"status__exact": "QUEUED"}).context["cl"].result_list}
    assert kinds == {"QUEUED"}


def test_what_others_wrote_is_no_html(boss: Client, service: Service) -> None:
    failed = Replica.objects.get(state=ReplicaState.SHUTTING_DOWN)
    event = Event.objects.get(trigger="exited")
    places = [address("replica"), address("replica", failed.pk, "change"), address("event", event.pk, "change")]
    for place in [*places, address("event")]:
        text = boss.get(place).content.decode()
        assert "exit &lt;7&gt;" in text
        assert "<b>last" not in text


def test_a_version_shows_its_text_but_no_secret(boss: Client, make: Make) -> None:
    found = make(f"secrets:\n  TOKEN: very-secret-value\nenvs:\n  SIZE:\n{TEXT}", env={"SIZE": "big"})
    text = body(boss.get(address("serviceversion", found.version_id, "change")))
    assert 'TOKEN: "***"' in text
    assert "SIZE=big" in text
    assert "very-secret-value" not in text
    assert ServiceVersion.objects.get().sealed not in text


def test_terminating_replicas(boss: Client, service: Service) -> None:
    ready = Replica.objects.get(state=ReplicaState.READY)
    asked = act(boss, "replica", "terminate", ready)
    assert "Terminate these replicas?" in body(asked)
    assert "<li>web replica 1</li>" in body(asked)
    assert not Replica.objects.exclude(retire_reason="").exists()
    answer = act(boss, "replica", "terminate", ready, confirmed="yes")
    assert messages(answer) == ["web replica 1: will be terminated."]
    ready.refresh_from_db()
    assert (ready.retire_reason, ready.state, ready.purge) == ("terminated by boss", ReplicaState.READY, False)
    assert Event.objects.latest("id").actor == "boss"


def test_terminating_what_has_ended(boss: Client, service: Service) -> None:
    pending = Replica.objects.get(state=ReplicaState.PENDING)
    assert replicas.withdraw(pending.pk, reason="scaled down", actor="controller")
    answer = act(boss, "replica", "terminate", pending, confirmed="yes")
    assert messages(answer) == ["web replica 3 has ended already (TERMINATED)."]
    act(boss, "replica", "terminate_and_forget", pending, confirmed="yes")
    assert not Replica.objects.filter(pk=pending.pk).exists()


def test_cancelling_operations(boss: Client, service: Service) -> None:
    queued = Operation.objects.get(status=OperationStatus.QUEUED)
    ended = Operation.objects.filter(status=OperationStatus.SUCCEEDED).earliest("id")
    assert "Cancel these launches?" in body(act(boss, "operation", "cancel", queued, ended))
    answer = act(boss, "operation", "cancel", queued, ended, confirmed="yes")
    assert messages(answer) == [
        f"operation {queued.pk}: will be cancelled.",
        f"Operation {ended.pk} has already ended (SUCCEEDED); there is nothing to cancel.",
    ]
    queued.refresh_from_db()
    assert queued.status == OperationStatus.CANCELLED


def test_hastening_operations(boss: Client, service: Service) -> None:
    claimed = operations.claim(Operation.objects.get(status=OperationStatus.QUEUED).pk, cast.WORKER)
    assert claimed is not None
    usage = operations.Usage()
    operations.wait(claimed, checkpoint={"step": 1}, reason="setup", seconds=900, watch=None, usage=usage)
    claimed.refresh_from_db()
    due = claimed.retry_at
    answer = act(boss, "operation", "retry", claimed)
    assert messages(answer) == [f"operation {claimed.pk}: is looked at again at once."]
    claimed.refresh_from_db()
    assert claimed.retry_at < due


def test_actions_need_the_right_to_operate(sign_in: SignIn, service: Service) -> None:
    replica = Replica.objects.get(state=ReplicaState.READY)
    queued = Operation.objects.get(status=OperationStatus.QUEUED)
    deployer = sign_in("view", "deploy", name="dee")
    assert 'name="action"' not in body(deployer.get(address("replica")))
    act(deployer, "replica", "terminate", replica, confirmed="yes")
    act(deployer, "operation", "cancel", queued, confirmed="yes")
    replica.refresh_from_db()
    queued.refresh_from_db()
    assert (replica.retire_reason, queued.status) == ("", OperationStatus.QUEUED)
    operator = sign_in("view", "operate", name="oda")
    act(operator, "replica", "terminate", replica, confirmed="yes")
    replica.refresh_from_db()
    assert replica.retire_reason == "terminated by oda"


def test_many_refusals_are_counted(boss: Client, service: Service) -> None:
    multiply("operation", 8)
    done = Operation.objects.filter(status=OperationStatus.SUCCEEDED)
    told = messages(act(boss, "operation", "cancel", *done, confirmed="yes"))
    assert len(told) == 6
    assert told[-1] == f"{done.count() - 5} more were refused."
