"""Between rows and the gateway: which replicas get traffic, what is in flight on those that go, who has which address.

A part of the controller's process and its loop: see docs/decisions/0004-gateway.md.
"""

import logging
import os
import socket
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.conf import settings

from replicas import clock
from replicas.actions import endpoints
from replicas.controller import serving
from replicas.controller.sampling import SAMPLE_SECONDS, Sampler
from replicas.controller.serving import Row, Seat
from replicas.core.values import ReplicaState
from replicas.core.views import ReplicaView
from replicas.gateway import binary
from replicas.gateway.accesslog import Reader
from replicas.gateway.config import Options
from replicas.gateway.dataplane import DataPlane, free
from replicas.gateway.places import Places
from replicas.gateway.values import Wanted
from replicas.jobs import beats

log = logging.getLogger(__name__)

ACTOR = "gateway"
LOOK_SECONDS = 1.0  # HAProxy is asked at least so often
QUIET_LOOK_SECONDS = 3.0
READ_SECONDS = 15.0  # rows are read at least so often, also when no event says that they have changed
DRAIN_SECONDS = 0.1
BEAT_SECONDS = 2.0
COUNTED = (ReplicaState.DRAINING, ReplicaState.NOT_READY)
WAITS = "the gateway is being prepared"


@dataclass(slots=True)
class Traffic:
    """Keeps the gateway as the rows are. Nothing here is lost with the process: HAProxy and the rows have it all."""

    plane: DataPlane | None
    reader: Reader | None = None
    why: str = ""  # there is no gateway
    cursor: int = -1
    rows: Sequence[Row] = ()
    wanted: Wanted = field(default_factory=Wanted)
    leaving: dict[int, Seat] = field(default_factory=dict)  # by replica id: out of traffic, and still at work
    in_flight: dict[int, int] = field(default_factory=dict)  # by replica id, of those that leave
    outside: frozenset[int] = frozenset()  # replicas that nobody can speak HTTP with
    ended: bool = False  # something in flight has ended since the last tick
    sampler: Sampler = field(default_factory=Sampler)
    held: dict[int, int] = field(default_factory=dict)  # requests that wait for a first replica, by service id
    due: dict[str, float] = field(default_factory=dict)
    served: bool = False

    @classmethod
    def of(cls, config: Any) -> "Traffic":
        """The traffic of a home; without a gateway where that is switched off or there is no HAProxy."""
        found = binary.find(os.environ) if config.gateway else binary.Found("", binary.OFF)
        if not found.path:
            return cls(None, why=found.why)
        places = Places.of(config)
        places.prepare()
        options = Options(places, config.gateway_host, config.gateway_port, config.gateway_connections)
        made = cls(DataPlane(options, found.path))
        made.reader = Reader(places.access, places.logs, made.name_of)
        return made

    def close(self) -> None:
        """Let go of the sockets. HAProxy goes on as it is."""
        if self.reader is not None:
            self.reader.close()

    def name_of(self, service_id: int) -> str | None:
        """The name of a service that is served."""
        return next((row.name for row in self.rows if row.id == service_id), None)

    def every(self, what: str, seconds: float) -> bool:
        """True once in so many seconds."""
        now = time.monotonic()
        if now < self.due.get(what, 0.0):
            return False
        self.due[what] = now + seconds
        return True

    def follow(self, newest: int) -> bool:
        """Bring the gateway up to date. `newest`: the newest event; rows are read again when it is a new one.

        True when it has written a row itself.
        """
        news = newest != self.cursor
        if self.every("read", READ_SECONDS) or news:
            self.cursor = newest
            self.read()
        elif not (self.every("look", self.pace()) or (self.leaving and self.every("drain", DRAIN_SECONDS))):
            return False
        if self.plane is not None:
            kept = frozenset((seat.service_id, seat.name) for seat in self.leaving.values())
            self.served = self.plane.follow(self.wanted, kept)
            if self.served and self.every("beat", BEAT_SECONDS):
                beats.touch_file("gateway")
            self.count()
            self.sample()
        return self.tell()

    def pace(self) -> float:
        """Seconds between two looks: each second while there is traffic, or may be a first request."""
        empty = any(entry.hold > 0 and not self.wanted.members.get(entry.id) for entry in self.wanted.entries)
        return LOOK_SECONDS if empty or self.sampler.busy or not self.served else QUIET_LOOK_SECONDS

    def sample(self) -> None:
        """Once a second, keep what the gateway does."""
        if self.plane is None or self.reader is None or not self.every("sample", SAMPLE_SECONDS - 0.05):
            return
        if self.reader.drain():
            log.warning("gateway: more lines of access logs than can be taken")
        if not self.served:
            self.sampler.forget()
            return
        self.held = self.plane.held(self.wanted)
        self.sampler.sample(clock.now(), self.wanted.entries, self.plane.backends, self.reader.take(), self.held)

    # --- rows -----------------------------------------------------------------------------------------------------

    def read(self) -> None:
        """What the rows want of the gateway."""
        self.rows = serving.rows()
        if self.plane is None:
            return
        self.give_ports()
        seats = serving.seats([row.id for row in self.rows])
        entries, reasons = [], {}
        for row in self.rows:
            made = serving.entry_of(row, self.plane.options.places)
            if made is not None:
                entries.append(made)
                reasons[row.id] = row.reason
        members = defaultdict(list)
        for seat in seats:
            if seat.listed and seat.member:
                members[seat.service_id].append(seat.member)
        wanted = Wanted(tuple(entries), {key: tuple(found) for key, found in members.items()}, reasons)
        if wanted != self.wanted:  # the very same one costs the gateway nothing
            self.wanted = wanted
        self.leaving = {seat.replica_id: seat for seat in seats if seat.member and seat.state in COUNTED}
        self.outside = frozenset(seat.replica_id for seat in seats if seat.member is None)

    def give_ports(self) -> None:
        """See that each service has the port that it asks for, or one of its own."""
        for index, row in enumerate(self.rows):
            if not (row.up and row.addressed) or (row.port and row.asked in (None, row.port)):
                continue
            port = row.asked or self.free_port()
            if port is not None and endpoints.give(row.id, port, among=(row.port,), actor=ACTOR):
                self.rows = [*self.rows[:index], replace(row, port=port), *self.rows[index + 1 :]]

    def free_port(self) -> int | None:
        """The first port of the range that no service has and no program listens on."""
        config, taken = settings.ROLLCALL, endpoints.taken_ports()
        for port in range(config.endpoint_port_first, config.endpoint_port_last + 1):
            if port not in taken and port != config.gateway_port and free(config.gateway_host, port):
                return port
        return None

    # --- what is in flight ----------------------------------------------------------------------------------------

    def count(self) -> None:
        """Count what is in flight on the replicas that leave."""
        if self.plane is None:
            return
        if not self.leaving or not self.served:
            self.in_flight = {}
            return
        before = self.in_flight
        self.in_flight = {
            number: self.plane.in_flight(seat.service_id, seat.name) for number, seat in self.leaving.items()
        }
        self.ended |= any(count == 0 and before.get(number) != 0 for number, count in self.in_flight.items())

    def take_ended(self) -> bool:
        """Whether work in flight has ended since this was asked last."""
        ended, self.ended = self.ended, False
        return ended

    def measured(self, service_id: int, views: Iterable[ReplicaView]) -> list[ReplicaView]:
        """The views with what is in flight on those that leave.

        One that is not yet out of traffic counts as busy; and each one does while HAProxy does not answer, or was not
        asked yet: it may have been told of nothing, or come back with a file in which the replica still serves. One
        whose address is not of HTTP never served anybody.
        """
        asked = self.cursor >= 0
        if self.plane is None or (asked and service_id not in self.wanted.reasons):
            return list(views)
        known = dict.fromkeys(self.outside, 0) | (self.in_flight if self.served else {})
        return [replace(view, in_flight=known.get(view.id, 1)) if view.state in COUNTED else view for view in views]

    # --- what rows say --------------------------------------------------------------------------------------------

    def tell(self) -> bool:
        """Say in the rows where each service is served, or why it is not. True when that was news."""
        told, news = [], False
        for row in self.rows:
            endpoint, reason = self.said_of(row)
            if (endpoint, reason) != (row.endpoint, row.endpoint_reason):
                news |= endpoints.tell(row.id, endpoint, reason, actor=ACTOR)
                row = replace(row, endpoint=endpoint, endpoint_reason=reason)
            told.append(row)
        self.rows = told
        return news

    def said_of(self, row: Row) -> tuple[str, str]:
        """(address, "") or ("", why there is none)."""
        if not (row.up and row.addressed):
            return "", ""
        if self.plane is None:
            return "", self.why
        if row.asked is not None and row.asked != row.port:
            return "", f"port {row.asked} is the endpoint of another service: set another endpoint_port"
        if row.port is None:
            return "", "no port of ROLLCALL_ENDPOINT_PORT_FIRST to _LAST is free"
        if row.fault:
            return "", row.fault
        if row.id in self.plane.problems:
            return "", self.plane.problems[row.id]
        if not self.served:
            return (row.endpoint, "") if row.endpoint else ("", row.endpoint_reason or WAITS)
        return f"{row.scheme}://{shown_host(self.plane.options.host)}:{row.port}", ""


def shown_host(host: str) -> str:
    """The name under which others reach what listens on `host`."""
    if host in {"0.0.0.0", "::"}:  # noqa: S104  (a comparison)
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host
