"""Cgroups: planned by what the host allows, and limits that hold."""

from pathlib import Path

import pytest

from replicas.providers import cgroups
from replicas.providers.cgroups import Group, Limits
from tests.providers.cast import Cast

HOME = Path("/rollcall")


def allow(monkeypatch: pytest.MonkeyPatch, **hierarchies: Path) -> None:
    """Let these hierarchies be writable; version 2 is `unified`."""
    found = {"" if name == "unified" else name: path for name, path in hierarchies.items()}
    monkeypatch.setattr(cgroups, "_hierarchies", lambda: found)


def test_a_host_without_cgroups_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    allow(monkeypatch)
    assert cgroups.plan(HOME, "r1", Limits()) == Group()
    group = cgroups.plan(HOME, "r1", Limits(cpus=1, memory=1 << 30))
    assert (group.directories, group.limits) == ((), {})
    assert [each.split(",")[0] for each in group.missing] == [
        "resources: no limit of cpu is set",
        "resources: no limit of memory is set",
    ]


def test_version_2_with_controllers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "cgroup.subtree_control").write_text("cpu memory pids\n")
    allow(monkeypatch, unified=tmp_path)
    group = cgroups.plan(HOME, "r1", Limits(cpus=1.5, memory=1 << 30))
    (folder,) = group.directories
    assert folder.parent == tmp_path
    assert folder.name.endswith("-r1")
    assert group.limits == {f"{folder}/cpu.max": "150000 100000", f"{folder}/memory.max": str(1 << 30)}


def test_version_2_for_ending_and_version_1_for_limits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    allow(monkeypatch, unified=tmp_path / "unified", memory=tmp_path / "memory", cpu=tmp_path / "cpu")
    assert [each.parent.name for each in cgroups.plan(HOME, "r1", Limits()).directories] == ["unified"]
    group = cgroups.plan(HOME, "r1", Limits(cpus=2, memory=1 << 20))
    assert [each.parent.name for each in group.directories] == ["unified", "cpu", "memory"]
    assert {Path(path).name: value for path, value in group.limits.items()} == {
        "cpu.cfs_period_us": "100000",
        "cpu.cfs_quota_us": "200000",
        "memory.limit_in_bytes": str(1 << 20),
    }
    assert group.missing == ()


def test_two_homes_do_not_share_a_cgroup(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    allow(monkeypatch, unified=tmp_path)
    one, two = (cgroups.plan(Path(home), "r1", Limits()).directories for home in ("/a", "/b"))
    assert one != two


def test_a_cgroup_that_is_gone_has_no_members_and_is_removed_twice(tmp_path: Path) -> None:
    assert cgroups.members(tmp_path / "none") == []
    cgroups.remove(tmp_path / "none")
    (tmp_path / "some").mkdir()
    cgroups.remove(tmp_path / "some")
    assert not (tmp_path / "some").exists()


def test_a_replica_is_in_its_cgroups_with_its_limits_and_they_go_with_it(local: Cast) -> None:
    order = local.order(run="exec sleep 1000", resources={"cpus": "0.5", "memory": "256MB"})
    planned = cgroups.plan(local.home, "r1", Limits(0.5, 256 << 20))
    launched = local.launch(order)
    if not planned.directories:
        assert "no limit of cpu is set" in local.log(order)
        pytest.skip("this machine lets us make no cgroups")
    for folder in planned.directories:
        assert [process.pid for process in cgroups.members(folder)] == [launched.pid]
    for path, value in planned.limits.items():
        assert Path(path).read_text().strip() == value
    local.down(order, launched.handle)
    assert not [each for each in planned.directories if each.exists()]


def test_a_limit_that_the_host_refuses_is_told_and_the_replica_runs(
    local: Cast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = Group((Path("/proc/no-cgroup"),), {str(tmp_path / "none" / "memory.max"): "1"})
    monkeypatch.setattr(cgroups, "plan", lambda *_: refused)
    launched = local.launch(local.order(run="echo up; exec sleep 1000"))
    shown = local.printed(launched.handle, b"up")
    assert b"[rollcall: no cgroup: " in shown
    assert b"[rollcall: a limit is not set: " in shown
    assert local.provider.inspect(launched.handle).kind == "running"
