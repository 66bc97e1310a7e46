"""The websocket of one log: its last lines, then what is written, by offset, for as long as somebody looks."""

import time
from collections.abc import Mapping
from pathlib import Path

from django.conf import settings

from replicas.providers.logtimes import Stamp, stamps
from replicas.web import feed, logfile
from replicas.web.livelog import LiveLog, chunk_of
from replicas.web.logrows import LAUNCH, OPERATION, RUN, Key, place
from replicas.web.offload import file_work, query
from replicas.web.sockets import BadRequest, Socket, number

PAGE_BYTES = 64 << 10
TAIL_LINES = 1000
TAIL_MOST = 20_000
TAIL_BYTES = 8 << 20


class LogSocket(Socket):
    """`/ws/log?replica=<id>&which=run|launch` or `/ws/log?operation=<id>`, with `after=<offset>` or `tail=<lines>`.

    Messages: `hello {start, oldest, end, name}`, `chunk {start, end, text[, times][, breaks]}`, `reset {start, oldest}`
    when the bytes at the cursor are gone or the file is another, `waiting` while there is none, `ended` when its writer
    has ended and all was sent, `gone` when replica or operation were forgotten, and `ping`.
    """

    async def prepare(self) -> None:
        """Find out which log is meant. Raises BadRequest."""
        self.key = key_of(self.asked)
        self.after = number(self.asked, "after")
        self.tail = number(self.asked, "tail", most=TAIL_MOST)
        if await query(place, self.key) is None:
            raise BadRequest(f"there is no {' '.join(map(str, self.key))}")
        self.cursor = -1
        self.generation = -1
        self._said = ""

    async def stream(self) -> None:
        """Follow the log."""
        with self.feed.logs.viewing(self.key) as live:
            while not live.known or live.place is not None:
                await self._step(live)
            await self.tell(type="gone")

    async def _step(self, live: LiveLog) -> None:
        """Send the next thing, or wait for it."""
        if not live.known:
            await live.wait()
        elif not live.exists:
            await self._say("ended" if live.over else "waiting", live)
        elif self.cursor < 0:
            await self._begin(live)
        elif self.generation != live.generation or not live.stood.start <= self.cursor <= live.stood.end:
            await self._reset(live)
        elif self.cursor < live.stood.head:
            await self._pass_on(live)
        else:
            await self._say("ended" if live.over else "", live)

    async def _begin(self, live: LiveLog) -> None:
        """Find the place to begin at, and say it."""
        self.generation = live.generation
        stood = live.stood
        if self.after is not None:
            self.cursor = self.after
        else:
            lines = TAIL_LINES if self.tail is None else self.tail
            self.cursor = await file_work(tail_start, path_of(live), stood.head, lines)
        name = live.place.name if live.place else ""
        await self.tell(type="hello", start=self.cursor, oldest=stood.start, end=stood.head, name=name)

    async def _reset(self, live: LiveLog) -> None:
        """Go on at the oldest byte that is left (of the file that is there now)."""
        same = self.generation == live.generation and self.cursor <= live.stood.end
        self.generation, self._said = live.generation, ""
        head = live.stood.head
        self.cursor = live.stood.start if same else await file_work(tail_start, path_of(live), head, TAIL_LINES)
        await self.tell(type="reset", start=self.cursor, oldest=live.stood.start)

    async def _pass_on(self, live: LiveLog) -> None:
        """Send one chunk: the one that all get, or a page of the file up to where it joins the others."""
        self._said = ""
        chunk = live.chunk_at(self.cursor)
        if chunk is None:
            edge = min(live.edge_after(self.cursor), self.cursor + PAGE_BYTES)
            data, times = await file_work(piece, path_of(live), self.cursor, edge)
            if edge == self.cursor + PAGE_BYTES:
                data = data[: logfile.whole(data)]
            if not data:  # just now removed: the next poll sees it
                return await live.wait()
            chunk = chunk_of(self.cursor, data, times)
        self.cursor = chunk.end
        return await self.write(chunk.message)

    async def _say(self, word: str, live: LiveLog) -> None:
        """Say `word` unless it was said last, then wait."""
        if word and word != self._said:
            self._said = word
            await self.tell(type=word)
        elif time.monotonic() - self.last_sent >= feed.PING_SECONDS * 0.9:
            await self.tell(type="ping")
        else:
            await live.wait()


def key_of(asked: Mapping[str, str]) -> Key:
    """The log that a query names. Raises BadRequest."""
    operation, replica = number(asked, "operation"), number(asked, "replica")
    if operation is not None:
        return Key(OPERATION, operation)
    which = asked.get("which", RUN)
    if replica is None or which not in (RUN, LAUNCH):
        raise BadRequest("name a log by replica=<id>&which=run|launch or by operation=<id>")
    return Key(which, replica)


def path_of(live: LiveLog) -> Path:
    """Where the log is."""
    return Path(live.place.path if live.place else "")


def tail_start(log: Path, end: int, lines: int) -> int:
    """Where the last `lines` lines before `end` begin; `end` itself for none."""
    try:
        with logfile.opened(log, settings.ROLLCALL.home) as segments:
            return logfile.back(segments, end, lines, TAIL_BYTES) if lines else end
    except logfile.NoLog:
        return end


def piece(log: Path, start: int, end: int) -> tuple[bytes, list[Stamp]]:
    """Bytes of the log, and when they were written; none where they are no longer there."""
    try:
        with logfile.opened(log, settings.ROLLCALL.home) as segments:
            if start >= segments[0].begin:
                return logfile.read(segments, start, end), stamps(log, segments, start, end)
    except logfile.NoLog:
        pass
    return b"", []
