"""One round of probes: which replicas are due, handed to a probe job by number."""

from django.db import models


class Sweep(models.Model):
    """The replicas to probe, in `replica_ids`; `claimed_at` is set once by the job that does it."""

    replica_ids = models.JSONField()
    created_at = models.DateTimeField()
    claimed_at = models.DateTimeField(null=True, blank=True)
    done_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"sweep {self.pk} over {len(self.replica_ids)}"
