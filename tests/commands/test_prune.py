"""`prune`: what is old goes, with its files; what is needed stays."""

from datetime import timedelta
from pathlib import Path

import pytest

from replicas import clock
from replicas.config import Config
from replicas.models import Event, Lease, Operation, Replica, Service
from replicas.providers import joblog
from tests.commands import acts
from tests.commands.conftest import TRIVIAL, Run


@pytest.fixture
def history(run: Run, yaml: Path, config: Config, controller: Lease) -> Replica:
    """A service that is down, with a replica that ended ten days ago, its directory and its logs."""
    run("apply", yaml)
    replica = acts.end(acts.ready(acts.service()))
    run("down", "web")
    then = clock.now() - timedelta(days=10)
    Replica.objects.update(ended_at=then)
    Operation.objects.update(ended_at=then)
    Event.objects.update(at=then)
    for operation in Operation.objects.all():
        acts.say(operation, "log\n")
        joblog.append_to(Path(operation.log), "with its time")
    (config.home / "replicas" / replica.uid).mkdir()
    return replica


def test_removes_what_is_old(run: Run, history: Replica, config: Config) -> None:
    result = run("prune")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("Removed 1 ended replica, ")
    assert "older than 7 days" in result.out
    assert (Replica.objects.count(), Operation.objects.count()) == (0, 0)
    assert list(Event.objects.values_list("kind", flat=True)) == ["pruning"]  # who did that stays
    assert list((config.home / "logs" / "operations").iterdir()) == []
    assert Service.objects.count() == 1


def test_dry_run_counts_the_same_and_removes_nothing(run: Run, history: Replica, config: Config) -> None:
    before = (Replica.objects.count(), Operation.objects.count(), Event.objects.count())
    told = run("prune", "--dry-run").out
    assert told.startswith("Would remove 1 ended replica, 0 settled operations and ")
    assert (Replica.objects.count(), Operation.objects.count(), Event.objects.count()) == before
    assert len(list((config.home / "logs" / "operations").iterdir())) == 4  # two logs and their times
    assert run("prune").out == told.replace("Would remove", "Removed")


def test_keeps_what_is_younger(run: Run, history: Replica) -> None:
    assert run("prune", "--days", 11).out.startswith("Removed 0 ended replicas, 0 settled operations and 0 events")
    assert Replica.objects.count() == 1
    assert run("prune", "--days", 9.5).out.startswith("Removed 1 ended replica")


def test_removes_the_files_of_versions_that_nothing_uses(
    run: Run, yaml: Path, config: Config, controller: Lease
) -> None:
    (yaml.parent / "app").mkdir()
    yaml.write_text(f"workdir: app\n{TRIVIAL}")
    run("apply", yaml)
    first = acts.service().version.uid
    (yaml.parent / "app" / "new").write_text("new")
    run("apply", yaml)
    second = acts.service().version.uid
    assert "the files of 1 unused version." in run("prune", "--dry-run").out
    assert "the files of 1 unused version." in run("prune").out
    assert not (config.home / "versions" / first).exists()
    assert (config.home / "versions" / second).exists()


@pytest.mark.parametrize("wrong", ["-1", "x", "nan", "inf", "99999999"])
def test_a_wrong_command_line(run: Run, controller: Lease, wrong: str) -> None:
    assert run("prune", "--days", wrong).code == 2
