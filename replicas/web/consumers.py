"""What websockets carry: the feed of events (`/ws/feed`) and the text of a growing log (`/ws/log`)."""

import time
from collections.abc import Mapping
from typing import Any

from replicas.web import feed, outbox
from replicas.web.hub import events_text, fitting
from replicas.web.offload import query
from replicas.web.sockets import Receive, Send, Socket, deny, number

RESET_PRUNED = "events after your cursor are pruned"
RESET_REPLACED = "your cursor is ahead of the newest event"
RESET_DATABASE = "another database is in place"


class FeedSocket(Socket):
    """`/ws/feed?after=<id>[&service=<name>]`: hello, then events with an id above `after`, each once and in order.

    It stands at a cursor. While the hub's window covers that, messages come from memory, else a page from the database.
    """

    async def prepare(self) -> None:
        """Read the cursor; without one, begin at the newest event. Raises BadRequest."""
        after = number(self.asked, "after")
        self.cursor = after if after is not None else await query(outbox.newest)
        self.service = self.asked.get("service")
        self.epoch = self.feed.hub.epoch

    async def stream(self) -> None:
        """Say hello, replay, go on live."""
        await self.tell(type="hello", cursor=self.cursor, server=self.feed.server)
        bounds = await query(outbox.bounds)
        if self.cursor < bounds.oldest - 1:
            return await self.tell(type="reset", reason=RESET_PRUNED)
        if self.cursor > max(bounds.newest, self.feed.hub.end):
            return await self.tell(type="reset", reason=RESET_REPLACED)
        while self.feed.hub.epoch == self.epoch:
            if not self.feed.hub.covers(self.cursor):
                await self._replay()
            elif self.cursor < self.feed.hub.end:
                await self._pass_on()
            elif time.monotonic() - self.last_sent >= feed.PING_SECONDS * 0.9:
                await self.tell(type="ping", cursor=self.cursor)
            else:
                await self.feed.hub.wait()
        return await self.tell(type="reset", reason=RESET_DATABASE)

    async def _pass_on(self) -> None:
        message = self.feed.hub.message(self.cursor, self.service)
        self.cursor = message.cursor
        if message.text is not None:
            await self.write(message.text)

    async def _replay(self) -> None:
        """Send one page from the database."""
        seen = self.feed.hub.end  # the database holds all events up to here, so a page that ends below is the last
        items = await query(outbox.items_after, self.cursor, self.service)
        if len(items) < outbox.PAGE:
            self.cursor = max(seen, items[-1].id if items else seen)
        else:
            self.cursor = items[-1].id
        while items:
            sent = fitting(items)
            items = items[len(sent) :]
            await self.write(events_text(sent[-1].id if items else self.cursor, sent))


async def unknown(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    """Refuse a websocket at an address that has none."""
    await receive()
    await deny(send, 4404)
