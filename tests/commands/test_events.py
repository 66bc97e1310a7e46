"""`events`: each once, in order."""

import json
from collections.abc import Callable
from pathlib import Path

from replicas.actions import scaling, services
from replicas.models import Event, Lease
from replicas.web.outbox import event_row
from tests.commands import acts
from tests.commands.conftest import Run

Meanwhile = Callable[..., None]


def ids(text: str) -> list[int]:
    return [int(line.split()[0]) for line in text.splitlines()]


def everything() -> list[int]:
    return list(Event.objects.order_by("id").values_list("id", flat=True))


def test_shows_what_happened_oldest_first(run: Run, yaml: Path, controller: Lease) -> None:
    run("apply", yaml)
    acts.ready(acts.service())
    result = run("events")
    assert result.code == 0
    assert ids(result.out) == everything()
    assert "probe_passed     STARTING → READY  HTTP 200 (probe)" in result.out


def test_decisions_of_the_autoscaler_are_among_them_with_their_reason(run: Run, yaml: Path, controller: Lease) -> None:
    run("apply", yaml)
    service = acts.service()
    made = {"reason": "from 1 to 4: a burst", "memory": {}, "inputs": {"qps": 7.5}, "actor": "autoscaler"}
    assert scaling.autoscale(service.pk, service.target + 3, base=service.target, **made)
    assert "from 1 to 4: a burst (autoscaler)" in run("events", "web").out
    rows = [json.loads(line) for line in run("events", "web", "--json").out.splitlines()]
    (told,) = [row for row in rows if row["kind"] == "decision"]
    assert told["data"]["inputs"] == {"qps": 7.5}


def test_of_one_service(run: Run, yaml: Path, controller: Lease) -> None:
    run("apply", yaml)
    run("apply", yaml, "--name", "other")
    shown = run("events", "other").out
    assert "other v1" in shown
    assert "web" not in shown
    assert run("events", "wbe").code == 4


def test_of_a_service_that_was_purged(run: Run, yaml: Path, controller: Lease) -> None:
    run("apply", yaml)
    services.take_down(acts.service().pk, purge=True, actor="ann")
    services.forget(acts.service().pk, actor="controller")
    assert "forgotten" in run("events", "web").out


def test_limits_and_cursors(run: Run, yaml: Path, controller: Lease) -> None:
    run("apply", yaml)
    for target in range(60):
        run("scale", "web", target)
    all_of_them = everything()
    assert ids(run("events").out) == all_of_them[-50:]
    assert ids(run("events", "--limit", 3).out) == all_of_them[-3:]
    assert ids(run("events", "--limit", 0).out) == []
    assert ids(run("events", "--after", all_of_them[4]).out) == all_of_them[5:]
    assert ids(run("events", "--after", all_of_them[4], "--limit", 2).out) == all_of_them[5:7]
    assert ids(run("events", "--after", all_of_them[-1]).out) == []
    assert run("events", "--limit", "-1").code == 2


def test_json_is_an_object_on_each_line(run: Run, yaml: Path, controller: Lease) -> None:
    run("apply", yaml)
    rows = [json.loads(line) for line in run("events", "--json").out.splitlines()]
    assert rows == [event_row(event) for event in Event.objects.order_by("id")]
    keys = "id at service kind object_id number revision trigger old new reason actor source address token data"
    assert list(rows[0]) == keys.split()


def test_follows_without_a_gap_and_without_doubles(
    run: Run, yaml: Path, controller: Lease, meanwhile: Meanwhile
) -> None:
    run("apply", yaml)
    meanwhile(
        lambda: acts.ready(acts.service()),
        lambda: None,
        lambda: services.scale(acts.service().pk, 7, actor="ann"),
    )
    result = run("events", "--follow")
    assert (result.code, result.err) == (130, "")
    assert ids(result.out) == everything()


def test_follows_from_the_newest_with_no_history(run: Run, yaml: Path, controller: Lease, meanwhile: Meanwhile) -> None:
    run("apply", yaml)
    before = everything()
    meanwhile(lambda: services.scale(acts.service().pk, 7, actor="ann"))
    assert ids(run("events", "web", "--follow", "--limit", 0).out) == everything()[len(before) :]


def test_follows_after_a_cursor(run: Run, yaml: Path, controller: Lease, meanwhile: Meanwhile) -> None:
    run("apply", yaml)
    meanwhile(lambda: services.scale(acts.service().pk, 7, actor="ann"))
    first = everything()[0]
    assert ids(run("events", "--follow", "--after", first).out) == everything()[1:]


def test_reasons_cannot_move_the_cursor_of_a_terminal(run: Run, yaml: Path, controller: Lease) -> None:
    run("apply", yaml, "--message", "\x1b[2Jgone\nnext line")
    shown = run("events").out
    assert "\x1b" not in shown
    assert "�[2Jgone next line" in shown
