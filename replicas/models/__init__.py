"""The rows: services, versions, replicas, operations, events, leases, samples, tokens, notices."""

from replicas.models.event import Event
from replicas.models.idempotency import KeptAnswer
from replicas.models.lease import Heartbeat, Lease
from replicas.models.notice import Notice, NoticeChannel
from replicas.models.operation import Operation
from replicas.models.reading import Reading
from replicas.models.replica import Replica
from replicas.models.rollout import Rollout
from replicas.models.sample import Sample
from replicas.models.service import Service, ServiceVersion
from replicas.models.token import ApiToken

__all__ = [
    "ApiToken",
    "Event",
    "Heartbeat",
    "KeptAnswer",
    "Lease",
    "Notice",
    "NoticeChannel",
    "Operation",
    "Reading",
    "Replica",
    "Rollout",
    "Sample",
    "Service",
    "ServiceVersion",
]
