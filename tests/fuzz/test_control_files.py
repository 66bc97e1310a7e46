"""Replicas can write into their own directories: the provider believes nothing of what stands there."""

import os
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from replicas.providers.base import ProviderError
from replicas.providers.control import Control, Record
from replicas.providers.layout import ReplicaDirectory
from replicas.providers.local import LocalProvider
from replicas.providers.local_told import Telling
from tests.fuzz.effort import fuzzed

NAMES = ["exit", "shim", "stop", "cgroups", "lock", "shim.err"]
TEXTS = [
    b"", b"{}", b"[]", b"null", b"7", b'"x"', b'{"code": 7}', b'{"code": "x"}', b'{"code": 7, "signal": null}', b"\xff",
    b"1 2 3 4", b"1 2 3", b"-1 0 -1 0", b"99999999999999999999 1 2 3", b"a b c d", b'{"code": 1e400}', b"/", b"\0",
    b'{"code": 7, "ended": "yesterday", "peak_kib": -1}', b'{"code": 7, "unheard": 1}', b"[" * 5000, b"<pipe>",
    b"<folder>", b"/no/such", b'{"code": 7, "ended": 1}', b'{"code": 7, "signal": 99}', b'{"code": true}',
]  # fmt: skip
FILES = st.dictionaries(st.sampled_from(NAMES), st.one_of(st.binary(max_size=60), st.sampled_from(TEXTS)))


def put(folder: Path, files: dict[str, bytes]) -> None:
    """The files; `<pipe>` and `<folder>` stand for things that are no files."""
    folder.mkdir(parents=True)
    for name, content in files.items():
        if content == b"<pipe>" and name != "lock":
            os.mkfifo(folder / name)
        elif content == b"<folder>" and name != "lock":
            (folder / name).mkdir()
        else:
            (folder / name).write_bytes(content)


@fuzzed(200)
@given(FILES)
def test_any_files_of_a_shim_are_read_or_passed_over(files: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        control = Control(Path(folder) / "control")
        put(control.directory, files)
        record = control.record()
        assert record is None or (isinstance(record, Record) and isinstance(record.how, str))
        assert control.running() is None, "nobody holds the lock"
        assert all(isinstance(path, Path) for path in control.cgroups())
        assert control.stop(1.0) is False


@fuzzed(200)
@given(FILES)
def test_a_replica_with_any_files_is_inspected_and_taken_down(files: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        provider = LocalProvider(Path(folder))
        uid = "0" * 32
        place = ReplicaDirectory(Path(folder), uid)
        put(place.control, files)
        handle = {"uid": uid, "directory": str(place.root), "port": 1, "pid": 2**30, "start": 1}
        handle |= {"shim_pid": 2**30, "shim_start": 1}
        seen = provider.inspect(handle)
        assert seen.kind in ("exited", "gone")
        assert isinstance(seen.detail, str)


@fuzzed(200)
@given(st.one_of(st.binary(max_size=60), st.sampled_from(TEXTS)), st.binary(max_size=60), st.binary(max_size=60))
def test_a_launch_log_is_written_whatever_the_note_says(note: bytes, output: bytes, log: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, content in (("out", output), ("log", log), ("note", note)):
            (Path(folder) / name).write_bytes(content)
        try:
            Telling(Path(folder, "out"), Path(folder, "log"), Path(folder, "note"), "key").go_on(0, "setup ended")
        except ProviderError as error:
            raise AssertionError("the log informs; it fails nobody") from error
        assert Path(folder, "log").read_bytes().startswith(log)
