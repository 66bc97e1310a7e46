"""The outbox and the history: a row for every change, written in the same transaction as the change."""

from django.db import models

from replicas.models.service import Service


class Event(models.Model):
    """What happened to one object (`kind`: service, version, rollout, replica or operation). Never updated.

    `data` is the object's public row after the change, which the browser puts in place of the one that it has. `actor`
    did it; `source` is by which door, and empty where the control plane did it by itself.
    """

    at = models.DateTimeField()
    service = models.ForeignKey(Service, null=True, on_delete=models.SET_NULL, related_name="events")
    service_name = models.CharField(max_length=200)
    kind = models.CharField(max_length=20)
    object_id = models.BigIntegerField()
    number = models.PositiveIntegerField(null=True, blank=True, help_text="the replica's number, where it is about one")
    revision = models.PositiveIntegerField()
    trigger = models.CharField(max_length=50)
    old = models.CharField(max_length=50, blank=True, default="")
    new = models.CharField(max_length=50, blank=True, default="")
    reason = models.TextField(blank=True, default="")
    actor = models.CharField(max_length=150)
    source = models.CharField(max_length=10, blank=True, default="", help_text="web, admin, command or api")
    address = models.CharField(max_length=45, blank=True, default="", help_text="of whoever asked over the network")
    token = models.CharField(max_length=20, blank=True, default="", help_text="the beginning of the one used")
    data = models.JSONField()

    class Meta:
        ordering = ("id",)
        constraints = (
            models.UniqueConstraint(fields=("kind", "object_id", "revision"), name="one_event_per_revision"),
        )
        indexes = (models.Index(fields=("service", "id"), name="events_of_service"),)

    def __str__(self) -> str:
        return f"{self.service_name}: {self.trigger}"
