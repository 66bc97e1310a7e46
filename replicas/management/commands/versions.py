"""`versions SERVICE`: the history of a service, and what lies between two of its versions."""

import difflib
import json
from typing import Any

from django.core.management.base import CommandParser

from replicas import clock
from replicas.core.spec import describe, diff
from replicas.management.printing import age, clean, table
from replicas.management.verb import Exit, Verb, clean_lines, fail, find_service, whole
from replicas.models import Rollout, Service, ServiceVersion
from replicas.models.public import Row, stamp
from replicas.web.versions import others

HEADS = ("VERSION", "ACTIVE", "AGE", "BY", "ROLLOUT", "WHY")
MOST = 2**31 - 1


class Command(Verb):
    """Prints the versions, newest first, or the difference of two."""

    help = "List the versions of a service: who made each, when and why, and what became of it."
    examples = "  manage.py versions web\n  manage.py versions web --diff 3 5\n  manage.py versions web --json\n"

    def add_arguments(self, parser: CommandParser) -> None:
        """SERVICE and what to print."""
        parser.add_argument("service", metavar="SERVICE")
        parser.add_argument(
            "--diff",
            metavar=("A", "B"),
            nargs=2,
            type=whole(1, MOST, "version number"),
            help="what lies between two versions, field by field and line by line",
        )
        parser.add_argument("--json", action="store_true", help="a JSON list, newest first; with --diff an object")

    def handle(self, *, service: str, **options: Any) -> None:
        """Print."""
        found = find_service(service)
        if options["diff"]:
            old, new = (_version(found, number) for number in options["diff"])
            self.say(json.dumps(_difference(old, new), indent=2) if options["json"] else self._told(old, new))
            return
        versions = list(ServiceVersion.objects.filter(service=found).defer("text", "spec", "sealed"))
        rows = _rows(found, versions)
        self.say(json.dumps(rows, indent=2) if options["json"] else self._table(found, versions, rows))

    def _table(self, service: Service, versions: list[ServiceVersion], rows: list[Row]) -> str:
        if not versions:
            return f"{service.name} has no version."
        now = clock.now()
        cells = [
            (
                row["version"],
                "yes" if row["active"] else "",
                age(version.created_at, now),
                row["by"] or "-",
                row["rollout"]["state"] if row["rollout"] else "-",
                row["message"],
            )
            for version, row in zip(versions, rows, strict=True)
        ]
        return table(HEADS, cells, self.paint, self.columns)

    def _told(self, old: ServiceVersion, new: ServiceVersion) -> str:
        found = _difference(old, new)
        if not found["fields"] and not found["text"]:
            return f"Versions {old.number} and {new.number} ask for the same."
        fields = [f"  {clean_lines(line)}" for line in found["fields"]]
        return "\n".join([f"version {old.number} → version {new.number}", *fields, *map(clean, found["text"])])


def _version(service: Service, number: int) -> ServiceVersion:
    version = ServiceVersion.objects.filter(service=service, number=number).first()
    if version is None:
        known = f"its versions are 1 to {service.last_version}" if service.last_version else "it has none"
        fail(f"Service {service.name} has no version {number}; {known}.", Exit.NOT_FOUND)
    return version


def _rows(service: Service, versions: list[ServiceVersion]) -> list[Row]:
    """The documented JSON: the versions, each with the latest rollout to it."""
    rollouts = {rollout.to_version: rollout for rollout in Rollout.objects.filter(service=service).order_by("id")}
    return [_row(service, version, rollouts.get(version.number)) for version in versions]


def _row(service: Service, version: ServiceVersion, rollout: Rollout | None) -> Row:
    return {
        "version": version.number,
        "active": version.pk == service.version_id,
        "created_at": stamp(version.created_at),
        "by": version.created_by,
        "message": version.message,
        "digest": version.digest,
        "plan": version.plan,
        "rollout": None
        if rollout is None
        else {"kind": rollout.kind, "mode": rollout.mode, "state": rollout.state, "reason": rollout.reason},
    }


def _difference(old: ServiceVersion, new: ServiceVersion) -> Row:
    names = f"version {old.number}", f"version {new.number}"
    lines = difflib.unified_diff(old.text.splitlines(), new.text.splitlines(), *names, lineterm="")
    return {
        "old": old.number,
        "new": new.number,
        "fields": [*describe(diff(old.spec, new.spec)), *others(old, new)],
        "text": list(lines),
    }
