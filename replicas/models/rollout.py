"""How a service moves from one version to another: one row per move, kept as history."""

from django.db import models
from django.db.models import Q

from replicas.core.values import RolloutKind, RolloutMode, RolloutState
from replicas.core.views import RolloutView
from replicas.models.fields import one_of, word
from replicas.models.service import Service


class Rollout(models.Model):
    """A move of a service to `to_version`; versions are named by their numbers, 0 for none.

    `good_version`: the last version that has proved itself, to which the move turns back. `held`: versions whose
    replicas are not listed although they are ready. `from_target`: how many replicas were wanted before. `best`: the
    most replicas of the new version that had proved themselves at one time; `progressed_at`: when that last grew.
    `paused_at`, `promoted_at` and `switched_at` are set once the move is paused, its canary promoted, its blue-green
    switch made.
    """

    service = models.ForeignKey(Service, on_delete=models.CASCADE, related_name="rollouts")
    kind = word(RolloutKind)
    mode = word(RolloutMode)
    state = word(RolloutState, default=RolloutState.PROGRESSING)
    reason = models.TextField(blank=True, default="")
    from_version = models.PositiveIntegerField(default=0)
    to_version = models.PositiveIntegerField()
    good_version = models.PositiveIntegerField(default=0)
    held = models.JSONField(default=list, blank=True)
    from_target = models.PositiveIntegerField(null=True, blank=True)
    best = models.PositiveIntegerField(default=0)
    actor = models.CharField(max_length=150, blank=True, default="")
    revision = models.PositiveIntegerField(default=0)
    started_at = models.DateTimeField()
    progressed_at = models.DateTimeField()
    paused_at = models.DateTimeField(null=True, blank=True)
    promoted_at = models.DateTimeField(null=True, blank=True)
    switched_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("service", "-id")
        constraints = (
            one_of("kind", RolloutKind, "rollout_kind_word"),
            one_of("mode", RolloutMode, "rollout_mode_word"),
            one_of("state", RolloutState, "rollout_state_word"),
            models.UniqueConstraint(
                fields=("service",), condition=Q(state=RolloutState.PROGRESSING), name="one_live_rollout_per_service"
            ),
            models.CheckConstraint(
                condition=Q(state=RolloutState.PROGRESSING, ended_at=None)
                | (~Q(state=RolloutState.PROGRESSING) & Q(ended_at__isnull=False)),
                name="rollout_ended_at_end",
            ),
        )

    def __str__(self) -> str:
        before = f"v{self.from_version} to " if self.from_version else ""
        return f"{self.service} {before}v{self.to_version}"

    def view(self) -> RolloutView:
        """The row as a plain value for decisions."""
        return RolloutView(
            id=self.pk,
            revision=self.revision,
            kind=RolloutKind(self.kind),
            mode=RolloutMode(self.mode),
            state=RolloutState(self.state),
            from_version=self.from_version,
            to_version=self.to_version,
            good_version=self.good_version,
            started_at=self.started_at,
            progressed_at=self.progressed_at,
            held=frozenset(self.held),
            best=self.best,
            reason=self.reason,
            paused_at=self.paused_at,
            promoted_at=self.promoted_at,
            switched_at=self.switched_at,
            ended_at=self.ended_at,
        )
