"""`prune` and what no row names any more: left by a crash between a version's files and its row, or by a purge."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from replicas.actions import services
from replicas.config import Config
from replicas.jobs import orphans
from replicas.models import Lease
from replicas.providers import locks
from replicas.providers.joblog import append_to
from replicas.providers.local import LocalProvider
from replicas.providers.logtimes import times_of
from replicas.web.intake import propose
from tests.commands import acts
from tests.commands.conftest import TRIVIAL, Run
from tests.providers.cast import Cast

NOTHING = "no row names"


@pytest.fixture
def with_files(yaml: Path, run: Run, config: Config, controller: Lease) -> Path:
    """The file of a service with a workdir, which is applied."""
    (yaml.parent / "app").mkdir()
    yaml.write_text(f"workdir: app\n{TRIVIAL}")
    run("apply", yaml)
    return yaml


@pytest.fixture
def cut_off(with_files: Path, config: Config) -> Path:
    """What an `apply` leaves that is killed between its copy of the files and its row, two hours ago."""
    (with_files.parent / "app" / "new").write_text("new")
    text = with_files.read_text()
    proposal = propose(text, base=str(with_files.parent), files=True)
    left = config.home / "versions" / proposal.draft.uid
    assert (left / "snapshot" / "sky_workdir" / "new").exists()
    age(left)
    return left


@pytest.fixture
def local(config: Config, tmp_path: Path) -> Iterator[Cast]:
    """The local provider on the home of the test."""
    cast = Cast(LocalProvider(config.home), config.home, tmp_path)
    yield cast
    cast.clear()


def age(root: Path, seconds: float = 7200.0) -> None:
    """Make the entries of a directory, and it, that old."""
    then = time.time() - seconds
    for each in [*(root.iterdir() if root.is_dir() else ()), root]:
        os.utime(each, (then, then), follow_symlinks=False)


def test_the_files_of_an_apply_that_was_killed_go(run: Run, cut_off: Path) -> None:
    told = (
        "what no row names any more: the directories of 1 version and 0 replicas, 0 operation logs and 0 access logs."
    )
    assert f"Would remove {told}" in run("prune", "--dry-run").out
    assert cut_off.exists()
    assert f"Removed {told}" in run("prune").out
    assert not cut_off.exists()
    assert cut_off.parent.joinpath(acts.service().version.uid).exists()
    assert NOTHING not in run("prune").out


def test_what_is_younger_than_an_hour_stays(run: Run, cut_off: Path) -> None:
    """Its row may be about to be made."""
    age(cut_off, 3500)
    assert NOTHING not in run("prune").out
    assert cut_off.exists()


@pytest.mark.parametrize("jump", [3 * 3600.0, -3 * 3600.0])
def test_a_clock_that_jumps_makes_nothing_old(
    run: Run, cut_off: Path, monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    """Neither the wall clock, nor the steady one beside it where that was set anew."""
    age(cut_off, 10)
    wall = time.time
    if jump > 0:
        monkeypatch.setattr(orphans.time, "time", lambda: wall() + jump)
    else:
        age(cut_off, jump)  # written before the clock was set back
    assert NOTHING not in run("prune").out
    assert cut_off.exists()


def test_what_a_purge_left_goes(run: Run, with_files: Path, config: Config) -> None:
    """The rows of a purged service go at once; its directories and logs have nobody then who names them."""
    replica = acts.end(acts.ready(acts.service()))
    version = config.home / "versions" / acts.service().version.uid
    log = config.home / "logs" / "operations" / f"{replica.operations.get(kind='LAUNCH').pk}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    append_to(log, "launched")
    directory = config.home / "replicas" / replica.uid
    directory.mkdir(parents=True)
    services.take_down(acts.service().pk, purge=True, actor="ann")
    assert services.forget(acts.service().pk, actor="controller")
    for each in (version, directory, log):
        age(each)
    assert "1 version and 1 replica, 1 operation log and 0 access logs." in run("prune").out
    assert [each.exists() for each in (version, directory, log, times_of(log))] == [False] * 4


def test_access_logs_of_forgotten_services_go_and_those_of_others_stay(run: Run, yaml: Path, config: Config) -> None:
    run("apply", yaml)
    name, directory = acts.service().name, config.home / "logs" / "access"
    directory.mkdir(parents=True)
    logs = {each: directory / each for each in (f"{name}.log", f"{name}.log.1", "gone.log", "gone.log.2", "young.log")}
    for each in (*logs.values(), directory / "notes.txt"):
        each.write_text("{}\n")
        age(each)
    age(logs["young.log"], 10)
    assert "0 operation logs and 2 access logs." in run("prune", "--dry-run").out
    assert "Removed what no row names any more: " in run("prune").out
    left = {each.name for each in directory.iterdir()}
    assert left == {f"{name}.log", f"{name}.log.1", "notes.txt", "young.log"}
    assert NOTHING not in run("prune").out


def test_what_a_row_names_stays_however_old(run: Run, with_files: Path, config: Config) -> None:
    replica = acts.ready(acts.service())
    directories = [config.home / "replicas" / replica.uid, config.home / "versions" / acts.service().version.uid]
    for each in directories:
        each.mkdir(parents=True, exist_ok=True)
        age(each)
    assert NOTHING not in run("prune").out
    assert all(each.exists() for each in directories)


def test_another_home_and_what_is_no_uid_are_not_touched(run: Run, cut_off: Path, config: Config) -> None:
    other = config.home.parent / f"{config.home.name}-other" / "versions" / "v1"
    other.mkdir(parents=True)
    stray = config.home / "versions" / "notes of mine"
    stray.mkdir()
    for each in (other, stray):
        age(each)
    assert "1 version and 0 replicas" in run("prune").out
    assert other.exists()
    assert stray.exists()
    other.rmdir()
    other.parent.rmdir()
    other.parent.parent.rmdir()


def test_nothing_goes_while_something_runs_that_no_row_names(run: Run, cut_off: Path, local: Cast) -> None:
    """Then it is the rows that are missing: they are in another database."""
    order = local.order("r1")
    launched = local.launch(order)
    age(local.home / "replicas" / "r1")
    out = run("prune").out
    assert "Of replica r1 (local) a process runs, and no row names it" in out
    assert "DATABASE_URL" in out
    assert cut_off.exists()
    assert local.provider.inspect(launched.handle).kind == "running"
    local.down(order, launched.handle)
    age(local.home / "replicas" / "r1")
    assert "1 version and 1 replica" in run("prune").out
    assert not (local.home / "replicas" / "r1").exists()


def test_what_is_being_worked_on_after_all_stays(run: Run, cut_off: Path) -> None:
    with locks.held(cut_off / "lock"):
        age(cut_off)
        assert NOTHING not in run("prune").out
    assert cut_off.exists()
