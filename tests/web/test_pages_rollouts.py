"""Rollouts in the browser: snapshots that tell of them, posts that steer them, and who may do what."""

from typing import Any

import pytest
from django.http import HttpResponse

from replicas.actions import rollouts, services
from replicas.core.values import RolloutKind, RolloutState
from replicas.models import Event, Rollout, Service, ServiceVersion
from tests import cast
from tests.web.people import applied, browser, deployed, text

pytestmark = pytest.mark.django_db


def post(verb: str, data: dict[str, Any] | None = None, role: str = "root") -> HttpResponse:
    """Posted by a script."""
    return browser(role).post(f"/services/web/{verb}", data or {}, headers={"Accept": "application/json"})


def latest() -> Rollout:
    """The newest rollout."""
    return Rollout.objects.latest("id")


def moving(more: str = "") -> Service:
    """The service web on its way from version 1, which has proved itself, to version 2."""
    cast.ready(deployed())
    going = latest()
    assert rollouts.progress(going.pk, going.revision, 1, reason="ready", actor="controller")
    assert rollouts.succeed(going.pk, going.revision + 1, reason="done", actor="controller")
    return applied(text(more=more).replace("server.py", "other.py")).service


def snapshot(path: str = "/services/web/snapshot.json") -> dict[str, Any]:
    """A snapshot as a viewer gets it."""
    found: dict[str, Any] = browser("viewer").get(path).json()
    return found


# What is shown


def test_the_snapshot_has_the_latest_rollout_and_the_versions_that_matter() -> None:
    moving("  rollout:\n    canary: 1\n    progress_deadline_seconds: 90\n")
    found = snapshot()
    assert (found["rollout"]["state"], found["rollout"]["to_version"]) == ("PROGRESSING", 2)
    assert [row["number"] for row in found["versions"]] == [1, 2]
    policy = found["versions"][1]["policy"]
    assert (policy["canary"], policy["progress_deadline"], policy["max_surge"]) == (1, 90, "25%")
    assert found["versions"][0]["policy"]["progress_deadline"] == 1800
    applied(text(replicas=5))
    assert [row["number"] for row in snapshot()["versions"]] == [1, 3], "the one that is left does not matter"


def test_all_services_tell_of_rollouts_that_go_on_only() -> None:
    service = moving()
    assert [row["to_version"] for row in snapshot("/services.json")["rollouts"]] == [2]
    services.take_down(service.pk, purge=False, actor="ann")
    assert snapshot("/services.json")["rollouts"] == []


def test_the_history_tells_what_became_of_each_version() -> None:
    moving()
    found = snapshot("/services/web/versions.json")
    assert {row["to_version"]: row["state"] for row in found["rollouts"]} == {1: "SUCCEEDED", 2: "PROGRESSING"}


def test_the_timeline_tells_of_ends_and_wishes_but_not_of_each_step() -> None:
    service = moving()
    rollouts.pause(service.pk, actor="ann")
    told = [(event["trigger"], event["version"]) for event in snapshot()["events"] if event["kind"] == "rollout"]
    assert told == [("rollout_paused", 2), ("rollout_succeeded", 1)]
    everything = snapshot("/services/web/snapshot.json?events=all")["events"]
    assert {"rollout_begun", "rollout_progressed"} <= {event["trigger"] for event in everything}


# What is done


def test_pause_and_resume_name_the_rollout() -> None:
    moving()
    answer = post("rollout/pause", {"rollout": str(latest().pk)}, "operator")
    undo = {"action": "/services/web/rollout/resume", "fields": {"rollout": latest().pk}}
    assert answer.json() == {"level": "success", "message": "The rollout of web to version 2 is paused.", "undo": undo}
    assert latest().paused_at is not None
    assert post("rollout/resume", role="operator").json()["message"] == "The rollout of web to version 2 goes on."
    assert Event.objects.get(trigger="rollout_resumed").actor == "operator"


@pytest.mark.parametrize("verb", ["pause", "resume", "promote", "abort"])
def test_a_late_click_does_not_meet_another_rollout(verb: str) -> None:
    moving()
    seen = latest().pk
    applied(text(replicas=4).replace("server.py", "third.py"))
    answer = post(f"rollout/{verb}", {"rollout": str(seen)})
    assert answer.status_code == 409
    assert answer.json()["message"].startswith("Another rollout of service web is going on by now, to version 3")
    assert (latest().to_version, latest().paused_at, latest().state) == (3, None, RolloutState.PROGRESSING)


def test_a_double_click_on_abort_goes_back_once() -> None:
    moving()
    seen = str(latest().pk)
    first, second = post("rollout/abort", {"rollout": seen}), post("rollout/abort", {"rollout": seen})
    assert first.json()["message"] == "The rollout of web is given up: it goes back to version 1, as version 3."
    assert second.status_code == 409
    assert Service.objects.get().last_version == 3


def test_promote_takes_a_canary() -> None:
    moving("  rollout:\n    canary: 1\n")
    assert post("rollout/promote").json()["message"] == "Version 2 of web is promoted."
    assert latest().promoted_at is not None
    applied(text(replicas=3))
    refused = post("rollout/promote")
    assert (refused.status_code, "has no canary" in refused.json()["message"]) == (409, True)


def test_what_is_not_a_number_is_refused_with_the_field() -> None:
    moving()
    assert post("rollout/pause", {"rollout": "x"}).json()["message"].startswith("rollout: ")
    assert post("rollback", {"version": "x"}).json()["message"].startswith("version: ")


def test_a_rollback_says_that_it_changes_how_many_are_wanted() -> None:
    service = deployed()
    services.scale(service.pk, 5, actor="ann")
    applied(text().replace("server.py", "other.py"))
    said = post("rollback", {"version": "1", "expected": "2"}).json()["message"]
    assert said == f"web goes back to version 1, as version 3, with 5 replicas instead of {wanted(latest())}."


def wanted(rollout: Rollout) -> int:
    """How many replicas the version that it leaves had wanted."""
    spec = ServiceVersion.objects.get(service=rollout.service, number=rollout.from_version).spec
    found: int = spec["service"]["replicas"]
    return found


def test_rollback_makes_an_old_version_the_next() -> None:
    moving()
    answer = post("rollback", {"version": "1", "message": "it was slow", "expected": "2"})
    assert answer.json() == {"level": "success", "message": "web goes back to version 1, as version 3."}
    version = ServiceVersion.objects.get(number=3)
    assert (version.text, version.message, version.created_by) == (text(), "it was slow", "root")
    assert "In place: 1 replica is adopted by version 3 and goes on as it is; none is replaced." in version.plan
    assert latest().kind == RolloutKind.ROLLBACK
    again = post("rollback", {"version": "1", "expected": "2"})
    assert (again.status_code, "is at version 3 by now, not 2" in again.json()["message"]) == (409, True)
    assert post("rollback", {"version": "9"}).status_code == 409


def test_rollback_is_planned_first() -> None:
    moving()
    plan = snapshot("/services/web/versions/1/plan.json")["plan"]
    assert plan[0] == "The rollout to version 2, which is going on, is superseded."
    assert plan[1] == "In place: 1 replica is adopted by version 3 and goes on as it is; none is replaced."
    assert snapshot("/services/web/versions/2/plan.json")["plan"] == [], "it is the active one"
    assert browser("viewer").get("/services/web/versions/9/plan.json").status_code == 404


def test_a_way_back_without_files_is_refused_before_it_is_asked_for() -> None:
    moving()
    ServiceVersion.objects.filter(number=2).update(spec={**ServiceVersion.objects.get(number=2).spec, "workdir": "/x"})
    post("rollout/abort")
    assert snapshot("/services/web/versions/1/plan.json")["refused"] == "", "its files were kept"
    found = snapshot("/services/web/versions/2/plan.json")
    assert found["plan"] == [], "no plan of what will not be"
    assert found["refused"] == post("rollback", {"version": "2"}).json()["message"]
    assert found["refused"].startswith("The files of version 2 of service web are gone; apply its text again")


def test_the_plan_to_go_back_keeps_a_number_that_was_set_by_hand() -> None:
    service = moving()
    services.scale(service.pk, 6, actor="ann")
    assert any("as 6 are wanted" in line for line in snapshot("/services/web/versions/1/plan.json")["plan"])


@pytest.mark.parametrize(
    ("role", "buttons"),
    [
        ("viewer", set()),
        ("operator", {"rollout-pause", "rollout-abort"}),
        ("deployer", {"rollout-back"}),
        ("root", {"rollout-pause", "rollout-abort", "rollout-back"}),
    ],
)
def test_only_the_buttons_that_one_may_press_are_on_the_page(role: str, buttons: set[str]) -> None:
    moving()
    page = browser(role).get("/services/web/").content.decode()
    assert {each for each in ("rollout-pause", "rollout-abort", "rollout-back") if f'id="{each}"' in page} == buttons
    version = browser(role).get("/services/web/versions/1/").content.decode()
    assert ("dialog-rollback" in version) == (role in {"deployer", "root"})
