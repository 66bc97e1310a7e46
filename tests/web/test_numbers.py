"""Numbers out of addresses: bounded, however they are written."""

import pytest
from django.core.exceptions import ValidationError

from replicas.web.numbers import WholeField, whole


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


@pytest.mark.parametrize(("text", "number"), [("10", 10), (" 7 ", 7), ("+3", 3), ("0", 0), ("", None), (5, 5)])
def test_a_field_takes_what_people_write(text: object, number: int | None) -> None:
    assert WholeField(min_value=0, required=False).clean(text) == number


@pytest.mark.parametrize("text", ["1_0", "\u0663", "\uff11", "1.0", "1e3", "0x10", "9" * 5000, "-1", "x"])
def test_a_field_refuses_what_python_would_take(text: str) -> None:
    with pytest.raises(ValidationError):
        WholeField(min_value=0, max_value=100).clean(text)
