"""What the user wants running, and its immutable versions."""

from typing import Any

from django.conf import settings
from django.db import models

from replicas.core.values import Desired, ServiceStatus
from replicas.models.fields import one_of, word


class Service(models.Model):
    """A service. `desired`, `target`, `pinned` and `version` are wishes; `status`, `ready` and `live` what was seen."""

    name = models.CharField(max_length=200, unique=True)
    desired = word(Desired, default=Desired.UP)
    target = models.PositiveIntegerField(default=1)
    version = models.ForeignKey(
        "ServiceVersion", null=True, on_delete=models.SET_NULL, related_name="+", help_text="the active version"
    )
    status = word(ServiceStatus, default=ServiceStatus.CONTROLLER_INIT)
    reason = models.TextField(blank=True, default="")
    ready = models.PositiveIntegerField(default=0)
    live = models.PositiveIntegerField(default=0)
    endpoint = models.CharField(max_length=200, blank=True, default="")
    endpoint_port = models.PositiveIntegerField(null=True, blank=True, help_text="the port of its address, its own")
    endpoint_reason = models.TextField(blank=True, default="", help_text="why it has no address")
    pinned = models.BooleanField(default=False, help_text="the target was set by hand: the autoscaler leaves it alone")
    scaling = models.JSONField(default=dict, blank=True, help_text="what the autoscaler remembers")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    purge = models.BooleanField(default=False, help_text="forget the service when it is down")
    forgiven_at = models.DateTimeField(null=True, blank=True, help_text="failures before it do not count")
    last_number = models.PositiveIntegerField(default=0, help_text="the highest replica number ever given out")
    last_version = models.PositiveIntegerField(default=0)
    revision = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta:
        ordering = ("name",)
        constraints = (
            one_of("desired", Desired, "service_desired_word"),
            one_of("status", ServiceStatus, "service_status_word"),
            models.UniqueConstraint(
                fields=("endpoint_port",),
                name="one_service_per_endpoint_port",
                condition=models.Q(endpoint_port__isnull=False),
            ),
        )
        permissions = (
            ("operate_service", "Can scale, restart and take down services"),
            ("deploy_service", "Can create services and apply versions"),
            ("act_on_any_service", "Can act on services that belong to others, and give them away"),
            ("administer", "Can prune history, and manage people and their tokens"),
        )

    def __str__(self) -> str:
        return self.name


class Immutable(Exception):
    """A version was to be changed; make a new one instead."""


class ServiceVersion(models.Model):
    """One immutable version: the YAML text (secret values masked), its spec and the digests.

    `process_digest` is the digest of everything but the service section, with the digest of the files it copies:
    versions with equal ones can adopt each other's replicas. A restart shares its predecessor's `files_uid`. `sealed`
    holds the secret values, encrypted.
    """

    service = models.ForeignKey(Service, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    uid = models.CharField(max_length=32, unique=True)
    files_uid = models.CharField(max_length=32, help_text="the uid under which its provider keeps files and setup")
    text = models.TextField()
    spec = models.JSONField()
    digest = models.CharField(max_length=64)
    process_digest = models.CharField(max_length=64)
    files_digest = models.CharField(max_length=64, blank=True, default="")
    base = models.CharField(
        max_length=1000, blank=True, default="", help_text="what relative paths were resolved against"
    )
    overrides = models.JSONField(default=dict, help_text="env values given at apply")
    sealed = models.TextField(blank=True, default="")
    message = models.TextField(blank=True, default="")
    plan = models.JSONField(default=list, blank=True, help_text="lines: what applying it was to change, and how")
    created_by = models.CharField(max_length=150, blank=True, default="")
    created_at = models.DateTimeField()

    class Meta:
        ordering = ("service", "-number")
        constraints = (models.UniqueConstraint(fields=("service", "number"), name="one_version_per_number"),)

    def __str__(self) -> str:
        return f"{self.service} v{self.number}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Insert only: a saved version never changes. Raises Immutable."""
        if not self._state.adding:
            raise Immutable(f"version {self.number} cannot be changed; apply a new version instead")
        super().save(*args, **kwargs)
