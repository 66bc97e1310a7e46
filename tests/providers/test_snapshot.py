"""The snapshot of a version: what is copied, what is left out, what is refused, and nothing half-made."""

import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from replicas.providers import local_snapshot, locks, trees
from replicas.providers.base import ProviderError
from replicas.providers.local_snapshot import Snapshots, copy_home, mount_place
from tests.providers.cast import Cast, owner_is_root


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    """A small project."""
    root = tmp_path / "project"
    (root / "app").mkdir(parents=True)
    (root / "app" / "main.py").write_text("print('hello')\n")
    (root / "weights.bin").write_bytes(b"\0" * 5000)
    (root / ".git" / "objects").mkdir(parents=True)
    (root / "current").symlink_to("app")
    return root


def names(home: Path, uid: str = "v1") -> list[str]:
    """What the snapshot of a version holds."""
    root = home / "versions" / uid / "snapshot"
    return sorted(str(each.relative_to(root)) for each in root.rglob("*"))


def test_a_spec_with_nothing_to_copy_has_no_snapshot(tmp_path: Path) -> None:
    assert Snapshots(tmp_path).digest("v1", {"run": "x"}) is None
    assert list(tmp_path.iterdir()) == []


def test_the_workdir_is_copied_once_for_a_version(local: Cast, workdir: Path) -> None:
    spec = {"workdir": str(workdir)}
    digest = local.provider.snapshot("v1", spec)
    assert names(local.home) == [
        "sky_workdir",
        *(f"sky_workdir/{each}" for each in ("app", "app/main.py", "current", "weights.bin")),
    ]
    (workdir / "app" / "main.py").write_text("print('changed')\n")
    assert local.provider.snapshot("v1", spec) == digest
    assert "hello" in (local.home / "versions/v1/snapshot/sky_workdir/app/main.py").read_text()
    assert local.provider.snapshot("v2", spec) != digest


def test_equal_contents_have_equal_digests(local: Cast, workdir: Path, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere"
    shutil.copytree(workdir, copy, symlinks=True)
    digests = {local.provider.snapshot(uid, {"workdir": str(each)}) for uid, each in (("a", workdir), ("b", copy))}
    assert len(digests) == 1


def test_the_home_itself_is_left_out(tmp_path: Path, workdir: Path) -> None:
    home = workdir / "var"
    home.mkdir()
    (home / "database").write_text("rows")
    Snapshots(home).digest("v1", {"workdir": str(workdir)})
    assert "sky_workdir/app/main.py" in names(home)
    assert not [name for name in names(home) if "var" in name]


def test_skyignore_names_what_is_left_out(local: Cast, workdir: Path) -> None:
    (workdir / "build" / "deep").mkdir(parents=True)
    (workdir / "build" / "deep" / "x.o").touch()
    (workdir / "app" / "notes.tmp").touch()
    (workdir / "app" / "build").touch()
    (workdir / ".skyignore").write_text("# what is not needed\n\n*.tmp\nbuild/\n/weights.bin\napp/none\n")
    local.provider.snapshot("v1", {"workdir": str(workdir)})
    kept = ["", "/.skyignore", "/app", "/app/build", "/app/main.py", "/current"]
    assert names(local.home) == [f"sky_workdir{each}" for each in kept]


def test_a_skyignore_that_is_not_understood_is_refused(local: Cast, workdir: Path) -> None:
    (workdir / ".skyignore").write_text("*.bin\n!weights.bin\n")
    with pytest.raises(ProviderError, match="begin with !"):
        local.provider.snapshot("v1", {"workdir": str(workdir)})
    assert_nothing_half_made(local.home)


def test_file_mounts_lie_in_the_workdir_or_in_home(local: Cast, workdir: Path, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("a,b\n")
    mounts = {
        "data/table.csv": str(tmp_path / "table.csv"),
        "~/models": str(workdir / "app"),
        "app": str(workdir / "app"),
    }
    local.provider.snapshot("v1", {"workdir": str(workdir), "file_mounts": mounts})
    assert {"models/main.py", "sky_workdir/data/table.csv", "sky_workdir/app/main.py"} <= set(names(local.home))


def test_mounts_alone_have_a_digest_too(local: Cast, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("a,b\n")
    spec = {"file_mounts": {"table.csv": str(tmp_path / "table.csv")}}
    first = local.provider.snapshot("v1", spec)
    (tmp_path / "table.csv").write_text("a,c\n")
    assert first != local.provider.snapshot("v2", spec)


@pytest.mark.parametrize("target", ["/data", "../../x", "~/../x", "a/../../../x", "~/", "~/.", "/"])
def test_a_mount_does_not_leave_the_replica(target: str) -> None:
    assert mount_place(Path("/home-of-a-replica"), target) is None


@pytest.mark.parametrize(
    ("target", "place"), [("~/a", "a"), ("a/b", "sky_workdir/a/b"), ("./a/../b", "sky_workdir/b"), ("../c", "c")]
)
def test_where_a_mount_lies(target: str, place: str) -> None:
    assert mount_place(Path("/h"), target) == Path("/h") / place


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"workdir": "/no/such/place"}, "workdir: /no/such/place does not exist"),
        ({"workdir": "/etc/hostname"}, "workdir: /etc/hostname is not a directory"),
        ({"workdir": "relative/path"}, "workdir: relative/path is not an absolute path"),
        ({"workdir": {"url": "https://example.com/x.git"}}, "workdir: the local provider copies local paths only"),
        ({"file_mounts": {"a": "/no/such/file"}}, "file_mounts: a: /no/such/file does not exist"),
        ({"file_mounts": {"/etc/x": "/etc/hostname"}}, "file_mounts: /etc/x leads out"),
    ],
)
def test_what_cannot_be_copied_is_named_and_not_tried_again(local: Cast, spec: dict[str, Any], words: str) -> None:
    with pytest.raises(ProviderError, match=words) as caught:
        local.provider.snapshot("v1", spec)
    assert not caught.value.retryable
    assert_nothing_half_made(local.home)


def test_a_workdir_above_the_limit_is_refused_with_a_way_out(tmp_path: Path, workdir: Path) -> None:
    snapshots = Snapshots(tmp_path / "home", limit=4000)
    with pytest.raises(ProviderError, match=r"workdir: .*\.skyignore") as caught:
        snapshots.digest("v1", {"workdir": str(workdir)})
    assert not caught.value.retryable
    assert_nothing_half_made(tmp_path / "home")


def test_mounts_count_for_the_limit(tmp_path: Path, workdir: Path) -> None:
    snapshots = Snapshots(tmp_path / "home", limit=8000)
    with pytest.raises(ProviderError, match="file_mounts: more"):
        snapshots.digest("v1", {"workdir": str(workdir), "file_mounts": {"more": str(workdir)}})


def test_an_unreadable_file_is_named(local: Cast, workdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: Path, target: Path, facts: os.stat_result, limit: int | None) -> int:
        raise PermissionError(13, "Permission denied", str(source))

    monkeypatch.setattr(trees, "copy_file", refuse)  # root, who may run these tests, can read everything
    with pytest.raises(ProviderError, match=r"^workdir: .*project/.* cannot be read, when it was copied") as caught:
        local.provider.snapshot("v1", {"workdir": str(workdir)})
    assert not caught.value.retryable
    assert_nothing_half_made(local.home)


def test_a_full_disk_is_told_and_leaves_nothing(tmp_path: Path, workdir: Path) -> None:
    if not owner_is_root():
        pytest.skip("a small file system can only be mounted by root")
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("this machine mounts no tmpfs")
    try:
        (workdir / "weights.bin").write_bytes(b"\0" * 100_000)
        with pytest.raises(ProviderError, match=r"^workdir: The disk is full, when it was copied") as caught:
            Snapshots(disk).digest("v1", {"workdir": str(workdir)})
        assert caught.value.retryable
        assert_nothing_half_made(disk)
        (workdir / "weights.bin").write_bytes(b"\0" * 100)
        assert Snapshots(disk).digest("v1", {"workdir": str(workdir)})
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def test_a_copy_that_was_cut_off_is_made_anew(local: Cast, workdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = local.home / "versions" / "v1"
    for half_made in ("snapshot.new", "snapshot"):
        (root / half_made / "sky_workdir").mkdir(parents=True, exist_ok=True)
        (root / half_made / "sky_workdir" / "half").touch()
    assert local.provider.snapshot("v1", {"workdir": str(workdir)})
    assert not [name for name in names(local.home) if "half" in name]
    assert not (root / "snapshot.new").exists()


def test_who_comes_second_does_not_copy_too(local: Cast, workdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = {"workdir": str(workdir)}
    with locks.held(local.home / "versions" / "v1" / "lock"), pytest.raises(locks.Busy):
        Snapshots(local.home).digest("v1", spec, patience=0.02)
    local.provider.snapshot("v1", spec)
    monkeypatch.setattr(local_snapshot.trees, "copy", None)
    assert local.provider.snapshot("v1", spec)


def test_a_home_is_copied_whole_or_not_at_all(tmp_path: Path, workdir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "replica" / "home"
    copy_home(workdir, target)
    assert (target / "app" / "main.py").exists()
    assert (target / "sky_workdir").is_dir()
    copy_home(None, target)
    assert [each.name for each in target.iterdir()] == ["sky_workdir"]

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device", str(target))

    monkeypatch.setattr(trees, "copy_file", fail)
    with pytest.raises(ProviderError, match="disk is full"):
        copy_home(workdir, target)
    assert list(target.parent.iterdir()) == []


def assert_nothing_half_made(home: Path) -> None:
    """No snapshot, and no part of one."""
    left = [each.name for each in (home / "versions" / "v1").iterdir()]
    assert left == ["lock"], left


@pytest.mark.parametrize("kind", ["device", "pipe", "socket"])
def test_what_is_no_file_is_not_mounted(local: Cast, tmp_path: Path, kind: str) -> None:
    source = tmp_path / kind
    if kind == "device":
        source.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(source)
    else:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(source))
    with pytest.raises(ProviderError, match=r"^file_mounts: x: .* is neither a file nor a directory") as caught:
        local.provider.snapshot("v1", {"file_mounts": {"x": str(source)}})
    assert not caught.value.retryable
    assert not (local.home / "versions/v1/snapshot.new").exists()


@pytest.mark.parametrize("mounted", ["file", "growing", "tree"])
def test_no_mount_takes_more_than_the_limit(
    tmp_path: Path, workdir: Path, mounted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = workdir if mounted == "tree" else workdir / "weights.bin"
    if mounted == "growing":  # its size was looked at before something wrote on
        monkeypatch.setattr(trees, "COPY_PIECE", 1000)
        facts = source.stat()
        smaller = os.stat_result([*facts[:6], 10, *facts[7:]])
        with pytest.raises(trees.TooLarge):
            trees.copy_file(source, tmp_path / "copy", smaller, 4000)
        assert (tmp_path / "copy").stat().st_size <= 4001
        return
    with pytest.raises(ProviderError, match=r"^file_mounts: x: .* has more than .* let `run` read it from where it is"):
        Snapshots(tmp_path, limit=4000).digest("v1", {"file_mounts": {"x": str(source)}})
    assert not (tmp_path / "versions/v1/snapshot").exists()


@pytest.mark.parametrize("field", ["workdir", "file_mounts: x", "file_mounts: " + "t" * 200 + "…"])
def test_names_that_are_too_long_are_told_with_their_field_and_in_short(local: Cast, workdir: Path, field: str) -> None:
    long = f"/{'d' * 5000}"
    spec: dict[str, Any] = {
        "workdir": {"workdir": long},
        "file_mounts: x": {"file_mounts": {"x": long}},
    }.get(field, {"file_mounts": {"t" * 5000: str(workdir)}})
    with pytest.raises(ProviderError) as caught:
        local.provider.snapshot("v1", spec)
    assert caught.value.reason.startswith(f"{field}: File name too long: /")
    assert (len(caught.value.reason) < 600, caught.value.retryable) == (True, False)


@pytest.mark.parametrize("kind", ["device", "pipe", "directory", "endless"])
def test_an_ignore_file_that_is_none_is_named_at_once(local: Cast, workdir: Path, kind: str) -> None:
    ignore = workdir / ".skyignore"
    if kind == "device":
        ignore.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(ignore)
    elif kind == "directory":
        ignore.mkdir()
    else:
        ignore.write_bytes(b"x\n" * (1 << 20))
    with pytest.raises(ProviderError, match=rf"{ignore} is (not a file|too long): ") as caught:
        local.provider.snapshot("v1", {"workdir": str(workdir)})
    assert not caught.value.retryable


@pytest.mark.parametrize("field", ["workdir", "file_mounts: x"])
@pytest.mark.parametrize("part", ["", "versions", "versions/v1", "versions/v0/snapshot"])
def test_rollcalls_own_copies_are_not_copied_into_themselves(tmp_path: Path, field: str, part: str) -> None:
    home = tmp_path / "home"
    (home / "versions/v0/snapshot").mkdir(parents=True)
    (home / "versions/v1").mkdir()
    source = str(home / part)
    spec: dict[str, Any] = {"workdir": source} if field == "workdir" else {"file_mounts": {"x": source}}
    with pytest.raises(ProviderError, match=rf"^{field}: {home / part} is Rollcall's own, and not copied"):
        Snapshots(home).digest("v1", spec)


def test_a_mount_that_holds_the_home_is_copied_without_it(tmp_path: Path) -> None:
    home = tmp_path / "project" / "home"
    (home / "apps").mkdir(parents=True)
    (tmp_path / "project" / "model.bin").write_text("x")
    Snapshots(home).digest("v1", {"file_mounts": {"x": str(tmp_path / "project")}})
    assert names(home) == ["sky_workdir", "sky_workdir/x", "sky_workdir/x/model.bin"]
    assert Snapshots(home).digest("v2", {"file_mounts": {"x": str(home / "apps")}}), "the rest of the home may be"
