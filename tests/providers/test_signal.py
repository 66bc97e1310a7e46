"""An operator's own number, from a command or a URL."""

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from replicas.providers import signal
from replicas.providers.signal import Unread, read_number
from tests.support.polling import eventually


@pytest.fixture
def answers() -> Iterator[tuple[str, dict[str, tuple[int, str]]]]:
    """The address of a server, and what it answers by path."""
    bodies: dict[str, tuple[int, str]] = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = bodies[self.path]
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)  # a server needs one beside the test
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", bodies
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("command", "value"),
    [
        ("echo 42", 42.0),
        ("echo 'waiting: 3.5 jobs, 7 workers'", 3.5),
        ("echo 1e3", 1000.0),
        ("sh -c 'echo $DEPTH'", 7.0),
        ("echo '$DEPTH; echo 9'", 9.0),
    ],
)
def test_the_first_number_of_a_command_counts(command: str, value: float) -> None:
    assert read_number({"command": command}, {"DEPTH": "7"}) == value


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("echo none", "gave no number: 'none'"),
        ("echo v1.2.3", "gave no number"),
        ("echo -3", "gave -3, which is no load"),
        ("false", "exited with code 1"),
        ("/nowhere/program", "cannot be run"),
        ("echo 'unfinished", "cannot be split into words"),
    ],
)
def test_no_number_says_why(command: str, reason: str) -> None:
    with pytest.raises(Unread, match=reason):
        read_number({"command": command}, {})


def test_a_command_that_hangs_is_killed_with_all_that_it_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(signal, "SECONDS", 3.0)
    pid = tmp_path / "pid"
    with pytest.raises(Unread, match=r"was not done within 3 s"):
        read_number({"command": f"sh -c 'sleep 600 & echo $! > {pid}; wait'"}, {})
    eventually(lambda: not psutil.pid_exists(int(pid.read_text())))


def test_a_command_has_a_clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "5")
    with pytest.raises(Unread):
        read_number({"command": "sh -c 'echo key $SECRET_KEY'"}, {})


def test_the_first_number_of_an_answer_counts(answers: tuple[str, dict[str, tuple[int, str]]]) -> None:
    url, bodies = answers
    bodies["/load?of=web"] = (200, '{"waiting": 12.5}')
    assert read_number({"url": f"{url}/load?of=web"}, {}) == 12.5


def test_an_answer_that_is_none_says_why_without_the_query(answers: tuple[str, dict[str, tuple[int, str]]]) -> None:
    url, bodies = answers
    bodies["/load?token=hush"] = (500, "5")
    with pytest.raises(Unread, match="cannot be read: HTTP 500") as raised:
        read_number({"url": f"{url}/load?token=hush"}, {})
    assert "hush" not in str(raised.value)
