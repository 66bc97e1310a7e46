"""What an operation's log has of a setup's output: each byte once, wherever a step was cut off, and in order.

Before something is appended, a note says what that will be and where the log ends. The next step compares: as much as
is there of it has been told, be it a part, and be the checkpoint lost.
"""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from replicas.providers import joblog, logs, notes

COPIED_BYTES = 1 << 20  # in one step


@dataclass(frozen=True, slots=True)
class Note:
    """The bytes from `begin` to `end` of the output, and then `closing`, were to be appended at `place` of the log.
    `key` says which try of a setup and which attempt of a launch this was."""

    key: str
    begin: int
    end: int
    closing: str
    place: int


NOTE_TYPES = {"key": str, "begin": int, "end": int, "closing": str, "place": int}


class Telling:
    """Of one output into one log; `file` keeps the note."""

    def __init__(self, output: Path, log: Path, file: Path, key: str) -> None:
        self._output = output
        self._log = log
        self._file = file
        self._key = key
        self._note = self._read()

    @property
    def begun(self) -> bool:
        """Something of it was told, or was about to be."""
        return self._note is not None

    def go_on(self, begin: int, closing: str = "") -> None:
        """Append what has come since the last time (at first: since the offset `begin`) and, where it is given, the
        line `closing`, after which nothing more is told. A full disk costs a part of the log, and not the launch."""
        line = f"{closing}\n" if closing else ""
        if self._note is not None:
            begin, rest = self._told(self._note)
            line = line if rest is None else rest
            if rest == "":
                return
        data, end = logs.read(self._output, begin, COPIED_BYTES)
        if not data and not line:
            return
        try:
            self._write(Note(self._key, end - len(data), end, line, _size(self._log)))
            joblog.append(self._log, data + line.encode())
        except OSError:
            pass  # the log informs, and the output itself has it all

    def _told(self, note: Note) -> tuple[int, str | None]:
        """The offset up to which the output is in the log; and what is left of the closing line, if that is begun."""
        output = logs.read(self._output, note.begin, note.end - note.begin)[0]
        whole = output + note.closing.encode()
        there = _alike(whole, _piece(self._log, note.place, len(whole)))
        begun = bool(note.closing) and there > len(output)
        return min(note.begin + there, note.end), whole[there:].decode() if begun else None

    def _read(self) -> Note | None:
        found = notes.read_object(self._file) or {}
        if {name: type(value) for name, value in found.items()} != NOTE_TYPES or found["key"] != self._key:
            return None
        return Note(**found) if 0 <= found["begin"] <= found["end"] and found["place"] >= 0 else None

    def _write(self, note: Note) -> None:
        new = self._file.with_suffix(".new")
        new.write_text(json.dumps(asdict(note)))
        new.replace(self._file)


def _alike(one: bytes, other: bytes) -> int:
    """How many bytes both begin with."""
    if other.startswith(one):
        return len(one)
    return next((place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(other))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _piece(path: Path, begin: int, size: int) -> bytes:
    try:
        with open(path, "rb") as file:
            return os.pread(file.fileno(), size, begin)
    except FileNotFoundError:
        return b""
