"""`status`: the truth from the rows, for people and as documented JSON."""

import json
from collections.abc import Callable
from pathlib import Path

from django.db import connection
from django.test.utils import CaptureQueriesContext

from replicas.actions import operations, replicas, services
from replicas.core.values import ServiceStatus
from replicas.management.standing import standing
from replicas.models import Lease, Replica
from tests.commands import acts
from tests.commands.conftest import Run

Meanwhile = Callable[..., None]
SERVICE_KEYS = ["name", "status", "reason", "version", "target", "ready", "endpoint"]
SERVICE_KEYS += ["endpoint_reason", "rollout", "replicas"]
REPLICA_KEYS = ["number", "uid", "state", "outcome", "reason", "version", "url", "pid", "created_at", "ready_at"]


def test_an_empty_house(run: Run, controller: Lease) -> None:
    assert run("status").out == "No service is up. `status --all` shows all of them.\n"
    assert run("status", "--all").out == "There are no services.\n"
    assert json.loads(run("status", "--json").out) == []


def test_the_json_has_the_documented_keys_and_no_others(run: Run, yaml: Path, controller: Lease) -> None:
    run("apply", yaml)
    made = acts.ready(acts.service())
    (row,) = json.loads(run("status", "--json").out)
    assert list(row) == SERVICE_KEYS
    assert row["rollout"]["state"] == "PROGRESSING"
    assert row | {"replicas": [], "rollout": None} == {
        "name": "web",
        "status": "CONTROLLER_INIT",
        "reason": "waiting for the controller",
        "version": 1,
        "target": 2,
        "ready": 1,
        "endpoint": None,
        "endpoint_reason": None,
        "rollout": None,
        "replicas": [],
    }
    (replica,) = row["replicas"]
    assert list(replica) == REPLICA_KEYS
    assert replica["created_at"].endswith("Z")
    assert replica["ready_at"] > replica["created_at"]
    assert replica | {"created_at": 0, "ready_at": 0, "reason": ""} == {
        "number": 1,
        "uid": made.uid,
        "state": "READY",
        "outcome": None,
        "reason": "",
        "version": 1,
        "url": f"fake://{made.uid}",
        "pid": None,
        "created_at": 0,
        "ready_at": 0,
    }


def test_what_machine_a_replica_has_is_told_where_its_provider_says_so(run: Run, yaml: Path, controller: Lease) -> None:
    run("apply", yaml)
    made = acts.ready(acts.service())
    assert "MACHINE" not in run("status", "web").out
    Replica.objects.filter(pk=made.pk).update(spot=True, accelerators="A100:8", place="aws/us-east-1")
    out = run("status", "web").out
    assert "VERSION  MACHINE" in out
    assert "spot A100:8 aws/us-east-1" in out


def test_ready_counts_the_rows_and_not_what_the_controller_last_said(run: Run, yaml: Path, controller: Lease) -> None:
    run("apply", yaml)
    acts.ready(acts.service())
    acts.ready(acts.service())
    assert acts.service().ready == 0
    assert json.loads(run("status", "web", "--json").out)[0]["ready"] == 2


def test_people_see_an_aligned_table_and_the_replicas_of_a_named_service(
    run: Run, yaml: Path, controller: Lease
) -> None:
    run("apply", yaml)
    run("apply", yaml, "--name", "a-much-longer-name")
    acts.ready(acts.service())
    lines = run("status").out.splitlines()
    assert lines[0].split() == ["NAME", "STATUS", "READY", "VERSION", "ENDPOINT", "REASON"]
    assert len({line.index("CONTROLLER_INIT") for line in lines[1:]}) == 1
    assert len(lines) == 3
    named = run("status", "web").out
    assert "a-much-longer-name" not in named
    assert "1/2" in named
    assert "READY" in named.splitlines()[-1]
    assert "\x1b" not in named


def test_what_a_launch_waits_for_is_shown(run: Run, yaml: Path, controller: Lease) -> None:
    run("apply", yaml)
    operations.hold(acts.operation_of(acts.pending(acts.service())).pk, "one of 4 launches in flight to be done")
    assert "waits for one of 4 launches in flight to be done" in run("status", "web").out


def test_services_that_are_down_are_hidden_unless_asked_for(run: Run, yaml: Path, controller: Lease) -> None:
    run("apply", yaml)
    run("down", "web")
    acts.report(ServiceStatus.SHUTTING_DOWN, "going down")
    assert "SHUTTING_DOWN" in run("status").out
    acts.report(ServiceStatus.DOWN, "down")
    assert run("status").out.startswith("No service is up.")
    assert "DOWN" in run("status", "--all").out
    assert "0/0" in run("status", "web").out, "none is wanted of it"
    assert json.loads(run("status", "--json").out) == []
    assert json.loads(run("status", "--json", "--all").out)[0]["status"] == "DOWN"


def test_one_that_does_not_become_ready_says_what_its_probe_gets(run: Run, yaml: Path, controller: Lease) -> None:
    run("apply", yaml)
    replica = acts.starting(acts.service())
    assert replicas.note_probe(replica.pk, actor="probe", probe_detail="connection refused", probe_ok=False)
    assert "not ready yet: connection refused" in run("status", "web").out


def numbers(run: Run, *options: str) -> list[int]:
    return [replica["number"] for replica in json.loads(run("status", "web", "--json", *options).out)[0]["replicas"]]


def test_a_failed_replica_is_shown_while_it_is_missed(run: Run, yaml: Path, controller: Lease) -> None:
    run("apply", yaml)
    acts.ready(acts.service())
    acts.fail(acts.ready(acts.service()))
    acts.end(acts.ready(acts.service()))
    assert numbers(run) == [1, 2], "3 was not wanted any more, 2 is missed"
    acts.ready(acts.service())
    assert numbers(run) == [1, 4]
    assert numbers(run, "--all") == [1, 2, 3, 4]


def test_failures_of_older_versions_are_history(run: Run, yaml: Path, controller: Lease) -> None:
    run("apply", yaml)
    acts.fail(acts.starting(acts.service()))
    assert numbers(run) == [1]
    run("restart", "web")
    assert numbers(run) == []


def test_failures_that_were_forgiven_are_history(run: Run, yaml: Path, controller: Lease) -> None:
    run("apply", yaml)
    acts.fail(acts.starting(acts.service()))
    run("down", "web")
    assert numbers(run) == []
    run("apply", yaml)
    assert numbers(run) == []


def test_what_could_not_be_cleaned_up_stays_in_sight(run: Run, yaml: Path, controller: Lease) -> None:
    run("apply", yaml)
    acts.cleanup_failed(acts.ready(acts.service()))
    run("down", "web")
    acts.report(ServiceStatus.FAILED_CLEANUP, "down, but replica 1 could not be cleaned up")
    (row,) = json.loads(run("status", "--json").out)
    assert [replica["state"] for replica in row["replicas"]] == ["FAILED_CLEANUP"]


def test_an_unknown_service(run: Run, yaml: Path, controller: Lease) -> None:
    assert run("status", "web").code == 4
    run("apply", yaml)
    result = run("status", "wbe")
    assert (result.code, result.err) == (4, "Error: There is no service wbe. Did you mean web?\n")
    assert run("status", "zzz").err == (
        "Error: There is no service zzz. `manage.py status --all` lists the services.\n"
    )


def test_says_when_it_may_be_out_of_date(run: Run, yaml: Path) -> None:
    run("apply", yaml)
    assert "this is what was last known" in run("status").err
    assert run("status", "--json").err == ""


def test_watch_shows_each_change_once(run: Run, yaml: Path, controller: Lease, meanwhile: Meanwhile) -> None:
    run("apply", yaml)
    meanwhile(
        lambda: acts.ready(acts.service()), lambda: None, lambda: services.scale(acts.service().pk, 1, actor="ann")
    )
    result = run("status", "--watch")
    assert result.code == 130
    assert result.out.count("CONTROLLER_INIT") == 3
    assert [part in result.out for part in ("0/2", "1/2", "1/1")] == [True] * 3


def test_watch_as_json_is_one_list_on_a_line(run: Run, yaml: Path, controller: Lease, meanwhile: Meanwhile) -> None:
    run("apply", yaml)
    meanwhile(lambda: acts.ready(acts.service()))
    lines = run("status", "web", "--watch", "--json").out.splitlines()
    assert [json.loads(line)[0]["ready"] for line in lines] == [0, 1]


def test_watch_ends_well_for_a_service_that_is_purged(
    run: Run, yaml: Path, controller: Lease, meanwhile: Meanwhile
) -> None:
    run("apply", yaml)

    def purge() -> None:
        services.take_down(acts.service().pk, purge=True, actor="ann")
        services.forget(acts.service().pk, actor="controller")

    meanwhile(purge)
    assert "Service web was purged." in run("status", "web", "--watch").out


def test_the_number_of_queries_does_not_grow(run: Run, yaml: Path) -> None:
    run("apply", yaml)
    for _ in range(3):
        acts.ready(acts.service())
    with CaptureQueriesContext(connection) as few:
        standing()
    run("apply", yaml, "--name", "other")
    for _ in range(10):
        acts.ready(acts.service("other"))
    with CaptureQueriesContext(connection) as many:
        assert sum(len(each.shown) for each in standing()) == 13
    assert len(many) == len(few) <= 4


def test_control_characters_of_others_do_not_reach_the_terminal(run: Run, yaml: Path, controller: Lease) -> None:
    run("apply", yaml)
    acts.report(ServiceStatus.FAILED, "said \x1b[31mred\x07\nand more")
    shown = run("status").out
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "said �[31mred� and more" in shown


def test_a_wrong_command_line(run: Run, controller: Lease) -> None:
    assert run("status", "a", "b").code == 2


def test_colours_when_they_are_forced(run: Run, yaml: Path, controller: Lease) -> None:
    run("apply", yaml)
    acts.ready(acts.service())
    assert "\x1b[32mREADY" in run("status", "web", "--force-color").out
