"""`events [SERVICE]`: what has happened, and what happens."""

import json
from typing import Any

from django.core.management.base import CommandParser
from django.db.models import Q

from replicas.management.following import News, Trail
from replicas.management.printing import event_line
from replicas.management.verb import Verb, unknown_service, whole
from replicas.models import Event, Service
from replicas.web.outbox import event_row

SHOWN = 50
MOST = 2**63 - 1


class Command(Verb):
    """Prints events, oldest first; ids grow in the order in which they were written."""

    help = "Print what has happened to services and their replicas, oldest first. Times are UTC."
    examples = (
        "  manage.py events web --limit 200\n"
        "  manage.py events --follow\n"
        "  manage.py events --json --after 1234        (everything since event 1234)\n"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """SERVICE and which of its events."""
        parser.add_argument("service", metavar="SERVICE", nargs="?")
        parser.add_argument("--follow", "-f", action="store_true", help="go on as they happen, until Ctrl-C")
        parser.add_argument("--json", action="store_true", help="a JSON object on each line")
        parser.add_argument("--after", metavar="ID", type=whole(0, MOST, "event id"), help="those with a higher id")
        parser.add_argument(
            "--limit",
            metavar="N",
            type=whole(0, MOST, "number of events"),
            help=f"the newest N, or with --after the first N; {SHOWN} if neither is given",
        )

    def handle(
        self, *, service: str | None, follow: bool, after: int | None, limit: int | None, **options: Any
    ) -> None:
        """Print, then follow."""
        events = Event.objects.all()
        if service is not None:
            events = events.filter(self._about(service))
        with News() as news:
            if after is None:
                newest = list(events.order_by("-id")[: SHOWN if limit is None else limit])
                after = newest[0].pk if newest else (events.order_by("-id").values_list("id", flat=True).first() or 0)
                self._print(reversed(newest), options["json"])
            elif limit is not None:
                page = list(events.filter(id__gt=after).order_by("id")[:limit])
                after = page[-1].pk if page else after
                self._print(page, options["json"])
            else:
                trail = Trail(events, after)
                self._print(trail.fresh(), options["json"])
                after = trail.after
            trail = Trail(events, after)
            while follow:
                self._print(trail.fresh(), options["json"])
                news.wait()

    def _about(self, name: str) -> Q:
        """The events of the service; those of one that was purged are found by its name."""
        found = Service.objects.filter(name=name).first()
        if found is not None:
            return Q(service=found)
        if not Event.objects.filter(service=None, service_name=name).exists():
            unknown_service(name)
        return Q(service=None, service_name=name)

    def _print(self, events: Any, as_json: bool) -> None:
        written = False
        for event in events:
            self.stdout.write(json.dumps(event_row(event)) if as_json else event_line(event, self.paint))
            written = True
        if written:
            self.stdout.flush()
