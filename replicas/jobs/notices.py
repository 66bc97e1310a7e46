"""The job of notices: looks at what happened, and sends what is due, for a short while; the next one goes on."""

import logging
import time
from typing import Any
from urllib.parse import quote

from django.conf import settings

from replicas import VERSION, clock
from replicas.actions import notices
from replicas.actions.notices import Claimed
from replicas.models.public import stamp
from replicas.providers import sending

log = logging.getLogger(__name__)


def run(_: int) -> None:
    """Look once; then send until there is nothing more, or a lane that others use has been held long enough."""
    notices.digest(clock.now())
    began, allowed = time.monotonic(), settings.ROLLCALL.notice_send_seconds
    for number in notices.due(clock.now()):
        if time.monotonic() - began >= allowed / 2:
            return
        claimed = notices.claim(number)
        if claimed is not None:
            deliver(claimed, allowed)


def deliver(claimed: Claimed, seconds: float) -> None:
    """One attempt, and what came of it."""
    error = ""
    try:
        sending.send(order(claimed), seconds)
    except sending.Unsent as unsent:
        error = str(unsent)
        log.warning("notice %s to the channel %s: %s", claimed.notice.pk, claimed.notice.channel.name, error)
    notices.settle(claimed, error)


def order(claimed: Claimed) -> dict[str, Any]:
    """What the courier is told."""
    notice, base = claimed.notice, settings.ROLLCALL.public_url.rstrip("/")
    items = [
        item | ({"url": f"{base}/services/{quote(item['service'], safe='')}/"} if base else {}) for item in notice.items
    ]
    payload = {
        "id": notice.uid,
        "at": stamp(notice.created_at),
        "test": notice.test,
        "title": notice.title,
        "text": notice.text,
        "items": items,
        "left_out": notice.left_out,
    }
    return {
        "kind": notice.channel.kind,
        "url": claimed.url,
        "key": claimed.key,
        "uid": notice.uid,
        "at": int(clock.now().timestamp()),
        "agent": f"Rollcall/{VERSION}",
        "title": calm(notice.title),
        "body": calm("\n".join([notice.text, *([base] if base else [])])),
        "payload": payload,
        "link_local": settings.ROLLCALL.notice_link_local,
    }


def calm(text: str) -> str:
    """The text so that it calls nobody in a chat, links nowhere and is no markup: it may come from a process's log."""
    return text.replace("@", "@\u200b").replace("<", "‹").replace(">", "›").replace("](", "] (").replace("`", "'")
