"""What an operator's own signal said."""

from django.db import models

from replicas.models.service import Service


class Reading(models.Model):
    """A number that a `custom_signal` gave at a time; None with the reason where it gave none."""

    service = models.ForeignKey(Service, on_delete=models.CASCADE, related_name="readings")
    at = models.DateTimeField()
    value = models.FloatField(null=True, blank=True)
    error = models.TextField(blank=True, default="")

    class Meta:
        ordering = ("id",)
        indexes = (models.Index(fields=("service", "at"), name="readings_of_service"),)

    def __str__(self) -> str:
        return f"{self.service_id} {self.value}"
