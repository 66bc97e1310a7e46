"""`status [SERVICE]`: what is true of services and their replicas now."""

import json
from typing import Any

from django.core.management.base import CommandParser

from replicas import clock
from replicas.core.values import Desired, ReplicaState, RolloutState
from replicas.management.following import News, control_plane_runs
from replicas.management.printing import age, table
from replicas.management.standing import Standing, standing, standing_row
from replicas.management.steering import told
from replicas.management.verb import Verb, find_service
from replicas.models import Replica, Service
from replicas.web.outbox import newest

SERVICE_HEADS = ("NAME", "STATUS", "READY", "VERSION", "ENDPOINT", "REASON")
REPLICA_HEADS = ("NUMBER", "STATE", "VERSION", "AGE", "READY FOR", "URL", "PID", "REASON")
CLEAR = "\x1b[H\x1b[2J\x1b[3J"


class Command(Verb):
    """Prints services, and of a named one its replicas."""

    help = (
        "Show what is true of services now; of a named one also its replicas. Services that are down are shown with"
        " --all, or by name. Of ended replicas those are shown that failed and are still missed, or could not be"
        " cleaned up."
    )
    examples = (
        "  manage.py status\n"
        "  manage.py status web --watch\n"
        "  manage.py status --json | jq '.[] | {name, ready, target}'\n"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """SERVICE and how to show it."""
        parser.add_argument("service", metavar="SERVICE", nargs="?")
        parser.add_argument("--all", action="store_true", help="also services that are down, and ended replicas")
        parser.add_argument("--watch", "-w", action="store_true", help="show it anew at each change, until Ctrl-C")
        parser.add_argument(
            "--json", action="store_true", help="a JSON list; with --watch one on a line at each change"
        )

    def handle(self, *, service: str | None, all: bool, watch: bool, **options: Any) -> None:
        """Show once, or again and again."""
        if service is not None:
            find_service(service)
        if watch:
            self._watch(service, all, options["json"])
            return
        found = standing(service, everything=all)
        self.say(_json(found, indent=2) if options["json"] else self._text(found, service, all))
        if not options["json"] and not control_plane_runs():
            self.warn("The control plane is not running: this is what was last known. `manage.py up` starts it.")

    def _watch(self, name: str | None, everything: bool, as_json: bool) -> None:
        shown, seen, found = "", -1, []
        with News() as news:
            while True:
                at = newest()
                if at != seen:
                    seen, found = at, standing(name, everything=everything)
                text = _json(found) if as_json else self._text(found, name, everything)
                if text != shown:
                    self._show(text, redraw=not as_json)
                    shown = text
                news.wait()

    def _show(self, text: str, *, redraw: bool) -> None:
        if redraw and self.stdout.isatty():
            text = f"{CLEAR}{text}"
        elif redraw:
            text = f"{text}\n"
        self.say(text)

    def _text(self, found: list[Standing], name: str | None, everything: bool) -> str:
        if not found:
            if name is not None:
                return f"Service {name} was purged."
            return "There are no services." if everything else "No service is up. `status --all` shows all of them."
        text = table(SERVICE_HEADS, [_service_cells(each) for each in found], self.paint, self.columns)
        if name is None:
            return text
        if found[0].rollout is not None:
            text = f"{text}\n\n{told(found[0].rollout, _spec(found[0].service), clock.now(), self.paint)}"
        if not found[0].service.endpoint and found[0].service.endpoint_reason:
            text = f"{text}\n\nNo endpoint: {found[0].service.endpoint_reason}"
        rows = [_replica_cells(each) for each in found[0].shown]
        if not rows:
            return f"{text}\n\nIt has no replicas."
        heads, machines = REPLICA_HEADS, [_machine(replica) for replica, _ in found[0].shown]
        if any(machines):
            heads = (*heads[:3], "MACHINE", *heads[3:])
            rows = [(*row[:3], machine or "-", *row[3:]) for row, machine in zip(rows, machines, strict=True)]
        return f"{text}\n\n{table(heads, rows, self.paint, self.columns)}"


def _json(found: list[Standing], indent: int | None = None) -> str:
    return json.dumps([standing_row(each) for each in found], indent=indent)


def _service_cells(each: Standing) -> tuple[object, ...]:
    service = each.service
    version: object = service.version.number if service.version else "-"
    rollout = each.rollout
    if rollout is not None and rollout.state == RolloutState.PROGRESSING and rollout.from_version:
        version = f"{rollout.from_version} → {rollout.to_version}"
    return (
        service.name,
        service.status,
        f"{each.ready}/{service.target if service.desired == Desired.UP else 0}",
        version,
        service.endpoint or "-",
        service.reason,
    )


def _spec(service: Service) -> dict[str, Any]:
    return service.version.spec if service.version else {}


def _machine(replica: Replica) -> str:
    """spot A100:8 aws/us-east-1; "" where its provider says nothing of it."""
    kind = "" if replica.spot is None else "spot" if replica.spot else "on demand"
    return " ".join(filter(None, (kind, replica.accelerators, replica.place)))


def _replica_cells(shown: Any) -> tuple[object, ...]:
    replica, waits_for = shown
    now = clock.now()
    ready_for = "-"
    if replica.ready_at is not None and replica.state in ("READY", "NOT_READY"):
        ready_for = age(replica.ready_at, now)
    why = f"waits for {waits_for}" if waits_for else replica.reason
    if replica.state == ReplicaState.STARTING and replica.probe_ok is False:
        why = f"not ready yet: {replica.probe_detail}"
    return (
        replica.number,
        replica.state,
        replica.version_number,
        age(replica.created_at, now),
        ready_for,
        replica.url or "-",
        replica.pid or "-",
        why,
    )
