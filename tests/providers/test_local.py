"""The local provider: replicas that survive, are adopted, end whole, and never cost a stranger its life."""

import json
import os
import signal
import subprocess
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from replicas.providers import procs
from replicas.providers.base import Gone, ProviderError, Waiting
from replicas.providers.local import LocalProvider
from tests.providers.cast import SERVER, Cast, eventually, owner_is_root
from tests.providers.test_ports import listen
from tests.support import trees
from tests.support.patience import within

GRACE = timedelta(seconds=5)
DEAF = "trap '' TERM; echo deaf; while :; do sleep 0.1; done"


def twin(cast: Cast, home: Path | None = None) -> Cast:
    """Another process's provider over the same home, or over another."""
    home = home or cast.home
    return Cast(LocalProvider(home), home, cast.logs)


def answer(url: str) -> int:
    """The status of a GET, 0 while nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return int(response.status)
    except OSError:
        return 0


def test_a_server_answers_at_the_url_until_it_is_taken_down(local: Cast) -> None:
    order = local.order(run=SERVER)
    launched = local.launch(order)
    eventually(lambda: answer(launched.url) == 200)
    assert local.down(order, launched.handle).detail == "ended by signal 15 (SIGTERM) when asked to end"
    assert answer(launched.url) == 0
    assert local.everyone() == []


def test_what_is_launched_is_told(local: Cast) -> None:
    order = local.order()
    launched = local.launch(order)
    assert launched.pid is not None
    assert launched.run_log == local.home / "replicas" / "r1" / "run.log"
    # The shell makes way for a simple command.
    eventually(lambda: Path(f"/proc/{launched.pid}/cmdline").read_bytes() == b"sleep\x001000\x00")
    assert f"run started as process {launched.pid}, its port is {launched.handle['port']}" in local.log(order)


@pytest.mark.parametrize(
    ("run", "code", "detail"),
    [
        ("echo last words; exit 0", 0, "exited with code 0"),
        ("echo last words; exit 7", 7, "exited with code 7"),
        ("echo last words; kill -SEGV $$", 139, "ended by signal 11 (SIGSEGV)"),
        ("echo last words; kill -KILL $$", 137, "ended by signal 9 (SIGKILL)"),
        ("echo last words; kill -40 $$", 168, "ended by signal 40"),
    ],
)
def test_an_exit_is_told_with_code_and_last_words(local: Cast, run: str, code: int, detail: str) -> None:
    launched = local.launch(local.order(run=run))
    seen = local.exited(launched.handle)
    assert (seen.kind, seen.code, seen.detail, seen.tail) == ("exited", code, detail, ("last words",))


def test_what_a_replica_uses_is_measured_with_its_children(local: Cast) -> None:
    hungry = (
        "import time; x = bytearray(80 << 20); end = time.process_time() + 1\nwhile time.process_time() < end: pass"
    )
    greedy = local.launch(local.order("greedy", run=f"python3 -c '{hungry}\ntime.sleep(1000)' & wait"))
    modest = local.launch(local.order("modest"))
    ended = local.launch(local.order("ended", run="exit 0"))
    local.exited(ended.handle)

    def measured() -> bool:
        much, little, none = local.provider.usage([greedy.handle, modest.handle, ended.handle])
        assert none is None
        return much.cpu_seconds >= 1 > little.cpu_seconds and much.memory > 80 << 20 > little.memory > 0

    eventually(measured)


def test_the_watched_process_ends_when_there_is_news(local: Cast) -> None:
    launched = local.launch(local.order(run="sleep 0.3; exit 7"))
    watch = local.provider.watch(launched.handle)
    assert not procs.wait(*watch, 0)
    assert procs.wait(*watch, 30)
    assert local.provider.inspect(launched.handle).code == 7
    assert local.provider.watch(launched.handle) == watch, "whoever comes later is told at once that there is news"


def test_who_ignores_the_end_is_killed_after_the_grace(local: Cast) -> None:
    order = local.order(run=DEAF)
    launched = local.launch(order)
    local.printed(launched.handle, b"deaf")
    step = local.provider.down(order, launched.handle, timedelta(seconds=0.5), None)
    assert isinstance(step, Waiting)
    assert step.watch == local.provider.watch(launched.handle)
    assert "more to end" in step.reason
    assert local.down(order, launched.handle, grace=0.5).detail == "killed: it did not end within its grace"
    assert local.everyone() == []


def test_a_shorter_grace_in_a_later_step_counts(local: Cast) -> None:
    order = local.order(run=DEAF)
    launched = local.launch(order)
    local.printed(launched.handle, b"deaf")
    step = local.provider.down(order, launched.handle, timedelta(seconds=1000), None)
    assert isinstance(step, Waiting)
    with within(20):
        local.provider.down(order, launched.handle, timedelta(seconds=0.2), step.checkpoint)
        local.down(order, launched.handle, grace=0.2)


def test_a_down_without_grace_is_one_step(local: Cast) -> None:
    order = local.order()
    launched = local.launch(order)
    local.down(order, launched.handle, grace=0)
    assert len(local.steps) <= 1


def test_a_stranger_with_the_recycled_pid_of_a_shim_is_never_signalled(local: Cast) -> None:
    stranger = subprocess.Popen(["/bin/sleep", "1000"])
    try:
        process = procs.identify(stranger.pid)
        assert process is not None
        order = local.order()
        launched = local.launch(order)
        local.down(order, launched.handle)
        stale = {**launched.handle, "shim_pid": process.pid, "shim_start": process.start - 1}
        assert local.provider.inspect(stale).kind == "gone"
        assert isinstance(local.provider.down(order, stale, timedelta(0), None), Gone)
        time.sleep(0.05)  # a signal would have had its effect by now; there is nothing to ask for
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_many_launches_at_once_have_ports_of_their_own(local: Cast) -> None:
    with ThreadPoolExecutor(8) as pool:
        launched = list(pool.map(lambda uid: local.launch(local.order(uid)), [f"r{n}" for n in range(16)]))
    assert len({each.url for each in launched}) == 16


def test_two_homes_on_one_machine_do_not_take_each_others_ports(local: Cast, tmp_path: Path) -> None:
    other = twin(local, tmp_path / "other")
    try:
        narrow = {"replica_port_first": 19990, "replica_port_last": 19993}
        for cast in (local, other):
            object.__setattr__(cast.provider._config, "replica_port_first", narrow["replica_port_first"])
            object.__setattr__(cast.provider._config, "replica_port_last", narrow["replica_port_last"])
        urls = {cast.launch(cast.order(uid)).url for cast in (local, other) for uid in ("a", "b")}
        assert len(urls) == 4
        with pytest.raises(ProviderError, match="No free port"):
            other.launch(other.order("c"))
        local.down(local.order("a"), None)
        assert other.launch(other.order("c")).url in urls
    finally:
        other.clear()


def test_one_home_does_not_end_the_replicas_of_another_with_the_same_uid(local: Cast, tmp_path: Path) -> None:
    other = twin(local, tmp_path / "other")
    try:
        mine, others = local.launch(local.order()), other.launch(other.order())
        procs.send(*local.provider.watch(mine.handle), signal.SIGKILL)  # so that the down has to search
        local.down(local.order(), mine.handle)
        assert other.provider.inspect(others.handle).kind == "running"
    finally:
        other.clear()


def test_a_port_that_is_taken_by_others_is_passed_over(local: Cast) -> None:
    order = local.order()
    launched = local.launch(order)
    port = launched.handle["port"]
    local.down(order, launched.handle)
    with closing(listen(port)):
        second = local.launch(order)
        assert second.handle["port"] != port


def test_a_port_that_run_names_itself_is_given_when_it_is_free(local: Cast) -> None:
    port = 19900 + os.getpid() % 80
    run = f"exec /usr/bin/python3 -m http.server {port} --bind 127.0.0.1"
    fields: dict[str, Any] = {"run": run, "resources": {"ports": [str(port)]}, "service": {"replicas": 1}}
    launched = local.launch(local.order("r1", **fields))
    assert launched.url == f"http://127.0.0.1:{port}"
    eventually(lambda: answer(launched.url) == 200)
    with pytest.raises(ProviderError, match=rf"Port {port}, which `run` asks for by number, is in use.*\$PORT"):
        local.launch(local.order("r2", number=2, **fields))


def test_the_log_is_read_by_offset_and_outlives_the_replica(local: Cast) -> None:
    order = local.order(run="echo one; echo two; exit 0")
    launched = local.launch(order)
    local.exited(launched.handle)
    first, offset = local.provider.read_log(launched.handle, 0, 4)
    assert (first, offset) == (b"one\n", 4)
    assert local.provider.read_log(launched.handle, offset, 100) == (b"two\n", 8)
    local.down(order, launched.handle)
    assert local.run_log(launched.handle) == b"one\ntwo\n"
    local.provider.forget_replica("r1")
    assert local.run_log(launched.handle) == b""
    assert not (local.home / "replicas" / "r1").exists()


def test_a_replica_that_runs_is_not_forgotten(local: Cast) -> None:
    launched = local.launch(local.order())
    with pytest.raises(ProviderError, match="still runs"):
        local.provider.forget_replica("r1")
    assert local.provider.inspect(launched.handle).kind == "running"


def test_a_down_removes_the_copy_of_the_workdir(local: Cast, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "file").write_text("x")
    order = local.order(workdir=str(tmp_path / "project"), run="mkdir -m 0500 locked; cat file; sleep 1000")
    launched = local.launch(order)
    local.printed(launched.handle, b"x")
    local.down(order, launched.handle)
    left = sorted(each.name for each in (local.home / "replicas" / "r1").iterdir())
    assert left == ["lock", "run.log", "run.log.times"]
    assert (local.home / "versions" / "v1" / "snapshot").is_dir()
    local.provider.forget_version("v1")
    assert list((local.home / "versions").iterdir()) == []


def test_a_missing_workdir_fails_for_good_and_leaves_nothing(local: Cast) -> None:
    with pytest.raises(ProviderError, match="workdir: /no/such/dir does not exist") as caught:
        local.launch(local.order(workdir="/no/such/dir"))
    assert not caught.value.retryable
    assert not caught.value.user_fault
    assert local.provider.find("r1") is None
    assert local.everyone() == []


def test_a_full_disk_fails_for_now_and_starts_nothing(local: Cast, tmp_path: Path) -> None:
    if not owner_is_root():
        pytest.skip("a small file system can only be mounted by root")
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("this machine mounts no tmpfs")
    small = twin(local, disk)
    try:
        (disk / "filler").write_bytes(b"x" * 60_000)
        subprocess.run(["dd", "if=/dev/zero", f"of={disk / 'more'}"], capture_output=True)
        with pytest.raises(ProviderError, match="disk") as caught:
            small.launch(small.order())
        assert caught.value.retryable
        assert small.everyone() == []
        (disk / "more").unlink()
        (disk / "filler").unlink()
        launched = small.launch(small.order())
        assert small.provider.inspect(launched.handle).kind == "running"
    finally:
        small.clear()
        subprocess.run(["umount", "-l", disk], check=True)


def test_memory_above_the_limit_ends_the_replica_with_that_reason(local: Cast) -> None:
    run = "/usr/bin/python3 -c 'x = bytearray(300 << 20); print(len(x))'; exit $?"
    order = local.order(run=run, resources={"memory": "64MB"})
    launched = local.launch(order)
    seen = local.exited(launched.handle)
    if "no limit of memory" in local.log(order):
        assert seen.code == 0
        pytest.skip("this machine lets us set no limits")
    assert seen.code == 137
    assert "more memory than resources.memory" in seen.detail


def test_a_home_may_have_blanks_and_be_named_from_here(local: Cast, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    other = Cast(LocalProvider(Path("a home")), tmp_path / "a home", local.logs)
    try:
        launched = other.launch(other.order(run="pwd; sleep 1000"))
        shown = other.printed(launched.handle, b"\n")
        assert shown.decode() == f"{tmp_path}/a home/replicas/r1/home/sky_workdir\n"
    finally:
        other.clear()


def test_handles_are_small_and_hold_no_secret(local: Cast) -> None:
    launched = local.launch(local.order(secrets={"KEY": "s3cr3t-v4lue"}))
    text = json.dumps(launched.handle)
    assert len(text) < 1000
    assert "s3cr3t" not in text
    assert not [path for path, content in trees.contents(local.home) if b"s3cr3t" in content]


def test_what_lives_is_told_and_what_is_not_ours_is_not(local: Cast) -> None:
    order = local.order(setup="sleep 1000")
    assert isinstance(local.provider.launch(order, None), Waiting)
    local.launch(local.order("r2", version_uid="v2"))
    (local.home / "replicas" / "no uid").mkdir()
    (local.home / "versions" / "file").touch()
    found = {(each.kind, each.uid): each.live for each in local.provider.kept()}
    assert found.pop(("replica", "r1")) is False  # it waits for the setup, which is the version's
    assert found == {("replica", "r2"): True, ("version", "v1"): True}
    local.down(order)
    local.down(local.order("r2", version_uid="v2"))
