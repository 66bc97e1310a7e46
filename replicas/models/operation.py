"""One attempt at a launch or a down, with its log, its owner and its retries."""

from django.db import models
from django.db.models import Q

from replicas.core.values import LIVE_OPERATIONS, Lane, OperationKind, OperationStatus
from replicas.models.fields import ALIVE, one_of, word
from replicas.models.replica import Replica
from replicas.models.service import Service


class Operation(models.Model):
    """A row of short steps. `claim` is a fencing number: a step settles only under the claim that it began with.

    `orphaned` counts owners that died in a row; `watch` is [pid, start time] of a process whose end ends the wait.
    """

    service = models.ForeignKey(Service, on_delete=models.CASCADE, related_name="operations")
    replica = models.ForeignKey(Replica, on_delete=models.CASCADE, related_name="operations")
    kind = word(OperationKind)
    lane = word(Lane, default=Lane.LONG)
    status = word(OperationStatus, default=OperationStatus.QUEUED)
    key = models.CharField(max_length=100, unique=True, null=True, blank=True)
    reason = models.TextField(blank=True, default="", help_text="why it was asked for")
    waits_for = models.TextField(blank=True, default="")
    error = models.TextField(blank=True, default="")
    attempts = models.PositiveIntegerField(default=0)
    steps = models.PositiveIntegerField(default=0)
    claim = models.PositiveIntegerField(default=0)
    orphaned = models.PositiveIntegerField(default=0)
    owner_host = models.CharField(max_length=200, blank=True, default="")
    owner_pid = models.PositiveIntegerField(null=True, blank=True)
    owner_start = models.BigIntegerField(null=True, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    checkpoint = models.JSONField(null=True, blank=True)
    watch = models.JSONField(null=True, blank=True)
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    cancel_reason = models.TextField(blank=True, default="", help_text="why it is to end early, and who wants that")
    enqueued_at = models.DateTimeField(null=True, blank=True)
    deliveries = models.PositiveIntegerField(default=0)
    retry_at = models.DateTimeField(null=True, blank=True)
    log = models.CharField(max_length=1000, blank=True, default="")
    peak_memory = models.BigIntegerField(null=True, blank=True, help_text="bytes")
    cpu_seconds = models.FloatField(default=0)
    revision = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.UniqueConstraint(
                fields=("replica",),
                name="one_live_operation_per_replica",
                condition=Q(status__in=sorted(LIVE_OPERATIONS)),
            ),
            one_of("kind", OperationKind, "operation_kind_word"),
            one_of("lane", Lane, "operation_lane_word"),
            one_of("status", OperationStatus, "operation_status_word"),
            models.CheckConstraint(
                condition=Q(status=OperationStatus.RUNNING, owner_pid__isnull=False)
                | (~Q(status=OperationStatus.RUNNING) & Q(owner_pid=None)),
                name="operation_owner_while_running",
            ),
            models.CheckConstraint(
                condition=Q(status__in=sorted(LIVE_OPERATIONS), ended_at=None)
                | (~Q(status__in=sorted(LIVE_OPERATIONS)) & Q(ended_at__isnull=False)),
                name="operation_ended_at_end",
            ),
        )
        indexes = (models.Index(fields=("id",), name="live_operations", condition=ALIVE),)

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"
