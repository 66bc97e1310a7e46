"""Channels of notices, what is to be sent to them, and what became of that. The URL of a channel is a secret."""

import base64
import secrets
import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q

from replicas import clock
from replicas.actions import audit
from replicas.actions.operations import Refused
from replicas.actions.sealing import Unsealable, seal, unseal
from replicas.actions.transition import writing
from replicas.core import notices as core
from replicas.core.backoff import retry_delay
from replicas.core.values import FAILURES, NoticeKind, NoticeState, Occasion
from replicas.models import Event, Notice, NoticeChannel, Service
from replicas.models.public import channel_row, stamp

PAGE = 5000  # events that one look takes
LONGEST_TITLE = 300
RETRY_SECONDS, RETRY_FACTOR, LONGEST_RETRY = 10.0, 3.0, 3600.0
ALL = tuple(occasion.value for occasion in Occasion)


@dataclass(frozen=True, slots=True)
class Claimed:
    """One attempt at a notice, with the address that nobody is shown. `attempt` fences what is settled."""

    notice: Notice
    attempt: int
    url: str
    key: str


def add(
    name: str,
    kind: NoticeKind,
    url: str,
    shown: str,
    *,
    service: Service | None,
    occasions: Collection[str],
    actor: str,
    owner: Any = None,
) -> tuple[NoticeChannel, str]:
    """A new channel, and the key with which its receiver checks signatures ("" but for a webhook): told this once.

    `shown`: what of the URL may be shown. What happened before is not told. Raises Refused.
    """
    wanted = [occasion for occasion in ALL if occasion in occasions]
    if not wanted:
        raise Refused(f"a channel is told of something; name at least one of {', '.join(ALL)}")
    key = f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}" if kind is NoticeKind.WEBHOOK else ""
    with writing():
        if NoticeChannel.objects.filter(name=name).exists():
            raise Refused(f"there is a channel {name} already; remove it first, or take another name")
        row = NoticeChannel.objects.create(
            name=name,
            kind=kind,
            sealed=seal({"url": url, "key": key}),
            shown=shown,
            service=service,
            occasions=wanted,
            created_by=actor,
            created_at=clock.now(),
            owner=owner,
        )
        told = _note(row, "made", f"{shown}, made by {actor}", actor)
        NoticeChannel.objects.filter(pk=row.pk).update(cursor=told.pk)
        row.cursor = told.pk
    return row, key


def _note(row: NoticeChannel, trigger: str, reason: str, actor: str) -> Event:
    return audit.note(audit.CHANNEL, row.pk, trigger, channel_row(row), reason=reason, actor=actor, service=row.service)


def newest() -> int:
    """The id of the newest event."""
    return Event.objects.order_by("-pk").values_list("pk", flat=True).first() or 0


def find(channel_id: int) -> NoticeChannel | None:
    """The channel, with its service."""
    return NoticeChannel.objects.select_related("service", "service__owner").filter(pk=channel_id).first()


def remove(channel_id: int, *, actor: str) -> NoticeChannel | None:
    """Forget a channel, with what waits for it. None: there is none."""
    with writing():
        row = find(channel_id)
        if row is not None:
            _note(row, "removed", f"removed by {actor}", actor)
            NoticeChannel.objects.filter(pk=channel_id).delete()
    return row


def switch(channel_id: int, enabled: bool, *, actor: str) -> NoticeChannel | None:
    """Send nothing to it for now, or again: then what happened meanwhile is not told. None: there is none."""
    with writing():
        row = find(channel_id)
        if row is None or row.enabled == enabled:
            return row
        row.enabled = enabled
        word = "on" if enabled else "off"
        told = _note(row, f"switched_{word}", f"switched {word} by {actor}", actor)
        fresh = {"cursor": told.pk, "memory": {}, "due_at": None} if enabled else {}
        NoticeChannel.objects.filter(pk=channel_id).update(enabled=enabled, **fresh)
        if not enabled:
            Notice.objects.filter(channel=channel_id, state=NoticeState.QUEUED).delete()
    return row


def test(channel_id: int, *, actor: str) -> Notice | None:
    """Have a message sent that only says that it works. None: there is no such channel."""
    row = NoticeChannel.objects.filter(pk=channel_id).first()
    if row is None:
        return None
    with transaction.atomic():
        Notice.objects.filter(channel=row, test=True, state=NoticeState.QUEUED).delete()  # a second click sends one
        return _queue(row, "Rollcall: a test", [f"{core.inert(actor, 80)} tries the channel {row.name}."], test=True)


def _queue(row: NoticeChannel, title: str, lines: Sequence[str], **fields: Any) -> Notice:
    now = clock.now()
    return Notice.objects.create(
        channel=row,
        uid=f"msg_{uuid.uuid4().hex}",
        title=title[:LONGEST_TITLE],
        text="\n".join(lines),
        retry_at=now,
        created_at=now,
        **fields,
    )


def limits() -> core.Limits:
    """What the settings say."""
    config = settings.ROLLCALL
    return core.Limits(
        timedelta(seconds=config.notice_group_seconds),
        config.notices_per_hour,
        config.crash_loop_failures,
        timedelta(seconds=config.crash_loop_seconds),
    )


def waiting(now: datetime, newest_event: int) -> bool:
    """Whether there is anything for the job: news for a channel, or something whose time has come."""
    news = Q(cursor__lt=newest_event) | Q(due_at__lte=now)
    return (
        NoticeChannel.objects.filter(news, enabled=True).exists()
        or Notice.objects.filter(state=NoticeState.QUEUED, retry_at__lte=now).exists()
    )


def digest(now: datetime) -> int:
    """Look at what is new, for each channel; how many notices came of it.

    Cursor, memory and notice change together: a crash before leaves all as it was, and a second one that looks at the
    same time changes nothing.
    """
    end, made = newest(), 0
    for row in NoticeChannel.objects.filter(Q(cursor__lt=end) | Q(due_at__lte=now), enabled=True):
        events = list(relevant(row, end)[:PAGE])
        reached = events[-1].pk if len(events) == PAGE else max(end, row.cursor)
        decided = core.decide(
            [_happening(event) for event in events], core.loaded(row.memory), row.occasions, now, limits()
        )
        fresh = {"cursor": reached, "memory": core.stored(decided.memory), "due_at": decided.due}
        with transaction.atomic():
            same = NoticeChannel.objects.filter(pk=row.pk, cursor=row.cursor, due_at=row.due_at, enabled=True)
            if not same.update(**fresh):
                continue
            if decided.said is not None:
                _queue(
                    row,
                    core.title(decided.said),
                    core.lines(decided.said),
                    items=[_item(item) for item in decided.said.items],
                    left_out=decided.said.left_out,
                )
                made += 1
    return made


def relevant(row: NoticeChannel, end: int) -> Any:
    """The events after the channel's cursor, up to the id `end`, that a decision could come from."""
    moved = Q(kind__in=("service", "rollout")) & (~Q(old=F("new")) | Q(trigger="stuck"))
    events = Event.objects.filter(pk__gt=row.cursor, pk__lte=end).order_by("pk")
    if row.service_id is not None:
        events = events.filter(service=row.service_id)
    return events.filter(moved | Q(kind="replica", new__in=FAILURES))


def _happening(event: Event) -> core.Happening:
    return core.Happening(
        event.at, event.service_name, event.kind, event.trigger, event.old, event.new, event.reason, event.data
    )


def _item(item: core.Item) -> dict[str, Any]:
    return {
        "service": item.service,
        "occasion": item.occasion,
        "reason": item.reason,
        "at": stamp(item.at),
        "count": item.count,
    }


def due(now: datetime) -> list[int]:
    """The notices whose time has come, those that have waited longest first."""
    rows = Notice.objects.filter(state=NoticeState.QUEUED, retry_at__lte=now, channel__enabled=True)
    return list(rows.order_by("retry_at", "pk").values_list("pk", flat=True)[:PAGE])


def claim(notice_id: int) -> Claimed | None:
    """Begin an attempt; if it is never settled, the notice is due again later. None: somebody else was first.

    A channel whose address cannot be opened is an attempt that fails.
    """
    now = clock.now()
    row = Notice.objects.select_related("channel").filter(pk=notice_id, state=NoticeState.QUEUED).first()
    if row is None or row.retry_at is None or row.retry_at > now:
        return None
    attempt = row.attempts + 1
    again = now + timedelta(seconds=retry_delay(attempt, RETRY_SECONDS, RETRY_FACTOR, LONGEST_RETRY))
    mine = Notice.objects.filter(pk=row.pk, state=NoticeState.QUEUED, attempts=row.attempts)
    if not mine.update(attempts=attempt, retry_at=again):
        return None
    row.attempts, row.retry_at = attempt, again
    try:
        opened = unseal(row.channel.sealed)
    except Unsealable:
        settle(Claimed(row, attempt, "", ""), "the address was sealed with another SECRET_KEY; make the channel anew")
        return None
    return Claimed(row, attempt, opened["url"], opened["key"])


def settle(claimed: Claimed, error: str) -> bool:
    """Keep how an attempt ended, `error` "" for well. False: it was not the latest attempt any more."""
    now, row = clock.now(), claimed.notice
    given_up = claimed.attempt >= (1 if row.test else settings.ROLLCALL.notice_attempts)
    fields: dict[str, Any] = {"error": error}
    if not error or given_up:
        fields |= {"state": NoticeState.FAILED if error else NoticeState.SENT, "retry_at": None}
    if not error:
        fields["sent_at"] = now
    with transaction.atomic():
        mine = Notice.objects.filter(pk=row.pk, state=NoticeState.QUEUED, attempts=claimed.attempt)
        if not mine.update(**fields):
            return False
        NoticeChannel.objects.filter(pk=row.channel_id).update(last_error=error, **({} if error else {"sent_at": now}))
    return True


def prune(before: datetime) -> int:
    """Delete what was sent or given up before; how many that were."""
    rows = Notice.objects.exclude(state=NoticeState.QUEUED).filter(created_at__lt=before)
    gone: int = rows.delete()[0]
    return gone
