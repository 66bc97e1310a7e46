"""Whatever bytes come, in whatever pieces: an exchange never raises and always comes to the same end."""

import asyncio
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from replicas.providers.exchange import BODY_LIMIT, Answer, Broken, Exchange

PIECES = [
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.0 503 Busy\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    b"Content-Length: 5\r\n",
    b"Content-Length: 0\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Connection: keep-alive\r\n",
    b"Location: /x\r\n",
    b"X: \xff\x80\r\n",
    b"\r\n",
    b"5\r\nhello\r\n",
    b"0\r\n\r\n",
    b"hello",
    b"\x00",
    b"x" * 1000,
]
conversations = st.lists(st.one_of(st.sampled_from(PIECES), st.binary(max_size=20)), max_size=12).map(b"".join)


class Wire(asyncio.Transport):
    """A transport without a network, as far as an exchange needs one."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.aborted = False

    def write(self, data: bytes) -> None:  # type: ignore[override]
        self.sent += data

    def abort(self) -> None:
        self.aborted = True


def outcome_of(conversation: bytes, cuts: Sequence[int]) -> Answer | Broken:
    """What an exchange makes of the bytes when they come in pieces that end at `cuts`, and then the end."""
    loop = asyncio.new_event_loop()
    try:
        wire = Wire()
        buffer = bytearray(16384)
        exchange = Exchange(b"GET / HTTP/1.1\r\n\r\n", memoryview(buffer), loop)
        exchange.connection_made(wire)
        assert wire.sent == b"GET / HTTP/1.1\r\n\r\n"
        begin = 0
        for end in [*sorted(cuts), len(conversation)]:
            piece = conversation[begin:end]
            begin = end
            if piece and not wire.aborted:
                exchange.get_buffer(-1)[: len(piece)] = piece
                exchange.buffer_updated(len(piece))
        exchange.connection_lost(None)
        assert exchange.outcome.done()
        return exchange.outcome.result()
    finally:
        loop.close()


@given(conversations, st.data())
def test_the_end_does_not_depend_on_how_the_bytes_are_cut(conversation: bytes, data: st.DataObject):
    cuts = data.draw(st.lists(st.integers(0, len(conversation)), max_size=8))
    whole, cut = outcome_of(conversation, []), outcome_of(conversation, cuts)
    assert type(whole) is type(cut)
    if isinstance(whole, Answer) and isinstance(cut, Answer):
        assert (whole.status, whole.location, whole.encoding) == (cut.status, cut.location, cut.encoding)
        assert len(whole.body) <= BODY_LIMIT
        assert whole.body == cut.body


@given(conversations)
def test_an_answer_has_a_status_that_was_sent(conversation: bytes):
    outcome = outcome_of(conversation, [])
    if isinstance(outcome, Answer):
        assert outcome.status == 101 or outcome.status >= 200
        assert str(outcome.status).encode() in conversation
    else:
        assert outcome.why
        assert outcome.silent == (conversation == b"")
