"""Lines, the terminal that nobody reads, and the log file."""

import os
from pathlib import Path

import pytest

from controlplane import output
from controlplane.output import LINE_BYTES, Lines, LogFile, Output, Terminal
from tests.support.patience import within


def test_lines_are_cut_where_they_end_however_they_arrive() -> None:
    lines = Lines()
    assert lines.feed(b"one\ntw") == ["one"]
    assert lines.feed(b"o\r\nthree") == ["two"]
    assert lines.close() == ["three"]
    assert lines.close() == []


def test_what_is_not_text_is_shown_and_cannot_steer_the_terminal() -> None:
    assert Lines().feed(b"\xc7\x80\xff\x1b[2Jx\ty\n") == ["\u01c0\ufffd\ufffd[2Jx\ty"]


def test_an_endless_line_is_cut() -> None:
    lines = Lines()
    assert [len(line) for line in lines.feed(b"x" * (2 * LINE_BYTES + 5))] == [LINE_BYTES, LINE_BYTES]
    assert lines.feed(b"\n") == ["x" * 5]


def test_a_reader_that_does_not_read_costs_lines_and_no_time() -> None:
    reader, writer = os.pipe()
    terminal = Terminal(writer)
    with within(10):
        for number in range(40_000):
            terminal.write(f"line {number} " + "x" * 60)
    assert terminal.pending

    os.set_blocking(reader, False)
    seen = b""
    for _ in range(1000):
        terminal.flush()
        try:
            seen += os.read(reader, 65536)
        except BlockingIOError:
            break
    terminal.write("the last line")
    terminal.flush()
    seen += os.read(reader, 65536)
    assert seen.startswith(b"line 0 ")
    assert b"lines left out: nobody read them in time" in seen
    assert seen.endswith(b"the last line\n")
    os.close(reader)
    os.close(writer)


def test_a_broken_pipe_is_the_end_of_the_terminal_and_of_nothing_else() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    terminal = Terminal(writer)
    terminal.write("nobody is there")
    assert not terminal.pending
    terminal.write("still not")
    os.close(writer)


def test_a_closed_descriptor_is_survived() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    os.close(writer)
    terminal = Terminal(writer)
    terminal.write("x")
    assert not terminal.pending


def test_the_log_is_put_aside_when_it_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "LOG_BYTES", 1000)
    log = LogFile(tmp_path / "control-plane.log")
    for number in range(100):
        log.write(f"web       | line {number}")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["control-plane.log", "control-plane.log.1", "control-plane.log.2"]
    assert all(path.stat().st_size < 1200 for path in tmp_path.iterdir())
    newest = (tmp_path / "control-plane.log").read_text() + (tmp_path / "control-plane.log.1").read_text()
    assert "line 99\n" in newest
    assert (tmp_path / "control-plane.log").stat().st_mode & 0o777 == 0o600


def test_a_full_disk_loses_lines_and_nothing_else() -> None:
    log = LogFile(Path("/dev/full"))
    log.write("lost")


def test_prefixes_line_up_and_carry_no_colour_into_a_pipe(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    shown = Output(Terminal(writer), LogFile(tmp_path / "x.log"), ["web", "controller"])
    shown.say("web", "hello")
    shown.say("controller", "hello")
    assert os.read(reader, 1000) == b"web       | hello\ncontroller| hello\n"
    os.close(reader)
    os.close(writer)
