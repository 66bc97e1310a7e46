"""What the gateway measured of a service, at a resolution that falls with age."""

from django.db import models

from replicas.models.service import Service


class Sample(models.Model):
    """The traffic of a service in the `seconds` before `at`. `resolution`: 1 or 60, the spacing of its series.

    `requests`: those that arrived, held and refused ones too. `in_flight`, `queued`, `held`: requests at the end of the
    time, `ready`: replicas with traffic (of a minute: their means). `p50`, `p95`, `p99`:
    milliseconds, None without requests, and `times` how many took how long, by the buckets of `core.latency`.
    `codes`: answers of each class, 1xx to 5xx. `replicas`: by replica number,
    `[requests, in flight, requests that it failed]`: it took no connection, ended it too early, or was silent for too
    long.
    """

    service = models.ForeignKey(Service, on_delete=models.CASCADE, related_name="samples")
    resolution = models.PositiveSmallIntegerField(default=1)
    at = models.DateTimeField()
    seconds = models.FloatField()
    requests = models.PositiveIntegerField(default=0)
    in_flight = models.FloatField(default=0)
    queued = models.FloatField(default=0)
    held = models.FloatField(default=0)
    ready = models.PositiveIntegerField(default=0)
    p50 = models.FloatField(null=True, blank=True)
    p95 = models.FloatField(null=True, blank=True)
    p99 = models.FloatField(null=True, blank=True)
    times = models.JSONField(default=dict)
    codes = models.JSONField(default=list)
    replicas = models.JSONField(default=dict)

    class Meta:
        ordering = ("at",)
        indexes = (
            models.Index(fields=("service", "resolution", "at"), name="samples_of_service"),
            models.Index(fields=("resolution", "at"), name="old_samples"),
        )

    def __str__(self) -> str:
        return f"{self.service_id} {self.at:%H:%M:%S}"
