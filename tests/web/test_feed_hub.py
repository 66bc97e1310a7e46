"""The window of recent events that all sockets share, and the life of one socket."""

import asyncio
import json
from typing import Any

import pytest

from replicas.web import hub as hubs
from replicas.web import offload, sockets
from replicas.web.hub import Hub, Item


def item(id: int, service: str = "web", size: int = 10) -> Item:
    return Item(id, service, "service", 1, None, json.dumps({"id": id, "pad": "x" * size}))


def ids(text: str | None) -> list[int]:
    return [] if text is None else [event["id"] for event in json.loads(text)["events"]]


@pytest.fixture
def hub() -> Hub:
    made = Hub()
    made.begin(10)
    return made


def test_a_reader_gets_what_follows_its_cursor(hub: Hub) -> None:
    hub.publish([item(11), item(13), item(20)])
    assert ids(hub.message(10, None).text) == [11, 13, 20]
    assert ids(hub.message(12, None).text) == [13, 20]
    assert hub.message(12, None).cursor == 20
    assert hub.message(20, None) == (20, None)


def test_a_message_is_built_once_for_all_readers(hub: Hub) -> None:
    hub.publish([item(11)])
    assert hub.message(10, None).text is hub.message(10, None).text


def test_a_reader_of_one_service_passes_over_the_others(hub: Hub) -> None:
    hub.publish([item(11, "web"), item(12, "db"), item(13, "web"), item(14, "db")])
    assert ids(hub.message(10, "web").text) == [11, 13]
    assert hub.message(10, "web").cursor == 14
    assert hub.message(10, "none") == (14, None)


def test_a_big_batch_is_cut_into_messages_of_bounded_size(hub: Hub) -> None:
    hub.publish([item(id, size=hubs.MESSAGE_CHARS // 3) for id in range(11, 21)])
    cursor, found = 10, list[int]()
    while cursor < hub.end:
        message = hub.message(cursor, None)
        assert message.text is not None
        assert len(message.text) < hubs.MESSAGE_CHARS * 1.1
        cursor = message.cursor
        found += ids(message.text)
    assert found == list(range(11, 21))


def test_one_event_that_is_too_big_for_a_message_is_sent_alone(hub: Hub) -> None:
    hub.publish([item(11), item(12, size=hubs.MESSAGE_CHARS * 2), item(13)])
    assert ids(hub.message(10, None).text) == [11]
    assert ids(hub.message(11, None).text) == [12]
    assert ids(hub.message(12, None).text) == [13]


def test_the_window_forgets_the_oldest_and_says_so(hub: Hub) -> None:
    for first in range(11, 11 + hubs.KEEP_EVENTS * 2, 500):
        hub.publish([item(id) for id in range(first, first + 500)])
    assert not hub.covers(10)
    assert hub.covers(hub.start)
    cursor = hub.start
    while cursor < hub.end:
        message = hub.message(cursor, None)
        assert ids(message.text)[0] == cursor + 1
        cursor = message.cursor


def test_the_window_is_bounded_in_size_too(hub: Hub) -> None:
    for id in range(11, 100):
        hub.publish([item(id, size=hubs.KEEP_CHARS // 10)])
        assert hub.end - hub.start <= 11


def test_a_new_beginning_is_another_epoch(hub: Hub) -> None:
    epoch = hub.epoch
    hub.publish([item(11)])
    hub.begin(5)
    assert hub.epoch != epoch
    assert hub.message(5, None) == (5, None)


class Endless(sockets.Socket):
    """A socket that has something to say for ever."""

    async def stream(self) -> None:
        while True:
            await self.tell(type="noise")


async def life(send: Any, receive: Any) -> int | None:
    """How a socket ends whose other side sends and receives like this."""
    dismissal: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    socket = Endless(None, {}, send)  # type: ignore[arg-type]
    return await asyncio.wait_for(socket._until_over(receive, dismissal), 10)


async def never(*_: Any) -> Any:
    await asyncio.Event().wait()


def test_a_reader_that_takes_nothing_for_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "STALL_SECONDS", 0.2)
    assert asyncio.run(life(never, never)) == sockets.STALLED


def test_a_reader_that_has_gone_needs_no_close(monkeypatch: pytest.MonkeyPatch) -> None:
    async def gone(_: Any) -> None:
        raise ConnectionResetError

    async def leave() -> dict[str, str]:
        return {"type": "websocket.disconnect"}

    assert asyncio.run(life(gone, never)) is None
    assert asyncio.run(life(never, leave)) is None


def test_a_fault_in_a_stream_is_not_hidden() -> None:
    async def broken(_: Any) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(life(broken, never))


def test_a_loop_goes_on_after_a_fault(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(offload, "AGAIN_SECONDS", 0.0)
    faults = iter([ZeroDivisionError("first"), KeyError("second")])

    async def work() -> None:
        for fault in faults:
            raise fault

    asyncio.run(asyncio.wait_for(offload.kept_going(work), 10))
    assert [record.exc_info[0] for record in caplog.records if record.exc_info] == [ZeroDivisionError, KeyError]
