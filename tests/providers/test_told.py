"""A setup's output in the log of each launch that waits for it: once and in order, wherever a step is cut off."""

import os
from pathlib import Path

import pytest

from replicas.providers.base import Launched, Waiting
from replicas.providers.local_told import Telling
from tests.providers.cast import Cast, eventually
from tests.providers.test_setup import setup_of

FIRST, SECOND, CLOSING = b"one\ntwo\n", b"three\nfour\n", "setup is done"
WHOLE = b"begun\n" + FIRST + SECOND + b"setup is done\n"


class Desk:
    """An output, a log, and whoever carries one into the other: a new process each time."""

    def __init__(self, folder: Path) -> None:
        self.output, self.log, self.note = folder / "setup.log", folder / "1.log", folder / "setup.told"
        self.output.write_bytes(b"of an earlier try\n")
        self.begin = self.output.stat().st_size
        self.log.write_bytes(b"begun\n")

    def print(self, data: bytes) -> None:
        with self.output.open("ab") as file:
            file.write(data)

    def step(self, closing: str = "", key: str = "v1/1 1") -> None:
        Telling(self.output, self.log, self.note, key).go_on(self.begin, closing)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """With nothing told yet."""
    return Desk(tmp_path)


def test_nothing_is_told_twice(desk: Desk) -> None:
    for _ in range(2):
        desk.step()
    desk.print(FIRST)
    for _ in range(2):
        desk.step()
    assert desk.log.read_bytes() == b"begun\n" + FIRST
    desk.print(SECOND)
    for _ in range(3):
        desk.step(CLOSING)
    assert desk.log.read_bytes() == WHOLE


@pytest.mark.parametrize("written", range(len(FIRST) + 1))
def test_a_step_that_is_cut_off_while_it_appends_is_gone_on_with(desk: Desk, written: int) -> None:
    desk.print(FIRST)
    desk.step()
    os.truncate(desk.log, len(b"begun\n") + written)  # so much was written when the worker was killed
    desk.print(SECOND)
    desk.step()
    desk.step(CLOSING)
    assert desk.log.read_bytes() == WHOLE


@pytest.mark.parametrize("written", range(len(SECOND) + len(CLOSING) + 2))
def test_so_is_the_last_one(desk: Desk, written: int) -> None:
    desk.print(FIRST)
    desk.step()
    desk.print(SECOND)
    desk.step(CLOSING)
    os.truncate(desk.log, len(b"begun\n" + FIRST) + written)
    for _ in range(2):
        desk.step(CLOSING)
    assert desk.log.read_bytes() == WHOLE


def test_what_others_write_in_between_is_no_part_of_it(desk: Desk) -> None:
    desk.print(FIRST)
    desk.step()
    with desk.log.open("ab") as file:
        file.write(b"a remark\n")
    desk.print(SECOND)
    desk.step(CLOSING)
    desk.step(CLOSING)
    assert desk.log.read_bytes() == b"begun\n" + FIRST + b"a remark\n" + SECOND + b"setup is done\n"


def test_another_attempt_is_told_anew(desk: Desk) -> None:
    desk.print(FIRST)
    desk.step(CLOSING)
    desk.step(CLOSING, key="v1/1 2")
    assert desk.log.read_bytes() == b"begun\n" + (FIRST + b"setup is done\n") * 2


def test_a_note_that_cannot_be_read_or_written_costs_no_launch(desk: Desk) -> None:
    desk.print(FIRST)
    desk.note.write_text("{")
    desk.step()
    assert desk.log.read_bytes() == b"begun\n" + FIRST
    desk.note.unlink()
    desk.note.with_suffix(".new").mkdir()  # nothing can be written there
    desk.print(SECOND)
    desk.step(CLOSING)
    assert desk.log.read_bytes() == b"begun\n" + FIRST


def test_a_launch_whose_workers_die_before_they_store_a_checkpoint_logs_each_line_once(
    local: Cast, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    order = local.order(setup=f"echo first; while [ ! -e {go} ]; do sleep 0.02; done; echo second")

    def shown() -> bool:
        assert isinstance(local.provider.launch(order, None), Waiting)
        return order.log.exists() and "first" in order.log.read_text()

    eventually(shown)
    for _ in range(3):
        shown()
    go.touch()
    eventually(lambda: setup_of(local).record())
    launched = local.provider.launch(order, None)
    assert isinstance(launched, Launched)
    lines = local.log(order).splitlines()
    assert lines[:2] == ["first", "second"]
    assert lines[2].startswith("setup is done")
    assert len(set(lines)) == len(lines)
    local.down(order, launched.handle)
