"""`terminate SERVICE NUMBER`: want one replica gone."""

from typing import Any

from django.core.management.base import CommandParser

from replicas.actions import replicas
from replicas.core.values import Desired, ReplicaState
from replicas.management.verb import Exit, Verb, actor, fail, find_replica, find_service, whole

MOST_NUMBER = 2**31 - 1


class Command(Verb):
    """Writes the wish on the replica; the controller takes it down and launches another in its place."""

    help = "Take one replica down. Another takes its place while the service wants it: use `scale` to have fewer."
    examples = "  manage.py terminate web 3\n  manage.py terminate web 3 --purge\n"

    def add_arguments(self, parser: CommandParser) -> None:
        """SERVICE, NUMBER and --purge."""
        parser.add_argument("service", metavar="SERVICE")
        parser.add_argument("number", metavar="NUMBER", type=whole(1, MOST_NUMBER, "replica number"))
        parser.add_argument("--purge", action="store_true", help="forget it, with its logs, once it has ended")

    def handle(self, *, service: str, number: int, purge: bool, **_: Any) -> None:
        """Write the wish."""
        found = find_service(service)
        before = find_replica(found, number)
        replica = replicas.want_gone(found.pk, number, purge=purge, actor=actor())
        if replica is None:
            fail(f"Replica {number} of {found.name} was forgotten just now.", Exit.NOT_FOUND)
        if ReplicaState(before.state).ended:
            done = "is forgotten" if purge else f"has ended already ({before.state}); --purge forgets it"
            self.say(f"{found.name}/{number} {done}")
            return
        follows = "; another takes its place" if found.desired == Desired.UP and found.target else ""
        self.say(f"{found.name}/{number} is going to be terminated{' and forgotten' if purge else ''}{follows}")
        self.warn_unless_running()
