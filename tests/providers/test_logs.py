"""Reading a log by offset while it grows and rotates."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replicas.providers import logs, logtimes, shim_output
from replicas.providers.shim_output import Log


def test_no_log_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "none" / "run.log"
    assert logs.read(path, 0, 100) == (b"", 0)
    assert logs.read(path, 7, 100) == (b"", 7)
    assert logs.end(path) == 0
    assert logs.tail(path) == ()


def test_reading_in_pieces_gives_every_byte_once(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    log = Log(os.fsencode(path), 100, 100, 1000)
    written, read, offset = b"", b"", 0
    for number in range(200):
        line = b"line %d\n" % number
        log.write(line)
        written += line
        if number % 3 == 0:
            piece, offset = logs.read(path, offset, 17)
            assert len(piece) <= 17
            read += piece
    while True:
        piece, offset = logs.read(path, offset, 17)
        if not piece:
            break
        read += piece
    assert read == written
    assert offset == len(written)


def test_a_reader_whose_place_was_removed_goes_on_at_the_oldest_byte(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    log = Log(os.fsencode(path), 100, 2, 1000)
    for number in range(100):
        log.write(b"line %04d\n" % number)
    data, after = logs.read(path, 0, 10)
    assert data.startswith(b"line 00")
    assert after > 500


def test_an_offset_beyond_the_end_stays(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(b"abc")
    assert logs.read(path, 10, 5) == (b"", 10)
    assert logs.read(path, -5, 5) == (b"abc", 3)
    assert logs.read(path, 0, 0) == (b"", 0)


def test_a_log_that_is_renamed_while_it_is_read_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(b"first\n")
    with logs.Segments(path) as before:
        path.rename(f"{path}.{0:020d}")
        path.write_bytes(b"second\n")
        assert [(segment.begin, segment.size) for segment in before] == [(0, 6)]
    assert logs.read(path, 0, 100) == (b"first\nsecond\n", 13)


def test_the_rename_between_the_two_looks_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(b"first\n")
    os.link(path, f"{path}.{0:020d}")  # as it looks to a reader that opened the file just before its renaming
    with logs.Segments(path) as segments:
        assert [(segment.begin, segment.size) for segment in segments] == [(0, 6)]


def test_other_files_are_no_segments(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(b"x\n")
    for name in ("run.log.old", "run.log.123", "run.log." + "9" * 21, "xrun.log." + "0" * 20):
        (tmp_path / name).write_bytes(b"junk")
    assert logs.read(path, 0, 100) == (b"x\n", 2)


def test_tail_gives_the_last_lines_readably(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(b"one\ntwo\n 10 %\r 50 %\r100 %\n\xc7\x80 \xff\nlast without end")
    assert logs.tail(path, 4) == ("two", "100 %", "ǀ \ufffd", "last without end")
    assert logs.tail(path, 1) == ("last without end",)
    assert logs.tail(path, 4, since=logs.end(path) - 5) == ("t end",)
    assert logs.tail(path, 4, since=logs.end(path)) == ()


def test_tail_is_bounded_in_bytes(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(b"x" * 100_000 + b"\nend\n")
    assert logs.tail(path, 20, 100)[-1] == "end"
    assert sum(len(line) for line in logs.tail(path, 20, 100)) <= 100


@given(st.binary(max_size=300))
def test_tail_takes_any_bytes(content: bytes) -> None:
    lines = logs._redrawn(content)
    assert all("\n" not in line for line in lines)


class Wall:
    """The clock of a shim that writes: `wall.now` in seconds."""

    now = 1000.0

    def time(self) -> float:
        """See `time.time`."""
        return self.now


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> Wall:
    """In place of the shim's own clock."""
    made = Wall()
    monkeypatch.setattr(shim_output, "time", SimpleNamespace(time=made.time))
    return made


def test_what_is_written_has_a_time_to_the_second_across_files(tmp_path: Path, wall: Wall) -> None:
    path = tmp_path / "run.log"
    log = Log(os.fsencode(path), 40, 3, 1000)
    begun = []
    for number in range(10):
        begun.append(logs.end(path))
        log.write(b"line %d of the log\n" % number)
        wall.now += 0.6
    with logs.Segments(path) as segments:
        end = segments[-1].end
        known = logtimes.stamps(path, segments, 0, end)
        for number, offset in enumerate(begun):
            if offset >= segments[0].begin:
                told = logtimes.stamp_of(known, offset)
                assert told is not None
                assert 0 <= 1000_000 + 600 * number - told < 1000
        assert logtimes.stamps(path, segments, begun[8], begun[8] + 1)[-1][0] <= begun[8]
        assert logtimes.since(path, segments, 0) == segments[0].begin
        assert logtimes.since(path, segments, 1_000_000 + 600 * 10) == end
    kept = {each.name for each in tmp_path.iterdir()}
    files = {name for name in kept if not name.endswith(".times")}
    assert len(files) == 3
    assert kept - files == {f"{name}.times" for name in files}


def test_a_clock_that_is_set_back_and_a_broken_entry_cost_no_later_times(tmp_path: Path, wall: Wall) -> None:
    path, times = tmp_path / "run.log", tmp_path / "run.log.times"
    Log(os.fsencode(path), 1000, 2, 1000).write(b"one\n")
    times.write_bytes(times.read_bytes() + b"torn")
    wall.now = 500.0
    log = Log(os.fsencode(path), 1000, 2, 1000)
    log.write(b"two\n")
    with logs.Segments(path) as segments:
        assert logtimes.stamps(path, segments, 0, 8) == [(0, 1_000_000), (4, 500_000)]
    wall.now = 500.5
    log.write(b"three\n")
    assert times.stat().st_size == 2 * logtimes.ENTRY


def test_times_take_little_room_however_slowly_a_log_grows(
    tmp_path: Path, wall: Wall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shim_output, "FREE_BYTES", 120)
    log = Log(os.fsencode(tmp_path / "run.log"), 1 << 20, 2, 1000)
    for _ in range(400):
        wall.now += 2
        log.write(b".\n")
    assert (tmp_path / "run.log.times").stat().st_size <= 120 + 800 // 4 + logtimes.ENTRY


def test_nothing_but_a_plain_file_is_taken_for_times(tmp_path: Path) -> None:
    path, times = tmp_path / "run.log", tmp_path / "run.log.times"
    path.write_bytes(b"one\n")
    os.mkfifo(times)
    with logs.Segments(path) as segments:
        assert logtimes.stamps(path, segments, 0, 4) == []
        assert logtimes.since(path, segments, 0) is None
        times.unlink()
        times.symlink_to(path)
        assert logtimes.stamps(path, segments, 0, 4) == []
