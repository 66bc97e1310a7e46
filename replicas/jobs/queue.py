"""The doorbell to the workers: a message says which row to look at, and nothing is lost if it comes twice or never."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.utils import timezone
from django_q.conf import Conf
from django_q.models import Task
from django_q.signals import post_execute
from django_q.tasks import async_task

from replicas.core.values import Lane, OperationKind

TARGETS: dict[OperationKind, str] = {
    OperationKind.LAUNCH: "replicas.jobs.launch.run",
    OperationKind.DOWN: "replicas.jobs.down.run",
}
PROBE = "replicas.jobs.probe.run"
BEAT = "replicas.jobs.beats.run"
PRUNING = "replicas.jobs.pruning.run"
PROBE_TIMEOUT_SECONDS = 300  # a probe job works for up to four minutes


def offer(kind: OperationKind, operation_id: int) -> None:
    """Tell the long lane to take up an operation."""
    async_task(TARGETS[kind], operation_id, cluster=Lane.LONG.value, save=False)


def offer_probe(shard: int) -> None:
    """Tell the short lane to probe the replicas of a shard."""
    async_task(PROBE, shard, cluster=Lane.SHORT.value, save=False, timeout=PROBE_TIMEOUT_SECONDS)


def offer_beat(lane: Lane) -> None:
    """Ask a lane for a sign of life."""
    async_task(BEAT, list(Lane).index(lane), cluster=lane.value, save=False)


def when_acknowledged(call: Callable[[Lane], None]) -> None:
    """In a pool: have `call` called with its lane whenever a job was done, be it in vain, and is acknowledged."""
    lane = Lane(Conf.CLUSTER_NAME)

    def acknowledged(**_named: Any) -> None:
        call(lane)

    post_execute.connect(acknowledged, weak=False, dispatch_uid="beats")


def offer_pruning() -> None:
    """Ask the short lane to remove old history."""
    async_task(PRUNING, 0, cluster=Lane.SHORT.value, save=False)


def prune(older: timedelta) -> int:
    """Delete result rows of failed jobs older than that; how many there were."""
    gone: int = Task.objects.filter(stopped__lt=timezone.now() - older).delete()[0]
    return gone
