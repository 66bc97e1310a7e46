"""`abort SERVICE`: give a rollout up and go back to the last version that proved itself."""

from typing import Any

from replicas.actions import rollouts
from replicas.management.steering import Steering, tell_going_back
from replicas.management.verb import actor, find_service


class Command(Steering):
    """Ends the rollout that goes on and begins the way back."""

    help = "Give the rollout of a service up, and go back to the last version that proved itself."
    examples = "  manage.py abort web\n"

    def handle(self, *, service: str, **_: Any) -> None:
        """Write the wish."""
        found = find_service(service)
        tell_going_back(self, found, rollouts.abort(found.pk, actor=actor()))
