"""Tables, times and words as they are printed."""

import pytest

from replicas.management.printing import Paint, clean, cut, size, span, table, width

PLAIN, COLOURED = Paint(False), Paint(True)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(-5, "0s"), (0, "0s"), (59.9, "59s"), (60, "1m00s"), (3599, "59m59s"), (3600, "1h00m"), (90_000, "1d01h")],
)
def test_times(seconds: float, shown: str) -> None:
    assert span(seconds) == shown


@pytest.mark.parametrize(
    ("count", "shown"),
    [(None, "-"), (0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (200 << 20, "200 MiB"), (3 << 30, "3.0 GiB")],
)
def test_sizes(count: int | None, shown: str) -> None:
    assert size(count) == shown


def test_columns_are_aligned_also_with_wide_characters() -> None:
    lines = table(("NAME", "X"), [("a", "1"), ("日本", "2"), ("e\u0301", "3")], PLAIN).splitlines()
    assert lines == ["NAME  X", "a     1", "日本  2", "e\u0301     3"]


def test_the_last_column_is_cut_to_the_terminal() -> None:
    lines = table(("A", "REASON"), [("a", "x" * 100)], PLAIN, columns=40).splitlines()
    assert len(lines[1]) == 40
    assert lines[1].endswith("x…")
    assert len(table(("A", "REASON"), [("a", "x" * 100)], PLAIN).splitlines()[1]) == 103


def test_words_have_colours_that_do_not_shift_columns() -> None:
    rows = [("READY", "1"), ("PENDING", "2"), ("other", "3")]
    plain = table(("STATE", "N"), rows, PLAIN).splitlines()
    coloured = table(("STATE", "N"), rows, COLOURED).splitlines()
    assert coloured[1] == f"\x1b[32m{'READY':7}\x1b[0m  1"
    assert coloured[3] == plain[3]


def test_nothing_that_a_terminal_obeys_passes() -> None:
    assert clean("a\x1b]0;title\x07b\r\nc\u202ed\x9b") == "a�]0;title�b  c�d�"
    assert clean("naïve – 日本 ✓") == "naïve – 日本 ✓"


def test_texts_are_cut_by_columns() -> None:
    assert cut("日本語", 4) == "日…"
    assert width(cut("日本語", 4)) <= 4
    assert cut("abc", 3) == "abc"
