"""Which commands bring the members of a backend from what they are to what they should be. A pure decision."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from replicas.gateway.config import server
from replicas.gateway.statistics import Figures
from replicas.gateway.values import Entry, Member

# What HAProxy answers when a command works; anything else is an error.
DONE = ("New server registered.", "Server deleted.")
STILL_BUSY = ("Server still has connections attached to it",)


@dataclass(frozen=True, slots=True)
class Step:
    """One line for the socket. `out`: it takes a member out, so what is in flight is to be counted after it."""

    line: str
    accepted: tuple[str, ...] = DONE
    out: bool = False


def steps(
    entry: Entry, wanted: Iterable[Member], actual: Mapping[str, Figures], kept: Iterable[str] = ()
) -> Iterator[Step]:
    """The steps for one backend. `kept`: names that stay known, out of traffic, because what they do is counted."""
    members = {member.name: member for member in wanted}
    for name, figures in actual.items():
        place = f"{entry.backend}/{name}"
        if name in members and figures.address in ("", members[name].address):
            yield from _keep(place, members[name], figures)
        elif not figures.out:
            yield Step(f"set server {place} state maint", out=True)
        elif name not in kept and figures.in_flight == 0:
            yield Step(f"del server {place}", DONE + STILL_BUSY)
    for name, member in members.items():
        if name not in actual:
            place = f"{entry.backend}/{name}"
            added = f"add server {place} {server(entry, member)}"
            yield Step(f"{added}; enable health {place}; enable server {place}")


def _keep(place: str, member: Member, figures: Figures) -> Iterator[Step]:
    """A member that is there and should be."""
    if figures.weight != member.weight:
        yield Step(f"set server {place} weight {member.weight}")
    if figures.out:
        yield Step(f"set server {place} state ready; enable health {place}")


def for_old_worker(line: str) -> Iterator[str]:
    """The line in words that a worker of an earlier configuration takes too: it refuses `set server` and `enable`."""
    words = line.split("; ")[0].split()
    backend, _, name = words[2].partition("/")
    if words[:2] == ["set", "server"]:
        if words[3] == "state":
            yield f"member {backend} {name} {words[4]}"
        return
    yield line.split("; ")[0]
    if words[:2] == ["add", "server"]:
        yield f"member {backend} {name} ready"
