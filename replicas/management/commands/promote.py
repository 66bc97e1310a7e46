"""`promote SERVICE`: let a canary become everybody, or end the keeping of the old replicas after a switch."""

from replicas.actions import rollouts
from replicas.management.steering import Steering


class Command(Steering):
    """Says that what is there of the new version has proved itself."""

    help = (
        "Let the new version of a service grow beyond its canary; of a blue-green rollout that has switched, give up"
        " the old replicas before their time is over."
    )
    examples = "  manage.py promote web\n"
    act = rollouts.promote
    done = "{move} is promoted"
