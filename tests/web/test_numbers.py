"""Numbers out of addresses: bounded, however they are written."""

import pytest

from replicas.web.numbers import whole


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("17", 17),
        ("0" * 30 + "17", 17),
        ("0" * 5000, 0),
        ("100", 100),
        ("101", None),
        ("0" * 20 + "999", None),
        ("9" * 5000, None),
        ("", None),
        (None, None),
        ("-1", None),
        ("+1", None),
        ("1_0", None),
        (" 1", None),
        ("1.0", None),
        ("\u0663", None),
        ("\u00b2", None),
    ],
)
def test_a_number_is_taken_only_within_its_bounds(text: str | None, number: int | None) -> None:
    assert whole(text, most=100) == number


def test_the_least_is_a_bound_too() -> None:
    assert [whole(text, least=2, most=3) for text in "1234"] == [None, 2, 3, None]
