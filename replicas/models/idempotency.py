"""What requests with an Idempotency-Key were answered."""

from django.db import models

from replicas.models.token import ApiToken


class KeptAnswer(models.Model):
    """The answer to a POST of the API, under the key that its sender chose; `status` None while it is at work.

    `fingerprint` is a keyed digest of the request: a body may hold secrets.
    """

    token = models.ForeignKey(ApiToken, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=255)
    fingerprint = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True, blank=True)
    body = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("token", "key"), name="one_answer_per_key"),)

    def __str__(self) -> str:
        return self.key
