"""The recent events in memory, and who waits for the next: a shared window in place of a queue per socket.

Each socket holds only a cursor. What it has not sent yet it takes from the window; what has left the window it reads
from the database. So a slow reader costs no memory, an overflow is nothing special, and a message is built once.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Callable
from typing import NamedTuple

KEEP_EVENTS = 4096
KEEP_CHARS = 8 << 20
MESSAGE_CHARS = 128 << 10  # a slow reader's transport buffers one message at most beyond its own limit


class Item(NamedTuple):
    """One event: what it is about, and its JSON text. `replica_id` is None where it is about none."""

    id: int
    service: str
    kind: str
    object_id: int
    replica_id: int | None
    text: str


class Message(NamedTuple):
    """The text to send (None: nothing there for this reader) and the cursor behind it."""

    cursor: int
    text: str | None


def events_text(cursor: int, items: list[Item]) -> str:
    """The message that carries `items`, after which a reader stands at `cursor`."""
    return f'{{"type":"events","cursor":{cursor},"events":[{",".join(item.text for item in items)}]}}'


def fitting(items: list[Item]) -> list[Item]:
    """The first of `items` that fit into one message; at least one."""
    size = 0
    for place, item in enumerate(items):
        size += len(item.text)
        if size > MESSAGE_CHARS and place:
            return items[:place]
    return items


class Hub:
    """Events with `start` < id <= `end`, all of them, in order. For one event loop; not for threads.

    `epoch` changes when the events that were published are no longer the database's. Each of `listeners` is called with
    what was published.
    """

    def __init__(self) -> None:
        self.start = self.end = 0
        self.epoch = 0
        self._items: list[Item] = []
        self._ids: list[int] = []
        self._chars = 0
        self._messages: dict[tuple[int, str | None], Message] = {}
        self._news = asyncio.Event()
        self.listeners: list[Callable[[list[Item]], None]] = []

    def begin(self, cursor: int) -> None:
        """Forget everything; the window is empty and ends at `cursor`."""
        self.start = self.end = cursor
        self.epoch += 1
        self._items, self._ids, self._chars = [], [], 0
        self._messages.clear()
        self.wake()

    def publish(self, items: list[Item]) -> None:
        """Append events that follow `end` directly, and wake everybody who waits."""
        if not items:
            return
        self._items += items
        self._ids += [item.id for item in items]
        self._chars += sum(len(item.text) for item in items)
        self.end = items[-1].id
        if len(self._items) > KEEP_EVENTS or self._chars > KEEP_CHARS:
            self._trim()
        self._messages.clear()
        for listener in self.listeners:
            listener(items)
        self.wake()

    def wake(self) -> None:
        """Let everybody who waits look again."""
        self._news.set()
        self._news.clear()

    async def wait(self) -> None:
        """Wait for the next `wake`."""
        await self._news.wait()

    def covers(self, cursor: int) -> bool:
        """True when every event after `cursor` is in the window."""
        return cursor >= self.start

    def message(self, after: int, service: str | None) -> Message:
        """What a reader at `after` gets next, of one service or of all. Only where the window covers `after`."""
        key = (after, service)
        found = self._messages.get(key)
        if found is None:
            found = self._messages[key] = self._compose(after, service)
        return found

    def _compose(self, after: int, service: str | None) -> Message:
        items = self._items[bisect_right(self._ids, after) :]
        wanted = items if service is None else [item for item in items if item.service == service]
        if not wanted:
            return Message(max(self.end, after), None)
        sent = fitting(wanted)
        cursor = self.end if len(sent) == len(wanted) else sent[-1].id
        return Message(cursor, events_text(cursor, sent))

    def _trim(self) -> None:
        """Drop the older half, so that trimming is rare."""
        drop = len(self._items) // 2
        self.start = self._ids[drop - 1] if drop else self.start
        self._chars -= sum(len(item.text) for item in self._items[:drop])
        del self._items[:drop], self._ids[:drop]
