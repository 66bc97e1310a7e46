"""Channels of notices and what was sent to them, without their addresses."""

from typing import Any

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from replicas.actions import notices
from replicas.actions.powers import ADMINISTER
from replicas.admin.looking import Looking, badge, block, confirmed
from replicas.models import Notice, NoticeChannel


class Administered(Looking):
    """For who administers alone."""

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Who administers."""
        return request.user.has_perm(ADMINISTER)

    has_module_permission = has_view_permission

    def has_operate_permission(self, request: HttpRequest) -> bool:
        """Who administers."""
        return request.user.has_perm(ADMINISTER)


@admin.register(NoticeChannel)
class ChannelAdmin(Administered):
    """Made on the page of notices; here to be looked at, switched and removed."""

    list_display = ("name", "shown", "service", "told_of", "state", "sent_at", "last_error")
    list_filter = ("enabled", "kind", "service")
    list_select_related = ("service",)
    search_fields = ("name", "service__name")
    actions = ("switch_off", "switch_on", "remove")
    fields = (
        ("name", "kind", "shown"),
        ("service", "told_of"),
        "state",
        ("sent_at", "last_error"),
        ("created_by", "owner", "created_at"),
        "cursor",
    )
    readonly_fields = ("told_of", "state")

    @admin.display(description="told of")
    def told_of(self, row: NoticeChannel) -> str:
        """The words."""
        return ", ".join(row.occasions)

    @admin.display(description="state")
    def state(self, row: NoticeChannel) -> str:
        """OFF, or how the last attempt ended."""
        return badge(("FAILED" if row.last_error else "READY") if row.enabled else "OFF")

    @confirmed("Tell these channels nothing until they are switched on again?", "Switch off")
    def switch_off(self, request: HttpRequest, queryset: QuerySet[NoticeChannel]) -> None:
        """Nothing is sent to them."""
        self._switch(request, queryset, False)

    @confirmed("Tell these channels again, of what happens from now on?", "Switch on")
    def switch_on(self, request: HttpRequest, queryset: QuerySet[NoticeChannel]) -> None:
        """They are told again."""
        self._switch(request, queryset, True)

    def _switch(self, request: HttpRequest, queryset: QuerySet[NoticeChannel], on: bool) -> None:
        rows = list(queryset.order_by("name"))
        for row in rows:
            notices.switch(row.pk, on, actor=request.user.get_username())
        self.say(request, [str(row) for row in rows], [], "switched on" if on else "switched off")

    @confirmed("Remove these channels, with their addresses?", "Remove")
    def remove(self, request: HttpRequest, queryset: QuerySet[NoticeChannel]) -> None:
        """They are forgotten."""
        rows = list(queryset.order_by("name"))
        for row in rows:
            notices.remove(row.pk, actor=request.user.get_username())
        self.say(request, [str(row) for row in rows], [], "removed")


@admin.register(Notice)
class NoticeAdmin(Administered):
    """What was sent, or is to be."""

    list_display = ("title", "channel", "shown_state", "attempts", "created_at", "sent_at", "error")
    list_filter = ("state", "channel", "test", "created_at")
    list_select_related = ("channel",)
    search_fields = ("title", "text", "channel__name")
    date_hierarchy = "created_at"
    ordering = ("-id",)
    fields = (
        ("channel", "shown_state", "test"),
        "title",
        "shown_text",
        ("attempts", "retry_at", "error"),
        ("created_at", "sent_at"),
        "uid",
    )
    readonly_fields = ("shown_state", "shown_text")

    @admin.display(description="state")
    def shown_state(self, row: Notice) -> str:
        """QUEUED, SENT or FAILED."""
        return badge(row.state)

    @admin.display(description="text")
    def shown_text(self, row: Notice) -> Any:
        """Its lines."""
        return block(row.text)
