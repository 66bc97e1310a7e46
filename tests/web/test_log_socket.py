"""The websocket of a log: its last lines, then what is written, byte for byte, whatever happens to file and rows."""

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection

from tests.support.patience import within
from tests.support.polling import eventually
from tests.web.site import Site, receive


@pytest.fixture
def log(site: Site, service: int) -> Path:
    """Where the run log of the replica is to be."""
    path = site.home / "replicas" / f"r{service}" / "run.log"
    path.parent.mkdir(parents=True)
    return path


@pytest.fixture
def launch(site: Site, service: int) -> Path:
    """Where the launch log of the replica is to be."""
    return site.home / "logs" / f"launch-{service}.log"


@pytest.fixture
def made(site: Site, service: int, log: Path, launch: Path) -> dict[str, int]:
    """The ids of a replica and of its launch operation."""
    ids: dict[str, int] = site.scribe.replica(service_id=service, log=str(log), launch_log=str(launch))
    return ids


def text_of(ws: ClientConnection, until: Callable[[str], bool], seconds: float = 40.0) -> tuple[str, int]:
    """The text of the chunks, which must follow each other, until it is enough; and the offset behind it."""
    text, cursor = "", -1
    deadline = time.monotonic() + seconds
    while not until(text):
        message = receive(ws, deadline - time.monotonic())
        if message["type"] in ("hello", "reset"):
            cursor = message["start"]
        elif message["type"] == "chunk":
            assert message["start"] == cursor, "a gap or a double"
            cursor = message["end"]
            text += message["text"]
    return text, cursor


def numbered(first: int, last: int) -> str:
    return "".join(f"line {number}\n" for number in range(first, last))


def test_the_tail_comes_first_then_what_is_written(site: Site, viewer: str, log: Path, made: dict[str, int]) -> None:
    log.write_text(numbered(0, 500))
    with site.socket(f"/ws/log?replica={made['replica']}&which=run&tail=3", viewer) as ws:
        hello = receive(ws)
        assert hello["type"] == "hello"
        assert hello["oldest"] == 0
        assert hello["end"] == log.stat().st_size
        chunk = receive(ws)
        assert chunk["text"] == numbered(497, 500)
        assert chunk["start"] == hello["start"]
        with log.open("a") as file:
            file.write("more\n")
        assert receive(ws) == {
            "type": "chunk",
            "start": chunk["end"],
            "end": chunk["end"] + 5,
            "text": "more\n",
        }


def test_between_tail_and_live_there_is_no_gap(site: Site, viewer: str, log: Path, made: dict[str, int]) -> None:
    """Many viewers come while a writer writes all the time."""
    stop = threading.Event()

    def write() -> None:
        with log.open("w", buffering=1) as file:
            for number in range(100_000):
                file.write(f"line {number}\n")
                if stop.wait(0.0005):
                    break
            file.write("the end\n")

    writer = threading.Thread(target=write)
    writer.start()
    found = []
    try:
        eventually(lambda: log.exists() and log.stat().st_size > 10_000)
        for tail in (0, 1, 10, 1000):
            with site.socket(f"/ws/log?replica={made['replica']}&tail={tail}", viewer) as ws:
                text, cursor = text_of(ws, lambda text: text.count("\n") > 1500)
                found.append((text, cursor))
    finally:
        stop.set()
        writer.join()
    whole = log.read_bytes()
    for text, cursor in found:
        assert whole[cursor - len(text) : cursor].decode() == text


@pytest.mark.parametrize("which", ["run", "launch", "operation"])
def test_a_log_that_is_not_there_yet_is_waited_for(
    site: Site, viewer: str, log: Path, launch: Path, made: dict[str, int], which: str
) -> None:
    path = log if which == "run" else launch
    query = f"operation={made['operation']}" if which == "operation" else f"replica={made['replica']}&which={which}"
    with site.socket(f"/ws/log?{query}", viewer) as ws:
        assert receive(ws) == {"type": "waiting"}
        path.write_text("hello\n")
        assert text_of(ws, bool)[0] == "hello\n"


def test_a_log_whose_place_is_not_known_yet_is_waited_for(site: Site, viewer: str, service: int, log: Path) -> None:
    replica = site.scribe.replica(service_id=service)["replica"]
    with site.socket(f"/ws/log?replica={replica}", viewer) as ws:
        assert receive(ws) == {"type": "waiting"}
        log.write_text("hello\n")
        with within(4):  # by the event, not by the look each five seconds
            site.scribe.set_log(replica_id=replica, log=str(log))
            assert text_of(ws, bool)[0] == "hello\n"


def test_characters_are_not_cut_and_bad_bytes_are_shown(
    site: Site, viewer: str, log: Path, made: dict[str, int]
) -> None:
    log.write_bytes(b"")
    with site.socket(f"/ws/log?replica={made['replica']}", viewer) as ws, log.open("ab", buffering=0) as file:
        receive(ws)
        for part in (b"\xc7", b"\x80 ", b"\xf0\x9f", b"\x98\x80 ", b"\xff\xfe", b"\x00\x1b[31m\n"):
            file.write(part)
            time.sleep(0.15)
        text, cursor = _rest(ws, "\n")
    assert text == "ǀ \U0001f600 \ufffd\ufffd\x00\x1b[31m\n"
    assert cursor == log.stat().st_size


def test_an_ended_log_is_said_to_be_ended_once_it_is_read(
    site: Site, viewer: str, log: Path, made: dict[str, int]
) -> None:
    log.write_bytes(b"half a character: \xc7")
    with site.socket(f"/ws/log?replica={made['replica']}", viewer) as ws:
        assert receive(ws)["type"] == "hello"
        assert receive(ws)["text"] == "half a character: "
        site.scribe.end(replica_id=made["replica"])
        assert receive(ws)["text"] == "\ufffd"
        assert receive(ws) == {"type": "ended"}
        with log.open("ab") as file:
            file.write(b"late\n")
        assert receive(ws)["text"] == "late\n"
        assert receive(ws) == {"type": "ended"}


def test_a_replica_that_ended_without_a_log_has_ended(site: Site, viewer: str, made: dict[str, int]) -> None:
    site.scribe.end(replica_id=made["replica"])
    with site.socket(f"/ws/log?replica={made['replica']}", viewer) as ws:
        assert receive(ws) == {"type": "ended"}


def test_the_log_of_a_forgotten_replica_is_gone(site: Site, viewer: str, log: Path, made: dict[str, int]) -> None:
    log.write_text("hello\n")
    with site.socket(f"/ws/log?replica={made['replica']}", viewer) as ws:
        assert text_of(ws, bool)[0] == "hello\n"
        site.scribe.forget(replica_id=made["replica"])
        assert receive(ws) == {"type": "gone"}
        with pytest.raises(ConnectionClosed):
            receive(ws)


def test_rotation_is_not_noticed(site: Site, viewer: str, log: Path, made: dict[str, int]) -> None:
    log.write_text(numbered(0, 100))
    with site.socket(f"/ws/log?replica={made['replica']}", viewer) as ws:
        text, _ = text_of(ws, lambda text: text.endswith("line 99\n"))
        begin = 0
        for part in range(1, 6):
            size = log.stat().st_size
            log.rename(log.with_name(f"run.log.{begin:020d}"))
            begin += size
            log.write_text(numbered(part * 100, part * 100 + 100))
            time.sleep(0.03 * part)
        more, cursor = _rest(ws, "line 599\n")
    assert text + more == numbered(0, 600)
    assert cursor == begin + log.stat().st_size


def _rest(ws: ClientConnection, last: str) -> tuple[str, int]:
    text, end = "", 0
    while not text.endswith(last):
        chunk = receive(ws)
        assert chunk["type"] == "chunk", chunk
        assert end in (0, chunk["start"])
        text, end = text + chunk["text"], chunk["end"]
    return text, end


def test_bytes_that_rotation_removed_are_passed_over_with_a_word(
    site: Site, viewer: str, log: Path, made: dict[str, int]
) -> None:
    log.with_name("run.log.00000000000000001000").write_text(numbered(0, 10))
    log.write_text(numbered(10, 20))
    with site.socket(f"/ws/log?replica={made['replica']}&after=500", viewer) as ws:
        assert receive(ws)["type"] == "hello"
        assert receive(ws) == {"type": "reset", "start": 1000, "oldest": 1000}
        assert receive(ws)["text"] == numbered(0, 20)


def test_another_file_in_its_place_begins_anew(site: Site, viewer: str, launch: Path, made: dict[str, int]) -> None:
    launch.write_text("old\n" * 100)
    with site.socket(f"/ws/log?operation={made['operation']}", viewer) as ws:
        assert text_of(ws, lambda text: len(text) == 400)[1] == 400
        new = launch.with_name("new")
        new.write_text("new\n" * 200)
        new.replace(launch)
        assert receive(ws) == {"type": "reset", "start": 0, "oldest": 0}
        assert receive(ws)["text"] == "new\n" * 200


def test_a_viewer_comes_back_with_its_offset(site: Site, viewer: str, log: Path, made: dict[str, int]) -> None:
    log.write_text(numbered(0, 1000))
    address = f"/ws/log?replica={made['replica']}"
    with site.socket(f"{address}&tail=1000", viewer) as ws:
        text, cursor = text_of(ws, lambda text: len(text) > 100)
    with log.open("a") as file:
        file.write(numbered(1000, 2000))
    with site.socket(f"{address}&after={cursor}", viewer) as ws:
        more, _ = text_of(ws, lambda text: text.endswith("line 1999\n"))
    assert text + more == numbered(0, 2000)


def test_a_slow_viewer_gets_all_and_holds_nobody_up(site: Site, viewer: str, log: Path, made: dict[str, int]) -> None:
    log.write_text("")
    address = f"/ws/log?replica={made['replica']}"
    with site.socket(address, viewer, max_queue=1) as slow, site.socket(address, viewer) as quick:
        receive(quick)
        block = numbered(0, 2000)
        for _ in range(400):  # 8 MB, more than is kept to be shared
            with log.open("a") as file:
                file.write(block)
        whole = block * 400
        assert _all(quick, len(whole)) == whole
        assert _all(slow, len(whole)) == whole


def _all(ws: ClientConnection, size: int) -> str:
    pieces: list[str] = []
    got, cursor = 0, 0
    while got < size:
        message = receive(ws, 30)
        if message["type"] != "chunk":
            continue
        assert message["start"] == cursor
        cursor = message["end"]
        pieces.append(message["text"])
        got += len(pieces[-1])
    return "".join(pieces)


def test_a_path_outside_the_home_is_not_followed(site: Site, viewer: str, service: int, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret\n")
    link = site.home / f"link-{service}.log"
    link.symlink_to(secret)
    for path in (secret, link):
        replica = site.scribe.replica(service_id=service, log=str(path))["replica"]
        with site.socket(f"/ws/log?replica={replica}", viewer) as ws:
            assert receive(ws) == {"type": "waiting"}
        assert site.get(f"/logs/replica/{replica}/run/download", viewer)[0] == 404


def test_messages_of_a_log_are_json_of_one_line(site: Site, viewer: str, log: Path, made: dict[str, Any]) -> None:
    log.write_text('</script><img src=x onerror=alert(1)>\u2028"\\\n')
    with site.socket(f"/ws/log?replica={made['replica']}", viewer) as ws:
        receive(ws)
        raw = ws.recv(timeout=30)
    assert json.loads(raw)["text"] == log.read_text()
    assert "\u2028" not in raw
