"""Reads `show stat`: what each backend and each of its servers does, in plain values."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

ASK = "show stat -1 6 -1"  # all proxies; backends and servers
HEAD = "# pxname,svname,"
BACKEND = "BACKEND"


class Unreadable(Exception):
    """The text is not what `show stat` prints."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Of a server or a backend. `total`, `errors` and `codes` count since the worker began.

    `in_flight`: requests it has now; `queued`: those that wait for it; `codes`: answers by class, 1xx to 5xx.
    """

    name: str
    status: str = ""
    address: str = ""
    weight: int = 0
    in_flight: int = 0
    queued: int = 0
    total: int = 0
    errors: int = 0
    codes: tuple[int, ...] = (0, 0, 0, 0, 0)

    @property
    def out(self) -> bool:
        """Whether it was taken out of traffic by us."""
        return self.status.startswith("MAINT")

    @property
    def up(self) -> bool:
        """Whether it gets traffic."""
        return self.status.startswith("UP")


@dataclass(slots=True)
class Backend:
    """A backend with its servers by name."""

    own: Figures
    servers: dict[str, Figures] = field(default_factory=dict)


def parse(text: str) -> dict[str, Backend]:
    """Backends by name. Raises Unreadable."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines or not lines[0].startswith(HEAD):
        raise Unreadable(f"no table of statistics, but {text[:100]!r}")
    names = lines[0].removeprefix("# ").split(",")
    found: dict[str, Backend] = {}
    servers: list[tuple[str, Figures]] = []
    for row in _rows(lines[1:]):
        if len(row) < len(names) - 1:
            raise Unreadable(f"a line of statistics is cut short: {','.join(row)[:100]!r}")
        cells = dict(zip(names, row, strict=False))
        figures = _figures(cells)
        if figures.name == BACKEND:
            found[cells["pxname"]] = Backend(figures)
        else:
            servers.append((cells["pxname"], figures))
    for backend, figures in servers:
        if backend not in found:
            raise Unreadable(f"server {backend}/{figures.name} has no backend")
        found[backend].servers[figures.name] = figures
    return found


def _rows(lines: Sequence[str]) -> Iterator[list[str]]:
    try:
        yield from csv.reader(lines)
    except csv.Error as error:
        raise Unreadable(f"no table of statistics: {error}") from None


def _figures(cells: dict[str, str]) -> Figures:
    try:
        return Figures(
            name=cells["svname"],
            status=cells["status"],
            address=cells.get("addr", ""),
            weight=_number(cells, "weight"),
            in_flight=_number(cells, "scur"),
            queued=_number(cells, "qcur"),
            total=_number(cells, "stot"),
            errors=_number(cells, "econ") + _number(cells, "eresp"),
            codes=tuple(_number(cells, f"hrsp_{kind}xx") for kind in range(1, 6)),
        )
    except (KeyError, ValueError) as error:
        raise Unreadable(f"statistics without a usable {error}") from None


def _number(cells: dict[str, str], name: str) -> int:
    return int(cells.get(name) or 0)
