"""Choices and checks for columns that hold one of a closed set of words, and what tells live rows from history."""

from collections.abc import Iterable
from enum import StrEnum

from django.db import models

# Of replicas and of operations, where check constraints keep states and ends together. Asked in this way the database
# finds the rows by an index: SQLite does not see that a list of states in parameters is that of an index's condition.
ALIVE = models.Q(ended_at__isnull=True)
ENDED = models.Q(ended_at__isnull=False)


def word(words: type[StrEnum], **options: object) -> "models.CharField[str, str]":
    """A short text column that holds one of `words`."""
    return models.CharField(max_length=32, choices=[(w.value, w.value) for w in words], **options)  # type: ignore[arg-type]


def one_of(column: str, words: Iterable[StrEnum], name: str) -> models.CheckConstraint:
    """The database refuses anything else in `column`."""
    return models.CheckConstraint(condition=models.Q(**{f"{column}__in": sorted(w.value for w in words)}), name=name)
