"""Choices and checks for columns that hold one of a closed set of words."""

from collections.abc import Iterable
from enum import StrEnum

from django.db import models


def word(words: type[StrEnum], **options: object) -> "models.CharField[str, str]":
    """A short text column that holds one of `words`."""
    return models.CharField(max_length=32, choices=[(w.value, w.value) for w in words], **options)  # type: ignore[arg-type]


def one_of(column: str, words: Iterable[StrEnum], name: str) -> models.CheckConstraint:
    """The database refuses anything else in `column`."""
    return models.CheckConstraint(condition=models.Q(**{f"{column}__in": sorted(w.value for w in words)}), name=name)
