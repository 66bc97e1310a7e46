"""`restart SERVICE`: replace every replica by way of a new version with the same text."""

from typing import Any

from django.core.management.base import CommandParser

from replicas.actions import services
from replicas.management.verb import Verb, actor, fail, find_service


class Command(Verb):
    """Makes a copy of the active version the active one, which forgives earlier failures."""

    help = "Replace all replicas of a service one after the other; launches that had been given up begin anew."
    examples = "  manage.py restart web\n"

    def add_arguments(self, parser: CommandParser) -> None:
        """SERVICE."""
        parser.add_argument("service", metavar="SERVICE")

    def handle(self, *, service: str, **_: Any) -> None:
        """Write the wish."""
        found = find_service(service)
        version = services.restart(found.pk, actor=actor())
        if version is None:
            fail(f"Service {found.name} is taken down. Apply it again to bring it up.")
        self.say(f"{found.name}: version {version.number} replaces every replica")
        self.warn_unless_running()
