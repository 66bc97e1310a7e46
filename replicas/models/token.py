"""Tokens with which scripts act for a user."""

from django.conf import settings
from django.db import models

from replicas.core.values import Scope
from replicas.models.fields import one_of, word


class ApiToken(models.Model):
    """The right to ask the API as `owner`, at most as far as `scope` goes and never further than the owner may.

    Of the token itself only its SHA-256 is kept: it holds 256 random bits, so nothing slower is needed. `prefix` is its
    beginning, by which people tell tokens apart. `services`: names, none for all.
    """

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=20)
    digest = models.CharField(max_length=64, unique=True)
    scope = word(Scope, default=Scope.READ)
    services = models.JSONField(default=list, blank=True)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, help_text="to the minute")
    last_used_from = models.CharField(max_length=45, blank=True, default="")
    revoked_at = models.DateTimeField(null=True, blank=True)
    revoked_by = models.CharField(max_length=150, blank=True, default="")

    class Meta:
        ordering = ("-id",)
        constraints = (one_of("scope", Scope, "token_scope_word"),)
        verbose_name = "API token"

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"
