"""`scale SERVICE N`: want another number of replicas; `scale SERVICE auto`: leave it to the load again."""

from typing import Any

from django.core.management.base import CommandParser

from replicas.core.spec.kinds import MOST_REPLICAS
from replicas.core.wording import some
from replicas.management.verb import Verb, actor, find_service, whole
from replicas.web import intake


class Command(Verb):
    """Changes the target; the controller launches or takes down what is missing or too much."""

    help = (
        "Want N replicas of a service. The next apply of its YAML sets the number that stands there; where the YAML has"
        " a replica_policy, N stays until `scale SERVICE auto` leaves it to the load again."
    )
    foreseen = (*Verb.foreseen, intake.IntakeError)
    examples = "  manage.py scale web 5\n  manage.py scale web 0\n  manage.py scale web auto\n"

    def add_arguments(self, parser: CommandParser) -> None:
        """SERVICE and N."""
        parser.add_argument("service", metavar="SERVICE")
        parser.add_argument("target", metavar="N", type=number_or_auto, help="a number, or auto")

    def handle(self, *, service: str, target: int | None, **_: Any) -> None:
        """Write the wish."""
        found = find_service(service)
        if target is None:
            intake.release(found, actor=actor())
            self.say(f"{found.name}: the load decides again how many replicas it has")
            self.warn_unless_running()
            return
        before = found.target
        intake.scale(found, target, actor=actor())
        if before == target:
            self.say(f"{found.name}: has {some(target)} as its target already")
            return
        self.say(f"{found.name}: target {before} → {target}")
        self.warn_unless_running()


def number_or_auto(text: str) -> int | None:
    """An argparse type: a number of replicas; None for auto."""
    if text == "auto":
        return None
    number: int = whole(0, MOST_REPLICAS, "number of replicas")(text)
    return number
