"""`scale SERVICE N`: want another number of replicas."""

from typing import Any

from django.core.management.base import CommandParser

from replicas.core.spec.kinds import MOST_REPLICAS
from replicas.core.wording import some
from replicas.management.verb import Verb, actor, find_service, whole
from replicas.web import intake


class Command(Verb):
    """Changes the target; the controller launches or takes down what is missing or too much."""

    help = "Want N replicas of a service. The next apply of its YAML sets the number that stands there."
    foreseen = (*Verb.foreseen, intake.IntakeError)
    examples = "  manage.py scale web 5\n  manage.py scale web 0\n"

    def add_arguments(self, parser: CommandParser) -> None:
        """SERVICE and N."""
        parser.add_argument("service", metavar="SERVICE")
        parser.add_argument("target", metavar="N", type=whole(0, MOST_REPLICAS, "number of replicas"))

    def handle(self, *, service: str, target: int, **_: Any) -> None:
        """Write the wish."""
        found = find_service(service)
        before = found.target
        intake.scale(found, target, actor=actor())
        if before == target:
            self.say(f"{found.name}: has {some(target)} as its target already")
            return
        self.say(f"{found.name}: target {before} → {target}")
        self.warn_unless_running()
