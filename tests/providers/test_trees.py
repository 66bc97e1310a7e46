"""Copying, measuring, digesting and removing directory trees."""

import errno
import os
import stat
from pathlib import Path

import pytest

from replicas.providers import trees
from replicas.providers.base import ProviderError


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with a bit of everything."""
    root = tmp_path / "tree"
    (root / "package" / "deep").mkdir(parents=True)
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    (root / "package" / "data.bin").write_bytes(bytes(range(256)) * 4096)
    (root / "package" / "deep" / "empty").touch()
    (root / "link").symlink_to("package/data.bin")
    (root / "dangling").symlink_to("/nowhere/at/all")
    (root / "to-directory").symlink_to("package")
    os.mkfifo(root / "pipe")
    return root


def test_a_copy_has_contents_modes_times_and_links(tree: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy"
    size = trees.copy(tree, target)
    assert size == 256 * 4096 + len("#!/bin/sh\n")
    assert (target / "package" / "data.bin").read_bytes() == bytes(range(256)) * 4096
    assert stat.S_IMODE((target / "run.sh").stat().st_mode) == 0o755
    assert (target / "run.sh").stat().st_mtime_ns == (tree / "run.sh").stat().st_mtime_ns
    assert os.readlink(target / "link") == "package/data.bin"
    assert os.readlink(target / "dangling") == "/nowhere/at/all"
    assert (target / "to-directory").is_symlink()
    assert not (target / "pipe").exists(), "a pipe is no content, and reading it would never end"


def test_a_copy_of_a_read_only_directory_works_and_can_be_removed(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "locked").mkdir(parents=True)
    (source / "locked" / "file").write_text("x")
    (source / "locked").chmod(0o555)
    trees.copy(source, tmp_path / "copy")
    assert (tmp_path / "copy" / "locked" / "file").read_text() == "x"
    (tmp_path / "copy" / "locked").chmod(0o555)
    trees.remove(tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_what_is_skipped_is_neither_copied_nor_entered(tree: Path, tmp_path: Path) -> None:
    trees.copy(tree, tmp_path / "copy", lambda path, directory: directory and path == "package")
    assert sorted(each.name for each in (tmp_path / "copy").iterdir()) == ["dangling", "link", "run.sh", "to-directory"]


def test_a_tree_above_the_limit_is_refused(tree: Path, tmp_path: Path) -> None:
    with pytest.raises(trees.TooLarge) as caught:
        trees.copy(tree, tmp_path / "copy", limit=1000)
    assert caught.value.size > 1000


def test_the_digest_sees_names_contents_links_and_execute_bits(tree: Path, tmp_path: Path) -> None:
    trees.copy(tree, tmp_path / "copy")
    copy, seen = tmp_path / "copy", set()
    assert trees.digest(copy) == trees.digest(tree)
    os.utime(copy / "run.sh", (1, 1))
    seen.add(trees.digest(copy))
    assert seen == {trees.digest(tree)}, "times do not count"
    (copy / "run.sh").chmod(0o644)
    seen.add(trees.digest(copy))
    (copy / "package" / "deep" / "empty").rename(copy / "package" / "deep" / "other")
    seen.add(trees.digest(copy))
    (copy / "link").unlink()
    (copy / "link").symlink_to("elsewhere")
    seen.add(trees.digest(copy))
    (copy / "run.sh").write_text("#!/bin/sh\necho\n")
    seen.add(trees.digest(copy))
    (copy / "package" / "new").mkdir()
    seen.add(trees.digest(copy))
    assert len(seen) == 6


def test_removing_nothing_is_success_and_links_are_not_followed(tree: Path, tmp_path: Path) -> None:
    trees.remove(tmp_path / "none")
    (tmp_path / "link").symlink_to(tree)
    trees.remove(tmp_path / "link")
    assert tree.is_dir()
    trees.remove(tree / "run.sh")
    trees.remove(tree)
    assert not tree.exists()


@pytest.mark.parametrize(
    ("number", "retryable", "words"),
    [
        (errno.ENOSPC, True, "disk is full"),
        (errno.EDQUOT, True, "disk is full"),
        (errno.EACCES, False, "cannot be read"),
        (errno.ENOENT, False, "does not exist"),
        (errno.EIO, True, "Input/output error"),
    ],
)
def test_a_failure_is_told_so_that_the_user_can_act(number: int, retryable: bool, words: str) -> None:
    told = trees.explain(OSError(number, os.strerror(number), "/some/file"), "when x was copied")
    assert isinstance(told, ProviderError)
    assert told.retryable is retryable
    assert words in told.reason
    assert "when x was copied" in told.reason
