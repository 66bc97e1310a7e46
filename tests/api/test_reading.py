"""What the API tells: services, versions, replicas, events from a cursor, logs by range, operations, itself."""

from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from openapi_spec_validator import validate

from replicas.actions import services
from replicas.actions.pruning import prune
from replicas.clock import now
from replicas.models import Event, Replica
from replicas.models.public import replica_row, rollout_row, service_row, version_row
from replicas.web.api import schemas
from replicas.web.api.door import ROUTES
from replicas.web.api.operations import row_of
from replicas.web.outbox import event_row, of_services
from tests import cast
from tests.api.caller import Caller, document, promised
from tests.web.people import applied, browser, deployed, text

pytestmark = pytest.mark.django_db


def test_the_document_is_valid_and_has_every_route() -> None:
    validate(document())
    assert document()["openapi"].startswith("3.1")
    listed = {(m.upper(), p) for p, methods in document()["paths"].items() for m in methods}
    assert listed == {(r.method, "/api/v1" + r.path.replace("{int:", "{")) for r in ROUTES}
    for method, path in listed:
        operation = promised(method, path)[1]
        assert operation["security"] == [{"Token": []}]
        assert operation["x-scope"] in {"read", "operate", "deploy"}
        assert operation["summary"]


def test_the_document_is_served_to_all_and_there_is_no_page_of_it() -> None:
    answer = Client().get("/api/v1/openapi.json")
    assert answer.json()["info"]["title"] == "Rollcall"
    assert Client().get("/api/v1/docs").status_code == 404


def test_the_schemas_have_the_fields_of_the_rows() -> None:
    replica = cast.ready(deployed())
    service = replica.service
    rows = {
        schemas.ServiceRow: service_row(service),
        schemas.ReplicaRow: replica_row(replica),
        schemas.RolloutRow: rollout_row(service.rollouts.get()),
        schemas.VersionRow: version_row(service.versions.get()),
        schemas.EventRow: event_row(Event.objects.latest("id")),
        schemas.OperationRow: row_of(cast.operation_of(replica)),
    }
    for schema, row in rows.items():
        assert list(schema.model_fields) == list(row), schema


def test_services_and_one_of_them() -> None:
    cast.ready(deployed())
    deployed("other")
    ann = Caller()
    found = ann.get("/services").json()
    assert [each["name"] for each in found["services"]] == ["other", "web"]
    assert found["cursor"] == Event.objects.latest("id").pk
    assert ann.get("/services", status="FAILED").json()["services"] == []
    assert ann.get("/services", owner="ann").json()["services"] == []
    one = ann.get("/services/web").json()
    assert (one["service"]["name"], one["rollout"]["to_version"], one["replicas"][0]["state"]) == ("web", 1, "READY")
    assert ann.get("/services/web/replicas/1").json()["state"] == "READY"
    assert ann.get("/services/nothing").json()["error"]["message"] == "There is no service nothing."
    assert ann.get("/services/web/replicas/9").status_code == 404


def test_versions_with_their_text_and_without_secrets() -> None:
    applied(text("web", 1, "secrets:\n  KEY: hush-hush\n"))
    ann = Caller()
    assert [each["number"] for each in ann.get("/services/web/versions").json()["versions"]] == [1]
    answer = ann.get("/services/web/versions/1")
    assert "name: web" in answer.json()["yaml"]
    assert "hush-hush" not in answer.content.decode()
    assert ann.get("/services/web/versions/9").status_code == 404


def test_events_from_a_cursor_on_without_gap_or_double() -> None:
    service = deployed()
    deployed("other")
    for target in range(3, 10):
        services.scale(service.pk, target, actor="ann")
    ann, seen, after = Caller(), [], 0
    while True:
        page = ann.get("/events", after=after, limit=3, service="web").json()
        seen += [event["id"] for event in page["events"]]
        after = page["cursor"]
        if not page["more"]:
            break
    assert seen == list(Event.objects.filter(service_name="web").order_by("id").values_list("id", flat=True))
    assert ann.get("/events", after=after).json()["events"] == []
    newest = [event["id"] for event in ann.get("/events", limit=2).json()["events"]]
    assert newest == list(of_services(Event.objects.order_by("id")).values_list("id", flat=True))[-2:]
    assert ann.get("/events", after=-1).status_code == 400
    assert ann.get("/events", limit=10**9).status_code == 400


def test_a_cursor_whose_events_are_pruned_is_told_so() -> None:
    ann, service = Caller(), deployed()
    prune(now(), forget_replica=lambda *_: None)
    services.scale(service.pk, 5, actor="ann")
    page = ann.get("/events", after=0).json()
    assert page["gap"] is True
    assert [event["trigger"] for event in page["events"]][-1] == "scaled"


def log_of(home: Path, lines: bytes) -> Replica:
    """A replica whose run log holds the lines."""
    replica = cast.ready(deployed())
    path = home / "replicas" / "run.log"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(lines)
    Replica.objects.filter(pk=replica.pk).update(log=str(path))
    return replica


def test_a_log_by_its_end_its_lines_and_its_bytes(home: Path) -> None:
    lines = b"".join(b"line %d \xc3\xa9\n" % number for number in range(100))
    log_of(home, lines)
    ann, path = Caller(), "/services/web/replicas/1/log"
    whole = ann.get(path)
    assert (whole.content, whole["X-Log-Next"], whole["X-Log-Ended"]) == (lines, str(len(lines)), "false")
    assert ann.get(path, tail=2).content == b"line 98 \xc3\xa9\nline 99 \xc3\xa9\n"
    assert ann.get(path, tail=0).content == b""
    read, start = b"", 0
    while start < len(lines):
        answer = ann.get(path, start=start, limit=10)
        assert answer["X-Log-Start"] == str(start)
        assert answer.content.decode()
        read += answer.content
        start = int(answer["X-Log-Next"])
    assert read == lines
    assert ann.get(path, start=10**9).content == b""
    assert ann.get(path, limit=0).status_code == 400


def test_a_log_that_is_not_there_or_elsewhere_is_not_given(home: Path) -> None:
    replica = cast.ready(deployed())
    ann, path = Caller(), "/services/web/replicas/1/log"
    assert ann.get(path).status_code == 404
    assert ann.get(path, which="launch").status_code == 404
    assert ann.get(path, which="../secret_key").status_code == 400
    Replica.objects.filter(pk=replica.pk).update(log="/etc/hostname")
    assert ann.get(path).json()["error"]["message"] == "The log is no file of this installation."


def test_operations() -> None:
    operation = cast.operation_of(cast.pending(deployed()))
    ann = Caller()
    (row,) = ann.get("/operations").json()["operations"]
    assert (row["id"], row["service"], row["kind"], row["status"]) == (operation.pk, "web", "LAUNCH", "QUEUED")
    assert ann.get(f"/operations/{operation.pk}").json() == row
    assert ann.get("/operations", service="other", which="all").json()["operations"] == []
    assert ann.get("/operations/99999999999999999999").status_code == 404


def test_the_token_tells_about_itself() -> None:
    found = Caller(services=["web"]).get("/me").json()
    assert found == {"user": "ann", "token": "CI", "scope": "deploy", "services": ["web"], "expires_at": None}


@pytest.mark.parametrize("method", ["get", "post"])
def test_an_address_with_nothing_behind_is_told_in_json(method: str) -> None:
    answer: Any = getattr(Client(), method)("/api/v1/nothing")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")


def test_a_wrong_method_is_told_in_json() -> None:
    answer = Client().delete("/api/v1/services")
    assert (answer.status_code, answer.json()["error"]["code"]) == (405, "method_not_allowed")
    assert answer["Allow"] == "GET"


def test_hostile_names_are_data() -> None:
    page = browser("root").get("/api/v1/services/%3Cscript%3E")
    assert page["Content-Type"] == "application/json"
