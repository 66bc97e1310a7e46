"""The log of an operation has times beside it, as that of a process has."""

import os
from functools import partial
from pathlib import Path

import pytest

from replicas.providers import joblog, logs, logtimes


def told(log: Path) -> list[logtimes.Stamp]:
    with logs.Segments(log) as segments:
        return logtimes.stamps(log, segments, 0, 1 << 40)


def test_each_second_has_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "7.log"
    for now in (1000.0, 1000.9, 1001.5, 990.0):  # the clock is set back at last
        monkeypatch.setattr(joblog.time, "time", partial(float, now))
        joblog.append_to(log, "a sentence")
    assert log.read_text() == "a sentence\n" * 4
    assert told(log) == [(0, 1_000_000), (22, 1_001_500), (33, 990_000)]


def test_what_was_cut_off_and_what_is_no_file_of_ours_harms_nothing(tmp_path: Path) -> None:
    log = tmp_path / "7.log"
    logtimes.times_of(log).write_bytes(b"\0" * 17)
    joblog.append_to(log, "one")
    assert logtimes.times_of(log).stat().st_size == 24
    logtimes.times_of(log).unlink()
    os.symlink(tmp_path / "elsewhere", logtimes.times_of(log))
    joblog.append_to(log, "two")
    assert not (tmp_path / "elsewhere").exists()
    assert log.read_text() == "one\ntwo\n"
    joblog.append_to(tmp_path / "nowhere" / "7.log", "three")


def test_a_full_disk_costs_only_the_sentence(tmp_path: Path) -> None:
    log = tmp_path / "7.log"
    log.symlink_to("/dev/full")
    joblog.append_to(log, "nowhere")
    log.unlink()
    joblog.append_to(log, "somewhere")
    assert log.read_text() == "somewhere\n"
