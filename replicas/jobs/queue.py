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
SIGNAL = "replicas.jobs.signals.run"
NOTICES = "replicas.jobs.notices.run"
USUAL_DAYS = -1.0
PROBE_TIMEOUT_SECONDS = 300  # a probe job works for up to four minutes


class Away(Exception):
    """The queue cannot take a message: its server does not answer. The rows are the truth, so try again later."""


def troubles() -> tuple[type[Exception], ...]:
    """What a queue that is away raises, where it is not in the database."""
    if not Conf.REDIS:
        return ()
    from replicas.jobs.redis_broker import TROUBLE  # where there is no Redis, its client need not be loaded

    return (TROUBLE,)


def send(target: str, argument: float, lane: Lane, **options: Any) -> None:
    """Put a message into the queue of a lane. Raises Away."""
    try:
        async_task(target, argument, cluster=lane.value, save=False, **options)
    except troubles() as error:
        raise Away(f"the job queue does not answer: {error}") from error


def offer(kind: OperationKind, operation_id: int) -> None:
    """Tell the long lane to take up an operation. Raises Away, as all that offer something do."""
    send(TARGETS[kind], operation_id, Lane.LONG)


def offer_probe(shard: int) -> None:
    """Tell the short lane to probe the replicas of a shard."""
    send(PROBE, shard, Lane.SHORT, timeout=PROBE_TIMEOUT_SECONDS)


def offer_beat(lane: Lane) -> None:
    """Ask a lane for a sign of life."""
    send(BEAT, list(Lane).index(lane), lane)


def when_acknowledged(call: Callable[[Lane], None]) -> None:
    """In a pool: have `call` called with its lane whenever a job was done, be it in vain, and is acknowledged."""
    lane = Lane(Conf.CLUSTER_NAME)

    def acknowledged(**_named: Any) -> None:
        call(lane)

    post_execute.connect(acknowledged, weak=False, dispatch_uid="beats")


def offer_pruning(days: float = USUAL_DAYS) -> None:
    """Ask the short lane to remove what ended more than `days` ago; USUAL_DAYS: what the settings say."""
    send(PRUNING, days, Lane.SHORT)


def offer_signal(service_id: int) -> None:
    """Ask the short lane to read the operator's own number for a service."""
    send(SIGNAL, service_id, Lane.SHORT)


def offer_notices() -> None:
    """Ask the short lane to look at what people are to be told, and to send what is due."""
    send(NOTICES, 0, Lane.SHORT)


def prune(older: timedelta) -> int:
    """Delete result rows of failed jobs older than that; how many there were."""
    gone: int = Task.objects.filter(stopped__lt=timezone.now() - older).delete()[0]
    return gone
