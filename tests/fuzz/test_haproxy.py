"""Whatever HAProxy says, or something else that sits on its socket: it is understood, or refused by name."""

import contextlib
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from replicas.gateway import runtime, statistics
from replicas.gateway.accesslog import Reader
from tests.fuzz.effort import fuzzed

COLUMNS = "pxname,svname,qcur,scur,stot,status,weight,econ,eresp,addr,hrsp_1xx,hrsp_2xx,hrsp_3xx,hrsp_4xx,hrsp_5xx,"
CELLS = [
    "z" * 200_000,
    "b1",
    "r1",
    "BACKEND",
    "UP",
    "MAINT",
    "0",
    "7",
    "-1",
    "1" * 40,
    "",
    '"',
    '""',
    "\x00",
    "\r",
    "é",
    "no number",
]
ROWS = st.lists(st.lists(st.sampled_from(CELLS), max_size=18), max_size=6)
PROCESSES = [
    "#<PID> <type>",
    "# old workers",
    "# workers",
    "12 worker",
    "x y",
    "",
    " ",
    "99999999999999999999 w",
    "\x00",
]
WORDS = [b"1", b"-1", b"200", b"9" * 30, b"r1", b"--", b"sH", b'{"a": 1}', b"{", b"\xff", b"", b"\n", b"1e3", b"NaN"]


@fuzzed(300)
@given(st.one_of(st.text(), ROWS), st.booleans())
def test_any_statistics_are_read_or_refused(drawn: str | list[list[str]], headed: bool) -> None:
    # Put together here: what a strategy makes is kept by Hypothesis, and this is megabytes at a time.
    text = drawn if isinstance(drawn, str) else "\n".join(map(",".join, drawn))
    if headed:
        text = f"# {COLUMNS}\n{text}"
    with contextlib.suppress(statistics.Unreadable):
        for backend in statistics.parse(text).values():
            assert backend.own.name == statistics.BACKEND


@contextmanager
def somebody(said: bytes) -> Iterator[Path]:
    """A socket on which everybody is told that."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{folder}/s")
        listener.listen(1)

        def answer() -> None:
            link, _ = listener.accept()
            with link, contextlib.suppress(OSError):
                link.sendall(said)

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield Path(folder, "s")
        finally:
            thread.join(10)


@fuzzed(60)
@given(
    st.one_of(st.binary(), st.lists(st.sampled_from(PROCESSES), max_size=6).map(lambda rows: "\n".join(rows).encode()))
)
def test_any_list_of_processes_is_read_or_refused(said: bytes) -> None:
    with somebody(said) as path, contextlib.suppress(runtime.Unreachable, runtime.Unexpected):
        assert all(pid > 0 for pid in runtime.old_workers(path))


@fuzzed(60)
@given(st.binary())
def test_any_answer_to_a_change_is_taken_or_refused(said: bytes) -> None:
    with somebody(said) as path, contextlib.suppress(runtime.Unreachable, runtime.Unexpected):
        runtime.tell(path, "set server b1/r1 state ready")
    with somebody(said) as path, contextlib.suppress(runtime.Unreachable, runtime.Unexpected):
        runtime.reload(path)


@fuzzed(100)
@given(
    st.lists(st.one_of(st.binary(max_size=40), st.lists(st.sampled_from(WORDS), max_size=8).map(b" ".join)), max_size=8)
)
def test_any_lines_of_the_access_log_are_counted_or_left_out(lines: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        reader = Reader(Path(folder, "s"), Path(folder), lambda number: "web" if number == 1 else None)
        try:
            with socket.socket(socket.AF_UNIX) as link:
                link.connect(f"{folder}/s")
                link.sendall(b"\n".join(lines) + b"\n")
            reader.drain()
            reader.drain()
            tallies = reader.take()
            assert not reader.links
            assert all(tally.count >= 1 and (tally.percentile(0.5) or 0) >= 0 for tally in tallies.values())
            written = Path(folder, "web.log")
            kept = written.read_bytes().count(b"\n") if written.exists() else 0
            assert kept == (tallies[1].count if 1 in tallies else 0)
        finally:
            reader.close()
