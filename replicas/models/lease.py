"""Who may act alone, and who has been heard of lately."""

from django.db import models


class Lease(models.Model):
    """One holder at a time until `expires_at`; `fence` grows with every new holder."""

    name = models.CharField(max_length=50, unique=True)
    holder = models.CharField(max_length=100, blank=True, default="")
    host = models.CharField(max_length=200, blank=True, default="")
    pid = models.PositiveIntegerField(null=True, blank=True)
    fence = models.PositiveBigIntegerField(default=0)
    expires_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.name}: {self.holder}"


class Heartbeat(models.Model):
    """The last sign of life of a part: the pools `long` and `short`, `controller`, `web`."""

    name = models.CharField(max_length=50, unique=True)
    host = models.CharField(max_length=200, blank=True, default="")
    pid = models.PositiveIntegerField(null=True, blank=True)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
