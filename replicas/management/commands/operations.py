"""`operations`: launches and downs, their waits and retries; cancel one, or let it go on at once."""

import json
from typing import Any

from django.core.management.base import CommandParser

from replicas import clock
from replicas.actions import operations
from replicas.management.printing import age, size, span, table
from replicas.management.verb import Exit, Verb, actor, fail, whole
from replicas.models import Operation
from replicas.models.fields import ALIVE, ENDED
from replicas.models.public import operation_row, shown_status, why

SHOWN = 100
HEADS = ("ID", "KIND", "REPLICA", "STATUS", "AGE", "TOOK", "TRIES", "MEMORY", "WAITS FOR / ERROR / REASON")


class Command(Verb):
    """Lists operations, newest first."""

    help = "List the launches and downs that are not done yet; with --all also those that have ended."
    examples = "  manage.py operations --all\n  manage.py operations --cancel 17\n  manage.py operations --retry 18\n"

    def add_arguments(self, parser: CommandParser) -> None:
        """What to list, or what to do."""
        number = whole(1, 2**63 - 1, "operation id")
        parser.add_argument("--all", action="store_true", help=f"also ended ones, the newest {SHOWN}")
        parser.add_argument("--json", action="store_true", help="a JSON list")
        doing = parser.add_mutually_exclusive_group()
        doing.add_argument("--cancel", metavar="ID", type=number, help="stop a launch; its replica goes with it")
        doing.add_argument("--retry", metavar="ID", type=number, help="go on at once, or try a failed down again")

    def handle(self, *, cancel: int | None, retry: int | None, **options: Any) -> None:
        """List, or do."""
        if cancel is not None:
            self._known(cancel)
            operation = operations.request_cancel(cancel, actor=actor())
            self.say(f"{operations.told_cancelled(operation)} (Operation {cancel}.)")
        elif retry is not None:
            self._known(retry)
            operation = operations.request_retry(retry, actor=actor())
            again = f" as operation {operation.pk}" if operation.pk != retry else ""
            self.say(f"Operation {retry} ({_what(operation)}) is looked at again at once{again}.")
        else:
            self._list(options["all"], options["json"])
            return
        self.warn_unless_running()

    def _known(self, number: int) -> None:
        if not Operation.objects.filter(pk=number).exists():
            fail(f"There is no operation {number}. `manage.py operations --all` lists them.", Exit.NOT_FOUND)

    def _list(self, everything: bool, as_json: bool) -> None:
        rows = Operation.objects.select_related("replica", "service").order_by("-id")
        live = list(rows.filter(ALIVE))
        ended = list(rows.filter(ENDED)[:SHOWN]) if everything else []
        found = sorted(live + ended, key=lambda operation: -operation.pk)
        if as_json:
            self.say(json.dumps([{"service": o.service.name} | operation_row(o) for o in found], indent=2))
        elif found:
            self.say(table(HEADS, [_cells(operation) for operation in found], self.paint, self.columns))
        else:
            self.say("There are no operations." if everything else "No launch and no down is going on.")


def _what(operation: Operation) -> str:
    return f"{operation.kind.lower()} of {operation.service.name}/{operation.replica.number}"


def _cells(operation: Operation) -> tuple[object, ...]:
    now = clock.now()
    took = "-"
    if operation.started_at is not None:
        took = span(((operation.ended_at or now) - operation.started_at).total_seconds())
    return (
        operation.pk,
        operation.kind,
        f"{operation.service.name}/{operation.replica.number}",
        shown_status(operation),
        age(operation.created_at, now),
        took,
        operation.attempts,
        size(operation.peak_memory),
        why(operation),
    )
