"""Reading a log by offset: characters, lines, pages, searches, rotation, and files that must not be shown."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replicas.web import livelog, logfile
from replicas.web.livelog import NOTHING, Stood, poll
from replicas.web.logfile import NoLog, opened


@pytest.fixture
def log(home: Path) -> Path:
    """A log of a hundred lines, `line 0` to `line 99`, in three segments."""
    path = home / "replicas" / "r1" / "run.log"
    path.parent.mkdir(parents=True)
    lines = [f"line {number}\n".encode() for number in range(100)]
    begin = 0
    for part in (lines[:40], lines[40:80]):
        data = b"".join(part)
        path.with_name(f"run.log.{begin:020d}").write_bytes(data)
        begin += len(data)
    path.write_bytes(b"".join(lines[80:]))
    return path


WHOLE = "".join(f"line {number}\n" for number in range(100)).encode()


@given(st.text(), st.integers(min_value=0))
def test_a_cut_never_lies_within_a_character(text: str, place: int) -> None:
    data = text.encode(errors="replace")
    cut = data[: place % (len(data) + 1)]
    assert "\ufffd" not in cut[: logfile.whole(cut)].decode(errors="replace") or "\ufffd" in text
    assert len(cut) - logfile.whole(cut) <= 3


@given(st.binary(max_size=50))
def test_bytes_that_are_no_text_hold_back_three_at_most(data: bytes) -> None:
    assert 0 <= len(data) - logfile.whole(data) <= 3


@given(st.lists(st.binary(max_size=12)), st.integers(min_value=0, max_value=1000))
def test_breaks_give_the_true_length_of_each_line(parts: list[bytes], start: int) -> None:
    data = b"\n".join(parts)
    row = logfile.text_row(start, data)
    assert row["end"] - row["start"] == len(data)
    lines = row["text"].split("\n")
    lengths = row.get("breaks") or [len(line.encode()) + 1 for line in lines]
    assert len(lengths) == len(lines)
    assert sum(lengths) - 1 == len(data)


def test_an_offset_reads_across_segments(log: Path, home: Path) -> None:
    with opened(log, home) as segments:
        assert logfile.read(segments, 0, len(WHOLE)) == WHOLE
        assert logfile.read(segments, 5, 700) == WHOLE[5:700]
        assert logfile.read(segments, len(WHOLE) - 3, len(WHOLE) + 100) == WHOLE[-3:]


@pytest.mark.parametrize("lines", [1, 5, 25, 99, 100, 500])
def test_the_last_lines(log: Path, home: Path, lines: int) -> None:
    with opened(log, home) as segments:
        start = logfile.back(segments, len(WHOLE), lines)
    assert WHOLE[start:].count(b"\n") == min(lines, 100)
    assert start == 0 or WHOLE[start - 1 : start] == b"\n"


def test_a_line_without_an_end_counts(log: Path, home: Path) -> None:
    with log.open("ab") as file:
        file.write(b"not yet")
    with opened(log, home) as segments:
        start = logfile.back(segments, len(WHOLE) + 7, 2)
        assert logfile.read(segments, start, len(WHOLE) + 7) == b"line 99\nnot yet"


@pytest.mark.parametrize("block", [1, 2, 7, 64])
def test_pages_going_back_meet_each_other(log: Path, home: Path, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logfile, "BLOCK", block)
    with opened(log, home) as segments:
        found, offset = b"", len(WHOLE)
        while offset > 0:
            start, data = logfile.before(segments, offset, 7)
            assert start < offset
            found, offset = data + found, start
    assert found == WHOLE


def test_pages_going_on_meet_each_other(log: Path, home: Path) -> None:
    with opened(log, home) as segments:
        found, offset = b"", 0
        while offset < len(WHOLE):
            start, data = logfile.after(segments, offset, 7)
            assert start == offset
            found, offset = found + data, start + len(data)
    assert found == WHOLE


@pytest.mark.parametrize("block", [8, 9, 13, 1 << 20])
def test_a_search_finds_each_match_once(log: Path, home: Path, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logfile, "SEARCH_BLOCK", block)
    with opened(log, home) as segments:
        found = logfile.search(segments, "LINE 9", 4, seconds=10)
    assert found.complete
    assert found.count == WHOLE.count(b"line 9") == 11
    assert len(found.matches) == 4
    for line, match in found.matches:
        assert WHOLE[match:].startswith(b"line 9")
        assert line == match


def test_matches_do_not_overlap(home: Path) -> None:
    path = home / "aaaa.log"
    path.write_bytes(b"xaaaaa\n")
    with opened(path, home) as segments:
        found = logfile.search(segments, "aa", 10, seconds=10)
    assert [(line, match) for line, match in found.matches] == [(0, 1), (0, 3)]


def test_a_search_that_takes_too_long_says_so(log: Path, home: Path) -> None:
    with opened(log, home) as segments:
        found = logfile.search(segments, "line", 10, seconds=0)
    assert not found.complete
    assert found.count == 0


def test_what_lies_outside_the_home_is_not_shown(home: Path, tmp_path: Path) -> None:
    outside = tmp_path / "secret"
    outside.write_text("secret")
    link = home / "run.log"
    link.symlink_to(outside)
    folder = home / "folder"
    folder.symlink_to(tmp_path)
    pipe = home / "pipe"
    os.mkfifo(pipe)
    for path in (outside, link, folder / "secret", home / ".." / outside.name, pipe, home):
        with pytest.raises(NoLog), opened(path, home):
            pass
    (home / "run.log.00000000000000000000").symlink_to(outside)
    link.unlink()
    with pytest.raises(NoLog), opened(link, home):
        pass


class Tail:
    """What repeated polls of a log see."""

    def __init__(self, path: Path, home: Path) -> None:
        self.path, self.home, self.stood = path, home, NOTHING

    def poll(self, flush: bool = False) -> bytes:
        self.stood: Stood = poll(str(self.path), self.stood, self.home, flush)
        chunk = self.stood.chunk
        if chunk is None:
            return b""
        with opened(self.path, self.home) as segments:
            return logfile.read(segments, chunk.start, chunk.end)


def test_polls_give_what_was_written_between_them(log: Path, home: Path) -> None:
    tail = Tail(log, home)
    assert tail.poll() == b""
    assert (tail.stood.start, tail.stood.head, tail.stood.end) == (0, len(WHOLE), len(WHOLE))
    with log.open("ab", buffering=0) as file:
        file.write(b"more\nA\xc7")
        assert tail.poll() == b"more\nA"
        assert tail.poll() == b""
        file.write(b"\x80")
        assert tail.poll() == b"\xc7\x80"
        file.write(b"\xe2\x82")
        assert tail.poll() == b""
        assert tail.poll(flush=True) == b"\xe2\x82"


def rotate(path: Path, begin: int) -> None:
    path.rename(path.with_name(f"{path.name}.{begin:020d}"))


def test_rotation_is_not_seen(log: Path, home: Path) -> None:
    tail = Tail(log, home)
    tail.poll()
    begin = tail.stood.base
    with log.open("ab") as file:
        file.write(b"before\n")
    rotate(log, begin)
    found = tail.poll()  # between the rename and the new file
    log.write_bytes(b"after\n")
    found += tail.poll()
    assert found == b"before\nafter\n"
    assert not tail.stood.replaced
    log.with_name("run.log.00000000000000000000").unlink()
    with log.open("ab") as file:
        file.write(b"last\n")
    rotate(log, tail.stood.base)
    log.write_bytes(b"")
    assert tail.poll() == b"last\n"
    assert tail.stood.start > 0


@pytest.mark.parametrize("content", [b"", b"new\n", b"x" * 5000])
def test_another_file_in_its_place_is_seen(home: Path, content: bytes) -> None:
    path = home / "launch.log"
    path.write_bytes(b"old log\n" * 10)
    tail = Tail(path, home)
    tail.poll()
    new = home / "new"
    new.write_bytes(content)
    new.replace(path)
    tail.poll()
    assert tail.stood.replaced
    assert tail.stood.head == len(content)


def test_a_file_that_goes_and_comes_is_seen(home: Path) -> None:
    path = home / "launch.log"
    tail = Tail(path, home)
    assert tail.poll() == b""
    assert tail.stood.identity is None
    path.write_bytes(b"one\n")
    tail.poll()
    assert tail.stood.head == 4
    path.unlink()
    tail.poll()
    assert tail.stood == NOTHING._replace(replaced=True)


def test_a_flood_is_read_from_near_its_end(home: Path) -> None:
    """What is left out each viewer reads for itself."""
    path = home / "run.log"
    path.write_bytes(b"")
    tail = Tail(path, home)
    tail.poll()
    path.write_bytes("€".encode() * livelog.READ_BYTES)
    found = tail.poll()
    assert len(found) <= livelog.READ_BYTES
    assert tail.stood.head == tail.stood.end
    assert set(found.decode()) == {"€"}
