"""`rollback SERVICE [VERSION]`: make an earlier version the active one again, as a new version."""

from typing import Any

from django.core.management.base import CommandParser

from replicas.actions import rollouts
from replicas.management.steering import tell_going_back
from replicas.management.verb import Verb, actor, find_service, whole

MOST = 2**31 - 1


class Command(Verb):
    """Makes a new version with the text, secrets and files of an old one."""

    help = (
        "Go back to an earlier version of a service, by default to the last other one that proved itself. What becomes"
        " active is a new version with its text, secrets and files; replicas of it that still run are adopted at once."
    )
    examples = "  manage.py rollback web\n  manage.py rollback web 3 --message slow\n"

    def add_arguments(self, parser: CommandParser) -> None:
        """SERVICE, VERSION and why."""
        parser.add_argument("service", metavar="SERVICE")
        parser.add_argument("version", metavar="VERSION", nargs="?", type=whole(1, MOST, "version number"))
        parser.add_argument("--message", "-m", metavar="M", default="", help="why, for the history")

    def handle(self, *, service: str, version: int | None, message: str, **_: Any) -> None:
        """Write the wish."""
        found = find_service(service)
        tell_going_back(self, found, rollouts.rollback(found.pk, version, actor=actor(), message=message))
