"""Small pieces of sentences."""

from datetime import timedelta, timezone

import pytest

from replicas.core.wording import LONGEST, after, at, named, seconds, sentence, short, some, times
from tests.core.cast import NOW


def test_a_reason_becomes_one_line_without_a_full_stop() -> None:
    assert short("  setup failed:\n\tno such file.\r\n") == "setup failed: no such file"


def test_a_long_reason_is_cut() -> None:
    assert len(short("x" * 5000)) == LONGEST
    assert short("x" * 5000).endswith("…")
    assert short("x" * LONGEST) == "x" * LONGEST


def test_a_reason_follows_a_colon_or_is_not_there() -> None:
    assert after("exit code 7") == ": exit code 7"
    assert after("  ") == ""


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("it is gone", "It is gone."),
        ("gone. Apply it", "Gone. Apply it."),
        ("service.endpoint_port 8000 is taken", "service.endpoint_port 8000 is taken."),
        ("endpoint_port is taken.", "endpoint_port is taken."),
    ],
)
def test_a_sentence_begins_with_a_capital_but_for_a_key(said: str, text: str) -> None:
    assert sentence(said) == text


def test_a_moment_is_told_in_one_zone() -> None:
    assert at(NOW.astimezone(timezone(timedelta(hours=5)))) == "12:00:00 UTC"


@pytest.mark.parametrize(("value", "text"), [(20.0, "20 s"), (0.5, "0.5 s"), (300, "300 s")])
def test_seconds(value: float, text: str) -> None:
    assert seconds(value) == text


def test_counts() -> None:
    assert [times(n) for n in (1, 2, 3)] == ["once", "twice", "3 times"]
    assert [some(n) for n in (0, 1, 2)] == ["0 replicas", "1 replica", "2 replicas"]
    assert some(2, "older replica") == "2 older replicas"


def test_replicas_are_named_as_long_as_they_are_few() -> None:
    assert named([4]) == "replica 4"
    assert named([4, 5]) == "replicas 4 and 5"
    assert named([4, 5, 6]) == "replicas 4, 5 and 6"
    assert named([4, 5, 6, 7]) == "4 replicas"
