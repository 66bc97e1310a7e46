"""Where notices go, and what is to be sent there."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from replicas.core.values import NoticeKind, NoticeState
from replicas.models.fields import one_of, word
from replicas.models.service import Service


class NoticeChannel(models.Model):
    """A receiver of notices about one service, or about all of them (`service` None).

    `sealed` holds its URL and signing key, encrypted; `shown` is what may be shown of the URL. Events up to `cursor`
    have been looked at; `memory` is what the deciding function (`core/notices`) keeps between two looks, and `due_at`
    when it wants the next one although nothing happens.
    """

    name = models.CharField(max_length=100, unique=True)
    kind = word(NoticeKind, default=NoticeKind.WEBHOOK)
    sealed = models.TextField()
    shown = models.CharField(max_length=300)
    service = models.ForeignKey(
        Service, null=True, blank=True, on_delete=models.CASCADE, related_name="notice_channels", help_text="none: all"
    )
    occasions = models.JSONField(default=list)
    enabled = models.BooleanField(default=True)
    created_by = models.CharField(max_length=150, blank=True, default="")
    created_at = models.DateTimeField()
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL)
    cursor = models.BigIntegerField(default=0)
    memory = models.JSONField(default=dict, blank=True)
    due_at = models.DateTimeField(null=True, blank=True)
    sent_at = models.DateTimeField(null=True, blank=True)
    last_error = models.TextField(blank=True, default="", help_text="of the last attempt; empty where it went well")

    class Meta:
        ordering = ("name",)
        constraints = (one_of("kind", NoticeKind, "notice_kind_word"),)

    def __str__(self) -> str:
        return self.name


class Notice(models.Model):
    """One message to a channel. It is sent at least once: `uid` is the same at each attempt.

    `items`: `{service, occasion, reason, at, count}` each; `left_out`: how many more there were. While it is QUEUED,
    `retry_at` is when it may be tried (again).
    """

    channel = models.ForeignKey(NoticeChannel, on_delete=models.CASCADE, related_name="notices")
    uid = models.CharField(max_length=40, unique=True)
    test = models.BooleanField(default=False)
    title = models.CharField(max_length=300)
    text = models.TextField()
    items = models.JSONField(default=list)
    left_out = models.PositiveIntegerField(default=0)
    state = word(NoticeState, default=NoticeState.QUEUED)
    attempts = models.PositiveIntegerField(default=0)
    retry_at = models.DateTimeField(null=True, blank=True)
    error = models.TextField(blank=True, default="")
    created_at = models.DateTimeField()
    sent_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)
        constraints = (one_of("state", NoticeState, "notice_state_word"),)
        indexes = (models.Index(fields=("retry_at",), name="notices_due", condition=Q(state=NoticeState.QUEUED)),)

    def __str__(self) -> str:
        return self.title
