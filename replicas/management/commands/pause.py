"""`pause SERVICE`: let a rollout move nothing for now."""

from replicas.actions import rollouts
from replicas.management.steering import Steering


class Command(Steering):
    """Holds the rollout that goes on; what dies is still replaced, by its own side's version."""

    help = (
        "Hold the rollout of a service: no replica of the new version is added and no old one is taken away. Replicas"
        " that die are replaced, scaling works, and the deadline stands still until `resume`."
    )
    examples = "  manage.py pause web\n"
    act = rollouts.pause
    done = "{move} is paused; `manage.py resume` lets it go on"
