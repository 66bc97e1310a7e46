"""Rollouts by command: held, let go, promoted, given up, turned back; and the history that says so."""

import json
from pathlib import Path
from typing import Any

import pytest

from replicas.actions import rollouts, services
from replicas.core.values import RolloutKind, RolloutMode, RolloutState
from replicas.models import Event, Lease, Rollout, ServiceVersion
from tests.commands import acts
from tests.commands.conftest import TRIVIAL, Run

OTHER = TRIVIAL.replace("exec python3", "exec python3 -u")


def latest() -> Rollout:
    return Rollout.objects.latest("id")


@pytest.fixture
def moving(run: Run, yaml: Path, controller: Lease) -> Rollout:
    """The service web on its way from version 1, which has proved itself, to version 2."""
    run("apply", yaml, "--message", "first")
    for _ in range(2):
        acts.ready(acts.service())
    going = latest()
    assert rollouts.progress(going.pk, going.revision, 2, reason="ready", actor="controller")
    assert rollouts.succeed(going.pk, going.revision + 1, reason="all proved", actor="controller")
    yaml.write_text(OTHER)
    run("apply", yaml, "--message", "unbuffered")
    return latest()


def latest_version() -> ServiceVersion:
    """The active version."""
    version = acts.service().version
    assert version is not None
    return version


def canary(run: Run, yaml: Path) -> None:
    """An update with a canary."""
    yaml.write_text(TRIVIAL.replace("exec python3", "exec python3 -B") + "  rollout:\n    canary: 1\n")
    assert run("apply", yaml).code == 0


def test_pause_and_resume(run: Run, moving: Rollout) -> None:
    paused = run("pause", "web")
    assert (paused.code, paused.err) == (0, "")
    assert paused.out == "web: the update to version 2 (rolling) is paused; `manage.py resume` lets it go on\n"
    assert latest().paused_at is not None
    assert run("pause", "web").code == 0, "once more changes nothing"
    assert Event.objects.filter(trigger="rollout_paused").count() == 1
    assert run("resume", "web").out == "web: the update to version 2 (rolling) goes on\n"
    assert latest().paused_at is None
    assert Event.objects.get(trigger="rollout_resumed").actor.endswith(" (command)")


def test_promote(run: Run, yaml: Path, moving: Rollout) -> None:
    refused = run("promote", "web")
    assert refused.code == 1
    assert "has no canary, so it goes on by itself" in refused.err
    canary(run, yaml)
    assert run("promote", "web").out == "web: the update to version 3 (rolling) is promoted\n"
    assert latest().promoted_at is not None


def test_abort_goes_back_to_what_has_proved_itself(run: Run, moving: Rollout) -> None:
    result = run("abort", "web")
    assert result.code == 0
    assert result.out.startswith("web: version 3 is active: back to version 1: aborted by ")
    moving.refresh_from_db()
    assert moving.state == RolloutState.ABORTED
    assert (latest().kind, latest().to_version, latest().mode) == (RolloutKind.ROLLBACK, 3, RolloutMode.IN_PLACE)
    version = acts.service().version
    assert version is not None
    assert version.text == TRIVIAL


def test_rollback_to_the_last_good_one_or_to_a_named_one(run: Run, moving: Rollout) -> None:
    back = run("rollback", "web", "--message", "it was slow")
    first, *plan = back.out.splitlines()
    assert first == "web: version 3 is active: it was slow"
    assert plan == [f"  {line}" for line in latest_version().plan] != []
    named = run("rollback", "web", 2)
    assert named.out.startswith("web: version 4 is active: back to version 2\n  ")
    assert "target:" not in back.out + named.out
    version = acts.service().version
    assert version is not None
    assert version.text == OTHER
    unknown = run("rollback", "web", 9)
    assert (unknown.code, "has no version 9; its versions are 1 to 4" in unknown.err) == (1, True)
    assert run("rollback", "web", 0).code == 2


def test_a_rollback_says_that_it_changes_how_many_are_wanted(run: Run, yaml: Path, controller: Lease) -> None:
    run("apply", yaml)
    acts.ready(acts.service())
    run("scale", "web", 3)
    yaml.write_text(OTHER)
    run("apply", yaml)
    assert acts.service().target == 2
    assert "\n  target: 2 → 3\n" in run("rollback", "web", 1).out
    assert acts.service().target == 3


@pytest.mark.parametrize("verb", ["pause", "resume", "promote", "abort", "rollback"])
def test_without_a_rollout_or_a_service_it_is_refused(verb: str, run: Run, yaml: Path, controller: Lease) -> None:
    assert run(verb, "nope").code == 4
    run("apply", yaml)
    services.take_down(acts.service().pk, purge=False, actor="ann")
    result = run(verb, "web")
    assert result.code == 1
    assert "web is taken down" in result.err


def test_says_so_when_nobody_carries_it_out(run: Run, moving: Rollout) -> None:
    Lease.objects.all().delete()
    assert "control plane is not running" in run("pause", "web").err


# Status and events say the same


def rollout_of(run: Run) -> dict[str, Any]:
    (row,) = json.loads(run("status", "web", "--json").out)
    found: dict[str, Any] = row["rollout"]
    return found


def test_the_status_tells_of_the_rollout(run: Run, moving: Rollout) -> None:
    found = rollout_of(run)
    assert (found["kind"], found["mode"], found["state"]) == ("update", "rolling", "PROGRESSING")
    assert (found["from_version"], found["to_version"], found["good_version"]) == (1, 2, 1)
    text = run("status", "web").out
    assert "Rollout: the update to version 2 (rolling) PROGRESSING since " in text
    assert "turns back to version 1" in text
    assert "1 → 2" in run("status").out
    rollouts.pause(acts.service().pk, actor="ann")
    assert "(rolling) PAUSED since " in run("status", "web").out
    run("abort", "web")
    text = run("status", "web").out
    assert "Rollout: the rollback as version 3 (in place) PROGRESSING" in text
    assert "turns back to version" not in text


def test_the_status_of_a_rollback_does_not_promise_to_turn_back(run: Run, moving: Rollout) -> None:
    run("rollback", "web", "1")
    text = run("status", "web").out
    assert "Rollout: the rollback as version 3" in text
    assert "turns back to version" not in text


def test_a_failed_rollout_says_why(run: Run, moving: Rollout) -> None:
    assert rollouts.fail(moving.pk, moving.revision, reason="version 2 failed 3 times", actor="controller")
    text = run("status", "web").out
    assert "Rollout: the update to version 2 (rolling) FAILED since 0s; version 2 failed 3 times" in text
    assert rollout_of(run)["reason"] == "version 2 failed 3 times"


def test_events_tell_of_rollouts(run: Run, moving: Rollout) -> None:
    run("pause", "web")
    run("abort", "web")
    lines = run("events", "web").out
    assert "web to v2" in lines
    assert "rollout_paused" in lines
    assert "PROGRESSING → ABORTED" in lines
    rows = [json.loads(line) for line in run("events", "web", "--json").out.splitlines()]
    assert {"rollout_begun", "rollout_paused", "rollout_aborted"} <= {
        row["trigger"] for row in rows if row["kind"] == "rollout"
    }


# The history


def test_the_versions_with_who_when_why_and_what_became_of_them(run: Run, moving: Rollout) -> None:
    text = run("versions", "web").out.splitlines()
    assert text[0].split() == ["VERSION", "ACTIVE", "AGE", "BY", "ROLLOUT", "WHY"]
    assert text[1].split()[:2] == ["2", "yes"]
    assert text[1].endswith("unbuffered")
    assert "SUCCEEDED" in text[2]
    found = json.loads(run("versions", "web", "--json").out)
    assert [(row["version"], row["active"], row["message"]) for row in found] == [
        (2, True, "unbuffered"),
        (1, False, "first"),
    ]
    assert found[0]["plan"][0].startswith("Rolling: 2 replicas of version 2 are launched")
    assert found[1]["rollout"]["reason"] == "all proved"


def test_the_difference_of_two_versions(run: Run, moving: Rollout) -> None:
    text = run("versions", "web", "--diff", 1, 2).out
    assert text.startswith("version 1 → version 2\n  run: ")
    assert "+run: exec python3 -u" in text
    found = json.loads(run("versions", "web", "--diff", 2, 1, "--json").out)
    assert (found["old"], found["new"], len(found["fields"])) == (2, 1, 1)
    assert run("versions", "web", "--diff", 2, 2).out == "Versions 2 and 2 ask for the same.\n"
    missing = run("versions", "web", "--diff", 1, 7)
    assert (missing.code, "has no version 7; its versions are 1 to 2" in missing.err) == (4, True)


def test_messages_cannot_move_the_cursor_of_a_terminal(run: Run, moving: Rollout) -> None:
    run("rollback", "web", 1, "--message", "a\x1b[2Jb\nc")
    for verb in (("versions", "web"), ("status", "web"), ("events", "web")):
        assert "\x1b" not in run(*verb).out


def test_secrets_are_not_in_the_difference(run: Run, yaml: Path, controller: Lease) -> None:
    yaml.write_text(f"secrets:\n  TOKEN:\n{TRIVIAL}")
    run("apply", yaml, "--secret", "TOKEN=first-value-1234")
    run("apply", yaml, "--secret", "TOKEN=second-value-1234")
    text = run("versions", "web", "--diff", 1, 2).out
    assert "secrets.TOKEN: has another value" in text
    assert "-value-1234" not in text
