"""`resume SERVICE`: let a paused rollout go on."""

from replicas.actions import rollouts
from replicas.management.steering import Steering


class Command(Steering):
    """Lets the rollout go on; its deadline begins anew."""

    help = "Let the paused rollout of a service go on. Its deadline begins anew."
    examples = "  manage.py resume web\n"
    act = rollouts.resume
    done = "{move} goes on"
