"""Masking, bounding and rotating of a replica's output, byte by byte."""

import os
import shutil
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from replicas.providers import logs
from replicas.providers.shim_output import MASK, Log, Masker

SECRET = b"hunter2-hunter2"
pieces = st.lists(st.integers(0, 400), max_size=12)


def masked(text: bytes, secrets: list[bytes], cuts: list[int]) -> bytes:
    """The masked text, fed in the pieces that the cuts make of it."""
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    masker = Masker(secrets)
    return b"".join(masker.feed(text[a:b]) for a, b in pairwise(places)) + masker.close()


def test_a_secret_in_one_piece_is_masked() -> None:
    assert masked(b"the password is " + SECRET + b".\n", [SECRET], []) == b"the password is ******.\n"


@pytest.mark.parametrize("cut", range(1, len(SECRET)))
def test_a_secret_cut_anywhere_is_masked(cut: int) -> None:
    assert masked(b"a" + SECRET + b"z", [SECRET], [cut + 1]) == b"a******z"


def test_only_the_start_of_a_secret_is_held_back() -> None:
    masker = Masker([SECRET])
    assert masker.feed(b"progress 10%\rhun") == b"progress 10%\r"
    assert masker.feed(b"dred\r") == b"hundred\r"
    assert masker.feed(b"plain") == b"plain"


def test_what_was_held_back_comes_at_the_end() -> None:
    masker = Masker([SECRET])
    assert masker.feed(b"to the hunter") == b"to the "
    assert masker.close() == b"hunter"


def test_the_longer_of_two_secrets_with_the_same_start_is_masked_whole() -> None:
    secrets = [b"abcd", b"abcdefgh"]
    for cut in range(9):
        assert masked(b"-abcdefgh-abcdx", secrets, [cut]) == b"-******-******x"


def test_a_secret_of_several_lines_is_masked_line_by_line_too() -> None:
    key = b"-----BEGIN KEY-----\nMIIEowIBAAKCAQEA\n-----END KEY-----"
    shown = masked(b"  MIIEowIBAAKCAQEA\r\n", [key], [5])
    assert b"MIIEowIBAAKCAQEA" not in shown


def test_very_short_secrets_are_left_alone() -> None:
    assert masked(b"1 and 22 and 333", [b"1", b"22", b"333", b""], []) == b"1 and 22 and 333"


def test_a_stream_of_nothing_but_secrets_needs_no_memory() -> None:
    masker = Masker([b"aaaa"])
    shown = b"".join(masker.feed(b"a" * 1000) for _ in range(100)) + masker.close()
    assert shown == MASK
    assert len(masker._held) < 4


@given(
    st.lists(st.sampled_from([b"abab", b"ababab", b"bcbcb", b"x", b"ab", b"\n", b"\xc7\x80", b"cab"]), max_size=40),
    pieces,
)
def test_no_secret_is_ever_shown_however_it_is_cut(parts: list[bytes], cuts: list[int]) -> None:
    secrets = [b"abab", b"ababab", b"bcbcb"]
    text = b"".join(parts)
    whole, shown = masked(text, secrets, []), masked(text, secrets, cuts)
    assert shown == whole, "the cuts change nothing"
    assert not any(secret in piece for secret in secrets for piece in shown.split(MASK))


@example(MASK * 2, [3])
@given(st.binary(max_size=400), pieces)
def test_what_is_no_secret_passes_unchanged(text: bytes, cuts: list[int]) -> None:
    secrets = [b"\x01\x02\x03\x04\x05", SECRET]
    assume(not any(secret in text for secret in secrets))
    assert masked(text, secrets, cuts) == text


def make_log(path: Path, *, segment: int = 1 << 20, segments: int = 4, line: int = 1000) -> Log:
    """A log with small limits."""
    return Log(os.fsencode(path), segment, segments, line)


def test_bytes_that_are_no_utf8_are_kept(tmp_path: Path) -> None:
    log = make_log(tmp_path / "run.log")
    log.write(b"\xc7\x80 \xff\xfe\x00 ok\n")
    assert (tmp_path / "run.log").read_bytes() == b"\xc7\x80 \xff\xfe\x00 ok\n"


def test_a_long_line_is_cut_into_lines(tmp_path: Path) -> None:
    log = make_log(tmp_path / "run.log", line=100)
    for _ in range(10):
        log.write(b"x" * 77)
    log.write(b"\nshort\n")
    lines = (tmp_path / "run.log").read_bytes().splitlines()
    assert max(len(line) for line in lines) <= 104
    assert b"".join(lines[:-1]) == b"x" * 770
    assert lines[-1] == b"short"


def test_a_long_line_is_not_cut_within_a_character(tmp_path: Path) -> None:
    text = "€" * 200
    log = make_log(tmp_path / "run.log", line=100)
    log.write(text.encode())
    lines = (tmp_path / "run.log").read_bytes().decode().splitlines()
    assert "".join(lines) == text


def test_a_progress_bar_is_one_line_however_long_it_runs(tmp_path: Path) -> None:
    log = make_log(tmp_path / "run.log", line=100)
    for percent in range(1000):
        log.write(b"\r%3d %%" % (percent // 10))
    assert b"\n" not in (tmp_path / "run.log").read_bytes()


@given(st.lists(st.binary(max_size=300), max_size=20), st.integers(1, 60))
def test_bounding_adds_line_ends_and_changes_nothing_else(chunks: list[bytes], limit: int) -> None:
    log = object.__new__(Log)
    log._column, log._line_bytes = 0, limit
    shown = b"".join(log._bounded(chunk) for chunk in chunks)
    assert shown.replace(b"\n", b"") == b"".join(chunks).replace(b"\n", b"")
    assert all(len(line.rstrip(b"\r\n")) <= limit + 4 for line in shown.splitlines())


def test_rotation_keeps_the_newest_segments_and_offsets_stay_true(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    log = make_log(path, segment=1000, segments=3)
    written = b"".join(b"line %06d\n" % number for number in range(1000))
    for begin in range(0, len(written), 330):
        log.write(written[begin : begin + 330])
    kept = sorted(each for each in tmp_path.iterdir() if each.suffix != ".times")
    assert len(kept) == 3
    assert logs.end(path) == len(written)
    oldest = int(sorted(each.name for each in kept)[1][-20:])
    data, after = logs.read(path, 0, 1 << 20)
    assert (data, after) == (written[oldest:], len(written))
    assert all(segment.read_bytes().endswith(b"\n") for segment in kept)


def test_a_log_goes_on_where_the_last_shim_left_it(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    for _ in range(3):
        log = make_log(path, segment=50)
        for number in range(10):
            log.write(b"line %06d\n" % number)
    assert logs.end(path) == 3 * 10 * 12
    data, _ = logs.read(path, 3 * 10 * 12 - 24, 100)
    assert data == b"line 000008\nline 000009\n"


def test_a_stream_without_line_ends_is_rotated_at_carriage_returns(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    log = make_log(path, segment=500, segments=3)
    for percent in range(2000):
        log.write(b"\r%4d" % percent)
    assert sum(each.stat().st_size for each in tmp_path.iterdir()) < 2000


def test_the_log_goes_on_when_its_directory_is_gone(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    log = make_log(folder / "run.log", segment=20)
    log.write(b"before\n")
    shutil.rmtree(folder)
    for number in range(20):
        log.write(b"after %d\n" % number)
    assert log.lost == 0
