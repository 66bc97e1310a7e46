"""Settings of a pool as django-q2 makes it by itself: its ORM broker, polled five times a second."""

from controlplane.settings import *  # noqa: F403
from controlplane.settings import Q_CLUSTER, ROLLCALL

POOL = "polling"
Q_CLUSTER = {name: value for name, value in Q_CLUSTER.items() if name != "broker_class"} | {
    "poll": 0.2,
    "ALT_CLUSTERS": {POOL: {"workers": ROLLCALL.short_workers, "queue_limit": 4, "timeout": 60, "retry": 300}},
}
