"""What commands print: aligned tables, short times, colours on a terminal only, and nothing that a terminal obeys."""

import shutil
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from django.utils.termcolors import make_style

from replicas.core.values import OperationStatus, ReplicaState, RolloutState, ServiceStatus
from replicas.models import Event

GAP = "  "
AUDITED = {"channel": "channel", "person": "user", "role": "role", "token": "token", "pruning": "pruning"}
SMALLEST_LAST = 20  # columns: the last column of a table is never cut below this

_GOOD = make_style(fg="green")
_BUSY = make_style(fg="cyan")
_WORRY = make_style(fg="yellow")
_BAD = make_style(fg="red", opts=("bold",))
_PAST = make_style(opts=("bold",), fg="black")

Style = Callable[[str], str]
STYLES: dict[str, Style] = {
    ReplicaState.PENDING: _BUSY,
    ReplicaState.PROVISIONING: _BUSY,
    ReplicaState.STARTING: _BUSY,
    ReplicaState.READY: _GOOD,
    ReplicaState.NOT_READY: _WORRY,
    ReplicaState.DRAINING: _WORRY,
    ReplicaState.SHUTTING_DOWN: _WORRY,
    ReplicaState.TERMINATED: _PAST,
    ReplicaState.FAILED: _BAD,
    ReplicaState.FAILED_PROVISION: _BAD,
    ReplicaState.FAILED_INITIAL_DELAY: _BAD,
    ReplicaState.FAILED_PROBING: _BAD,
    ReplicaState.FAILED_CLEANUP: _BAD,
    ReplicaState.PREEMPTED: _WORRY,
    ServiceStatus.CONTROLLER_INIT: _BUSY,
    ServiceStatus.REPLICA_INIT: _BUSY,
    ServiceStatus.NO_REPLICA: _WORRY,
    ServiceStatus.DOWN: _PAST,
    OperationStatus.QUEUED: _BUSY,
    OperationStatus.RUNNING: _BUSY,
    OperationStatus.WAITING: _WORRY,
    OperationStatus.SUCCEEDED: _GOOD,
    OperationStatus.CANCELLED: _PAST,
    RolloutState.PROGRESSING: _BUSY,
    RolloutState.ABORTED: _WORRY,
    RolloutState.SUPERSEDED: _PAST,
    "PAUSED": _WORRY,
    "CANCELLING": _WORRY,
}


class Paint:
    """Colours words by what they mean; `on` is False where the output is no terminal."""

    def __init__(self, on: bool) -> None:
        self.on = on

    def word(self, word: str, shown: str | None = None) -> str:
        """`shown` (by default the word itself) in the colour of the word."""
        style = STYLES.get(word) if self.on else None
        text = word if shown is None else shown
        return style(text) if style else text


def clean(text: str) -> str:
    """The text on one line, without the control characters that a terminal would obey."""
    return "".join(c if unicodedata.category(c)[0] != "C" else " " if c in "\n\r\t" else "�" for c in text)


def width(text: str) -> int:
    """Columns that the text takes on a terminal."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def cut(text: str, columns: int) -> str:
    """The text, shortened to so many columns; its end is then an ellipsis."""
    if width(text) <= columns:
        return text
    while text and width(text) > columns - 1:
        text = text[:-1]
    return text + "…"


def table(heads: Sequence[str], rows: Iterable[Sequence[object]], paint: Paint, columns: int | None = None) -> str:
    """Rows below their heads, aligned. Cells that are words of ours get their colour.

    `columns` is the width of the terminal, to which the last column is cut; None cuts nothing.
    """
    cells = [[clean(str(cell)) for cell in row] for row in rows]
    widths = [max(map(width, column)) for column in zip(heads, *cells, strict=True)]
    if columns is not None:
        widths[-1] = min(widths[-1], max(SMALLEST_LAST, columns - sum(widths[:-1]) - len(GAP) * (len(heads) - 1)))
    lines = [GAP.join(_padded(head, size) for head, size in zip(heads, widths, strict=True)).rstrip()]
    for row in cells:
        parts = [paint.word(cell, _padded(cut(cell, size), size)) for cell, size in zip(row, widths, strict=True)]
        lines.append(GAP.join(parts).rstrip())
    return "\n".join(lines)


def _padded(text: str, columns: int) -> str:
    return text + " " * (columns - width(text))


def terminal_columns() -> int:
    """The width of the terminal."""
    return shutil.get_terminal_size().columns


def span(seconds: float) -> str:
    """A length of time in its two largest units: 7s, 3m05s, 2h10m, 5d03h."""
    whole = max(0, int(seconds))
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if days:
        return f"{days}d{hours % 24:02}h"
    if hours:
        return f"{hours}h{minutes % 60:02}m"
    if minutes:
        return f"{minutes}m{whole % 60:02}s"
    return f"{whole}s"


def age(moment: datetime | None, now: datetime) -> str:
    """How long ago; "-" for never."""
    return "-" if moment is None else span((now - moment).total_seconds())


def size(count: int | None) -> str:
    """A number of bytes, short; "-" where it is not known."""
    if count is None:
        return "-"
    amount = float(count)
    for unit in ("B", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 100 else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GiB"


def event_line(event: Event, paint: Paint, *, with_id: bool = True) -> str:
    """One event on one line: id, time (UTC), what it is about, what happened, from what to what, why and by whom."""
    change = ""
    if event.old != event.new:
        change = " → ".join(paint.word(word) for word in (event.old, event.new) if word)
    reason = clean(event.reason)
    by = f" ({clean(event.actor)})" if event.actor and event.actor not in reason else ""
    parts = [f"{event.pk:>7}"] if with_id else []
    parts += [f"{event.at:%Y-%m-%d %H:%M:%S}", f"{clean(subject(event)):<18}", f"{event.trigger:<15}", change]
    return GAP.join(filter(None, [*parts, f"{reason}{by}".strip()]))


def subject(event: Event) -> str:
    """What the event is about, as a person would name it."""
    if event.kind == "version":
        return f"{event.service_name} v{event.data.get('number')}"
    if event.kind == "rollout":
        return f"{event.service_name} to v{event.data.get('to_version')}"
    if event.kind in AUDITED:
        return f"{AUDITED[event.kind]} {event.data.get('name', '')}".rstrip()
    if event.kind == "operation":
        return f"{event.service_name}/{event.number} {str(event.data.get('kind', '')).lower()}"
    return event.service_name if event.number is None else f"{event.service_name}/{event.number}"
