"""Small pieces of the sentences that the user reads."""

from collections.abc import Sequence
from datetime import UTC, datetime

LONGEST = 300


def short(text: str) -> str:
    """A reason fit to stand inside a sentence: one line, no full stop, at most LONGEST characters."""
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def sentence(said: object) -> str:
    """The text (of a refusal, say) as a sentence: with a capital and a full stop. A key of the YAML stays as it is."""
    text = str(said)
    first = text.split(" ", 1)[0].rstrip(".:,;")
    begun = text if "_" in first or "." in first else text[:1].upper() + text[1:]
    return begun + ("" if text.endswith((".", "?", "!")) else ".")


def after(text: str) -> str:
    """ ": text" to follow the thing it explains, or nothing."""
    line = short(text)
    return f": {line}" if line else ""


def at(moment: datetime) -> str:
    """A moment that stays the same text while time passes (a countdown would be news every second)."""
    return moment.astimezone(UTC).strftime("%H:%M:%S UTC")


def seconds(value: float) -> str:
    """20 s, 2.5 s."""
    return f"{value:g} s"


def times(count: int) -> str:
    """once, twice, 3 times."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def some(count: int, what: str = "replica") -> str:
    """1 replica, 3 replicas."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def named(numbers: Sequence[int], most: int = 3) -> str:
    """replica 4; replicas 4 and 5; 17 replicas."""
    if len(numbers) == 1:
        return f"replica {numbers[0]}"
    if len(numbers) > most:
        return some(len(numbers))
    return "replicas " + ", ".join(map(str, numbers[:-1])) + f" and {numbers[-1]}"


def named_versions(numbers: Sequence[int]) -> str:
    """version 4; versions 2 and 4."""
    if len(numbers) == 1:
        return f"version {numbers[0]}"
    return "versions " + ", ".join(map(str, numbers[:-1])) + f" and {numbers[-1]}"
