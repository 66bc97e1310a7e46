"""`setup`: once for a version and host, waited for by many, shown to each, ended when nobody waits."""

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from replicas.providers import procs
from replicas.providers.base import Gone, LaunchOrder, ProviderError, Waiting
from replicas.providers.control import Control
from replicas.providers.local import LocalProvider
from tests.providers.cast import Cast, again, eventually
from tests.support.patience import within

GRACE = timedelta(seconds=5)
PLAIN = "test -n $VIRTUAL_ENV"  # a setup that is quick

# A worker as a process of its own: it takes one launch to its end and prints the handle.
WORKER = """
import json, sys
from pathlib import Path
from tests.providers.cast import Cast
from replicas.providers.local import LocalProvider
home, logs, uid, spec = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4])
cast = Cast(LocalProvider(home), home, logs)
print(json.dumps(cast.launch(cast.order(uid, **spec)).handle))
"""


def setup_of(cast: Cast, version: str = "v1", number: int = 1) -> Control:
    """The control directory of a version's setup."""
    return Control(cast.home / "versions" / version / "setup" / str(number))


def first_step(cast: Cast, order: LaunchOrder) -> Waiting:
    """The step that starts the setup, or joins it."""
    step = cast.provider.launch(order, None)
    assert isinstance(step, Waiting)
    return step


def test_the_step_that_starts_it_does_not_wait_for_it(local: Cast) -> None:
    with within(5):
        step = first_step(local, local.order(setup="sleep 1000"))
    assert step.reason == "setup to be done"
    assert step.seconds <= 1
    assert step.watch is not None
    assert procs.alive(*step.watch)
    assert step.watch == setup_of(local).running().shim  # type: ignore[union-attr]


def test_four_processes_launch_at_once_and_it_runs_once(local: Cast, tmp_path: Path) -> None:
    count = tmp_path / "count"
    spec = {"setup": f"echo x >> {count}; echo setting up; sleep 0.5; echo set up", "run": "cat made; sleep 1000"}
    spec["setup"] += "; echo from setup > made"

    def work(uid: str) -> Any:
        command = [sys.executable, "-c", WORKER, str(local.home), str(local.logs), uid, json.dumps(spec)]
        seen = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert seen.returncode == 0, seen.stderr
        return json.loads(seen.stdout)

    with ThreadPoolExecutor(4) as pool:
        handles = list(pool.map(work, ["a", "b", "c", "d"]))
    assert count.read_text() == "x\n"
    assert len({handle["pid"] for handle in handles}) == 4
    for uid, handle in zip("abcd", handles, strict=True):
        local.printed(handle, b"from setup")
        log = (local.logs / f"{uid}.log").read_text()
        assert log.count("setting up\nset up\n") == 1 or "was done before" in log
    assert sum("setting up\nset up\n" in (local.logs / f"{uid}.log").read_text() for uid in "abcd") >= 1


def test_what_it_prints_is_shown_in_pieces_to_each_who_waits(local: Cast, tmp_path: Path) -> None:
    go = tmp_path / "go"
    setup = f"echo first; while [ ! -e {go} ]; do sleep 0.02; done; echo second"
    one, two = local.order("r1", setup=setup), local.order("r2", setup=setup, number=2)
    checkpoints: dict[str, Any] = {}
    for order in (one, two):
        step = first_step(local, order)

        def shown(order: LaunchOrder = order, step: Waiting = step) -> bool:
            checkpoint = checkpoints.get(order.replica_uid, step.checkpoint)
            again = local.provider.launch(order, checkpoint)
            assert isinstance(again, Waiting)
            checkpoints[order.replica_uid] = again.checkpoint
            return order.log.exists() and "first" in order.log.read_text()

        eventually(shown)
    go.touch()
    eventually(lambda: setup_of(local).record())
    for order in (one, two):
        local.provider.launch(order, checkpoints[order.replica_uid])
        assert local.log(order).startswith("first\nsecond\nsetup is done")


def test_what_it_wrote_in_workdir_and_home_is_there_for_the_replica(local: Cast, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "model.txt").write_text("weights")
    order = local.order(
        workdir=str(tmp_path / "project"),
        setup="tr a-z A-Z < model.txt > upper.txt; echo home > ~/at-home",
        run="cat upper.txt ~/at-home; pwd; ls; sleep 1000",
    )
    launched = local.launch(order)
    shown = local.printed(launched.handle, b"upper.txt").decode()
    assert "WEIGHTS" in shown
    assert "home\n" in shown
    assert str(local.home / "replicas" / "r1" / "home" / "sky_workdir") in shown
    assert sorted(each.name for each in (tmp_path / "project").iterdir()) == ["model.txt"], (
        "the user's own is untouched"
    )


def test_replicas_do_not_see_what_others_write(local: Cast) -> None:
    one = local.order("r1", setup=PLAIN, run="echo mine > file; ls; echo done; sleep 1000")
    two = local.order("r2", setup=PLAIN, run="ls; echo done; sleep 1000")
    local.printed(local.launch(one).handle, b"done")
    assert local.printed(local.launch(two).handle, b"done") == b"done\n"


def test_its_virtual_environment_is_first_and_nobody_elses(local: Cast) -> None:
    order = local.order(
        setup="pip --version && python -c 'import sys; print(sys.prefix)'",
        run="command -v python; python -c 'import sys; print(sys.prefix)'; echo end; sleep 1000",
    )
    launched = local.launch(order)
    venv = local.home / "versions" / "v1" / "venv"
    assert local.log(order).startswith("pip 2")
    assert str(venv) in local.log(order)
    shown = local.printed(launched.handle, b"end").decode().splitlines()
    assert shown[:2] == [str(venv / "bin" / "python"), str(venv)]


def test_a_failing_setup_fails_every_launch_that_waited_for_it(local: Cast, tmp_path: Path) -> None:
    go = tmp_path / "go"
    setup = f"while [ ! -e {go} ]; do sleep 0.02; done; echo no such package; exit 9"
    orders = [local.order(uid, setup=setup) for uid in ("r1", "r2", "r3")]
    steps = [first_step(local, order) for order in orders]
    go.touch()
    for order, step in zip(orders, steps, strict=True):
        assert step.watch
        procs.wait(*step.watch, 30)
        with pytest.raises(ProviderError, match="setup exited with code 9") as caught:
            local.provider.launch(order, step.checkpoint)
        assert caught.value.user_fault
        assert not caught.value.retryable
        assert caught.value.tail == ("no such package",)
        assert local.log(order).endswith("no such package\n")


def test_after_a_failure_it_runs_again_for_a_new_replica_from_a_clean_start(local: Cast, tmp_path: Path) -> None:
    flag = tmp_path / "repaired"
    setup = f"echo a try; ls; touch made-by-setup; test -e {flag}"
    with pytest.raises(ProviderError, match="setup exited with code 1"):
        local.launch(local.order("r1", setup=setup))
    with pytest.raises(ProviderError, match="setup exited with code 1") as caught:
        local.launch(local.order("r3", setup=setup))
    assert caught.value.tail == ("a try",), "what the one before it wrote is not told again"
    flag.touch()
    order = local.order("r2", setup=setup)
    launched = local.launch(order)
    assert local.provider.inspect(launched.handle).kind == "running"
    assert "made-by-setup" not in local.log(order), "the first try's files are gone"


def test_secrets_are_masked_in_its_output(local: Cast) -> None:
    order = local.order(setup="echo $KEY", secrets={"KEY": "s3cr3t-v4lue"})
    local.launch(order)
    assert local.log(order).startswith("******\n")
    assert "s3cr3t" not in (local.home / "versions" / "v1" / "setup.log").read_text()


def test_a_killed_shim_is_noticed_and_it_runs_again(local: Cast) -> None:
    order = local.order(setup="echo begun; sleep 1000")
    step = first_step(local, order)
    assert step.watch
    below = eventually(lambda: procs.carrying({"ROLLCALL_SETUP_VERSION": "v1", "ROLLCALL_HOME": str(local.home)}))
    procs.send(*step.watch, signal.SIGKILL)
    procs.wait(*step.watch, 10)
    second = local.provider.launch(order, step.checkpoint)
    assert isinstance(second, Waiting)
    assert second.checkpoint["setup"] == 2
    assert not [process for process in below if procs.alive(*process)], "what the first try left is ended"


def test_a_shim_that_is_killed_again_and_again_fails_the_launch(local: Cast) -> None:
    order = local.order(setup="sleep 1000")
    step: Any = first_step(local, order)
    with pytest.raises(ProviderError, match="killed 4 times") as caught:
        for _ in range(10):
            procs.send(*step.watch, signal.SIGKILL)
            procs.wait(*step.watch, 10)
            step = local.provider.launch(order, step.checkpoint)
    assert caught.value.retryable


def test_it_goes_on_while_somebody_waits_and_ends_with_the_last(local: Cast) -> None:
    setup = "echo begun; sleep 1000"
    one, two = local.order("r1", setup=setup), local.order("r2", setup=setup, number=2)
    step = first_step(local, one)
    first_step(local, two)
    assert step.watch
    assert isinstance(local.provider.down(one, None, GRACE, None), Gone)
    assert procs.alive(*step.watch)
    local.down(two, None)
    assert not procs.alive(*step.watch)
    eventually(lambda: local.everyone() == [])


def test_a_setup_that_ignores_its_end_is_killed_and_the_down_waits_for_it(local: Cast) -> None:
    order = local.order(setup="trap '' TERM; echo deaf; while :; do sleep 0.1; done")
    step = first_step(local, order)
    log = local.home / "versions" / "v1" / "setup.log"
    eventually(lambda: log.exists() and "deaf" in log.read_text())
    assert isinstance(local.provider.down(order, None, timedelta(seconds=0.3), None), Waiting)
    local.down(order, None, grace=0.3)
    assert step.watch
    assert not procs.alive(*step.watch)
    assert local.everyone() == []


def test_a_launch_that_comes_while_an_abandoned_setup_ends_gets_a_new_one(local: Cast) -> None:
    setup = "trap 'sleep 0.5; exit 1' TERM; echo begun; while :; do sleep 0.05; done"
    one, two = local.order("r1", setup=setup), local.order("r2", setup=setup)
    first_step(local, one)
    log = local.home / "versions" / "v1" / "setup.log"
    eventually(lambda: log.exists() and "begun" in log.read_text())
    assert isinstance(local.provider.down(one, None, GRACE, None), Waiting)
    step = first_step(local, two)
    assert "earlier setup to end" in step.reason
    assert step.watch
    procs.wait(*step.watch, 20)
    second = local.provider.launch(two, step.checkpoint)
    assert isinstance(second, Waiting)
    assert second.checkpoint["setup"] == 2


def test_a_worker_that_dies_right_after_the_start_loses_nothing(local: Cast) -> None:
    order = local.order(setup="sleep 0.5")
    first_step(local, order)
    other = Cast(LocalProvider(local.home), local.home, local.logs)
    launched = other.launch(order)
    assert other.provider.inspect(launched.handle).kind == "running"
    assert not setup_of(local, number=2).directory.exists()


def test_its_processes_are_marked_by_the_version_and_not_by_a_replica(local: Cast) -> None:
    first_step(local, local.order(setup="exec sleep 1000"))
    home = {"ROLLCALL_HOME": str(local.home)}
    eventually(lambda: procs.carrying({**home, "ROLLCALL_SETUP_VERSION": "v1"}))
    assert procs.carrying({**home, "ROLLCALL_REPLICA_UID": "r1"}) == []


def test_for_every_replica_it_runs_in_the_replicas_own_place(local: Cast, tmp_path: Path) -> None:
    setup = "echo set up $SKYPILOT_SERVE_REPLICA_ID; echo $SKYPILOT_SERVE_REPLICA_ID > number; echo $VIRTUAL_ENV"
    launched = []
    for number, uid in enumerate(("r1", "r2"), start=1):
        order = local.order(uid, number=number, setup=setup, setup_scope="replica", run="cat number; sleep 1000")
        launched.append(local.launch(order))
        assert f"set up {number}\n{local.home / 'replicas' / uid / 'venv'}\n" in local.log(order)
    assert [local.printed(each.handle, b"\n") for each in launched] == [b"1\n", b"2\n"]
    assert not (local.home / "versions" / "v1" / "setup").exists()


def test_a_down_ends_a_replicas_own_setup(local: Cast) -> None:
    order = local.order(setup="sleep 1000", setup_scope="replica")
    step = first_step(local, order)
    assert step.watch
    local.down(order, None)
    assert not procs.alive(*step.watch)
    assert local.everyone() == []


def test_forgetting_a_version_ends_its_setup_and_removes_all(local: Cast) -> None:
    step = first_step(local, local.order(setup="trap '' TERM; sleep 1000"))
    assert step.watch
    local.provider.forget_version("v1")
    assert not (local.home / "versions" / "v1").exists()
    eventually(lambda: local.everyone() == [])


def test_a_full_order_log_does_not_stop_the_launch(local: Cast) -> None:
    order = again(local.order(setup="echo something"), log=Path("/dev/full"))
    launched = local.launch(order)
    assert local.provider.inspect(launched.handle).kind == "running"


def test_a_venv_without_the_wheels_of_ensurepip_still_works(local: Cast, tmp_path: Path) -> None:
    code = (
        "import sys, runpy, pathlib; sys.path.insert(0, '.'); from replicas.providers import local_venv as v;"
        f" v.bundled = lambda: []; v.make(pathlib.Path({str(tmp_path / 'venv')!r}))"
    )
    env = {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": ""}
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=120)
    assert seen.returncode == 0, seen.stderr
    assert "setup has no pip of its own" in seen.stdout
    assert subprocess.run([tmp_path / "venv" / "bin" / "python", "-c", "pass"]).returncode == 0
