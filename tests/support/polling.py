"""Waiting in tests: by asking again until a deadline, never by sleeping and hoping."""

import time
from collections.abc import Callable
from typing import TypeVar

from tests.support.patience import Patience

T = TypeVar("T")

POLL_SECONDS = 0.02


def eventually(predicate: Callable[[], T], timeout: float = 10.0, message: str | Callable[[], str] = "") -> T:
    """The first true value that `predicate` gives within `timeout` seconds; fails the test with `message` otherwise.

    The seconds are those of a machine with a processor for us (`Patience`).
    An AssertionError in the predicate counts as "not yet", and is shown if it is the last thing that happened.
    """
    patience = Patience(timeout)
    while True:
        last: AssertionError | None = None
        value = None
        try:
            value = predicate()
        except AssertionError as error:
            last = error
        if value:
            return value
        if patience.over():
            text = message() if callable(message) else message
            raise AssertionError(f"not within {timeout:g} s: {text or predicate} (last: {last or value!r})") from last
        time.sleep(POLL_SECONDS)
