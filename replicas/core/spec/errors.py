"""Errors of a spec: each names the field, the line, the cause and the next step."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Path = tuple[str | int, ...]

_BARE_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class SpecError:
    """One fault of a spec. `line` and `column` count from 1; `path` is like service.readiness_probe.path, or empty."""

    path: str
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        field = f"{self.path}: " if self.path else ""
        return f"line {self.line}, column {self.column}: {field}{self.message}"


class SpecErrors(Exception):
    """A text is not a spec. `errors` are in the order of the text; str() gives one a line."""

    def __init__(self, errors: Iterable[SpecError]):
        self.errors: tuple[SpecError, ...] = tuple(errors)
        super().__init__("\n".join(str(error) for error in self.errors))


class Refused(ValueError):
    """Values that a field cannot take: (path below the field, message) each. Raised inside field validators."""

    def __init__(self, *problems: tuple[Path, str]):
        self.problems = problems
        super().__init__("; ".join(message for _, message in problems))


def refuse(message: str, at: Sequence[str | int] = ()) -> Refused:
    """The error of a field validator that found one fault."""
    return Refused((tuple(at), message))


def path_text(path: Path) -> str:
    """The path as users read it: service.readiness_probe.path, resources.any_of[0], file_mounts["/data"]."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif not _BARE_KEY.fullmatch(part):
            text += f'["{clip(part)}"]'
        else:
            text += f".{clip(part)}" if text else clip(part)
    return text


def clip(text: str, limit: int = 60) -> str:
    """The text on one line, shortened in the middle of nothing: what an error message can carry."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
