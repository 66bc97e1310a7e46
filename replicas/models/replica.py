"""One running copy of a version, from wish to history."""

from django.db import models
from django.db.models import Q

from replicas.core.values import ENDS, LIVE, OUTCOMES, ReplicaState
from replicas.models.fields import ALIVE, one_of, word
from replicas.models.service import Service, ServiceVersion

PRE_PROCESS = (ReplicaState.PENDING, ReplicaState.PROVISIONING)


class Replica(models.Model):
    """A replica. `state`, `outcome` and `revision` change only in `actions.transition`.

    `retire_reason` is a wish: somebody wants it gone. `handle` finds its process through the provider. `spot` and
    `place` are what was ordered, and then, as `accelerators` (such as A100:8), what the provider says that it got.
    `probe_*` are the facts of the last probe that told something new.
    """

    service = models.ForeignKey(Service, on_delete=models.CASCADE, related_name="replicas")
    version = models.ForeignKey(ServiceVersion, on_delete=models.PROTECT, related_name="replicas")
    version_number = models.PositiveIntegerField()
    number = models.PositiveIntegerField()
    uid = models.CharField(max_length=32, unique=True)
    provider = models.CharField(max_length=50)
    state = word(ReplicaState, default=ReplicaState.PENDING)
    state_since = models.DateTimeField()
    outcome = word(ReplicaState, blank=True, default="")
    reason = models.TextField(blank=True, default="")
    revision = models.PositiveIntegerField(default=0)
    retire_reason = models.TextField(blank=True, default="")
    purge = models.BooleanField(default=False)
    restarts = models.PositiveIntegerField(default=0)
    replaces = models.PositiveIntegerField(null=True, blank=True)
    spot = models.BooleanField(null=True, blank=True, help_text="it may be taken back; empty where nobody says")
    place = models.CharField(max_length=200, blank=True, default="", help_text="where it is, such as aws/us-east-1")
    accelerators = models.CharField(max_length=100, blank=True, default="", help_text="what it got, such as A100:8")
    handle = models.JSONField(null=True, blank=True)
    url = models.CharField(max_length=200, blank=True, default="")
    pid = models.PositiveIntegerField(null=True, blank=True)
    log = models.CharField(max_length=1000, blank=True, default="")
    last_lines = models.JSONField(default=list, help_text="the last log lines, kept when it failed")
    probe_at = models.DateTimeField(null=True, blank=True)
    probe_ok = models.BooleanField(null=True, blank=True)
    probe_detail = models.TextField(blank=True, default="")
    probe_excerpt = models.TextField(blank=True, default="")
    probe_seconds = models.FloatField(null=True, blank=True)
    liveness_failing_since = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()
    provisioning_at = models.DateTimeField(null=True, blank=True)
    launched_at = models.DateTimeField(null=True, blank=True)
    ready_at = models.DateTimeField(null=True, blank=True)
    adopted_at = models.DateTimeField(null=True, blank=True, help_text="when it was given the number of its version")
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("service", "-number")
        constraints = (
            models.UniqueConstraint(fields=("service", "number"), name="one_replica_per_number"),
            one_of("state", ReplicaState, "replica_state_word"),
            models.CheckConstraint(
                condition=Q(outcome="") | Q(outcome__in=sorted(OUTCOMES)), name="replica_outcome_word"
            ),
            models.CheckConstraint(
                condition=Q(state__in=sorted(LIVE), ended_at=None) | Q(state__in=sorted(ENDS), ended_at__isnull=False),
                name="replica_ended_at_end",
            ),
            models.CheckConstraint(
                condition=Q(state__in=sorted(OUTCOMES), outcome=models.F("state")) | ~Q(state__in=sorted(OUTCOMES)),
                name="replica_ends_with_outcome",
            ),
        )
        indexes = (
            models.Index(fields=("service", "number"), name="live_replicas", condition=ALIVE),
            models.Index(fields=("service", "ended_at"), name="ended_replicas"),
            models.Index(fields=("version", "ended_at"), name="ended_replicas_of_version"),
            models.Index(fields=("service", "replaces"), name="heirs", condition=Q(replaces__isnull=False)),
            models.Index(fields=("state",), name="replicas_in_state"),
            models.Index(fields=("service",), name="purged_replicas", condition=Q(purge=True)),
        )

    def __str__(self) -> str:
        return f"{self.service} replica {self.number}"
