"""Logs over plain HTTP: download, pages, search."""

import http.client
from pathlib import Path

import psutil
import pytest

from tests.support.polling import eventually
from tests.web.site import Site

VIEWS = ["download", "page?before=10", "search?q=x", "span?from=1"]


@pytest.fixture
def log(site: Site, service: int) -> Path:
    """The run log of a replica, empty."""
    path = site.home / "replicas" / f"r{service}" / "run.log"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")
    return path


@pytest.fixture
def address(site: Site, service: int, log: Path) -> str:
    """The address of that log."""
    return f"/logs/replica/{site.scribe.replica(service_id=service, log=str(log))['replica']}/run/"


def test_a_download_is_the_log_byte_for_byte(site: Site, viewer: str, log: Path, address: str) -> None:
    log.with_name("run.log.00000000000000000100").write_bytes(bytes(range(256)))
    log.write_bytes(b"\xff\n<b>")
    status, headers, body = site.get(f"{address}download", viewer)
    assert status == 200
    assert body == bytes(range(256)) + b"\xff\n<b>"
    assert headers["content-length"] == "261"
    assert headers["content-type"] == "text/plain; charset=utf-8"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-disposition"].startswith('attachment; filename="service-')


def test_an_empty_log_downloads_as_nothing(site: Site, viewer: str, address: str) -> None:
    status, headers, body = site.get(f"{address}download", viewer)
    assert (status, headers["content-length"], body) == (200, "0", b"")


def test_a_big_log_is_streamed(site: Site, viewer: str, log: Path, address: str) -> None:
    """The memory of the server is measured by the benchmark; here all of it comes, also when it rotates meanwhile."""
    size = 200 << 20
    with log.open("wb") as file:
        file.truncate(size - 4)
        file.seek(size - 4)
        file.write(b"end\n")
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=30)
    cookies = "; ".join(f"{name}={value}" for name, value in site.cookies(viewer).items())
    connection.request("GET", f"{address}download", headers={"Cookie": cookies})
    answer = connection.getresponse()
    first = answer.read(1 << 20)
    log.unlink()
    got, last = len(first), b""
    while block := answer.read(1 << 20):
        got, last = got + len(block), block
    connection.close()
    assert got == size
    assert last.endswith(b"end\n")


def test_a_client_that_leaves_in_the_middle_leaves_no_file_open(
    site: Site, viewer: str, log: Path, address: str
) -> None:
    with log.open("wb") as file:
        file.truncate(50 << 20)
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=30)
    cookies = "; ".join(f"{name}={value}" for name, value in site.cookies(viewer).items())
    connection.request("GET", f"{address}download", headers={"Cookie": cookies})
    answer = connection.getresponse()
    answer.read(1000)
    assert site.process is not None
    web = psutil.Process(site.process.pid)

    def is_open() -> bool:
        return str(log) in [file.path for file in web.open_files()]

    assert is_open()
    answer.close()
    connection.close()
    eventually(lambda: not is_open())


def test_pages_give_whole_lines_with_their_offsets(site: Site, viewer: str, log: Path, address: str) -> None:
    log.write_text("".join(f"line {number}\n" for number in range(100)))
    page = site.json(f"{address}page?before=70&lines=3", viewer)
    assert page == {"start": 49, "end": 70, "text": "line 7\nline 8\nline 9\n", "oldest": 0, "newest": 790}
    page = site.json(f"{address}page?after=52&lines=2", viewer)
    assert page["start"] == 49
    assert page["text"] == "line 7\nline 8\n"


@pytest.mark.parametrize(
    "query",
    [
        "",
        "before=1&after=1",
        "before=x",
        "before=-1",
        "before=5&lines=0",
        "lines=3",
        f"before={10**19:0100}",
        "before=" + "0" * 20 + "9" * 4400,
    ],
)
def test_a_page_of_nothing_is_refused_with_a_reason(site: Site, viewer: str, address: str, query: str) -> None:
    status, _, body = site.get(f"{address}page?{query}", viewer)
    assert status == 400
    assert b"message" in body


def test_a_search_counts_all_and_lists_the_newest(site: Site, viewer: str, log: Path, address: str) -> None:
    log.write_text("an Error\nfine\nerror: ERROR\n")
    found = site.json(f"{address}search?q=error&limit=2", viewer)
    assert found["count"] == 3
    assert found["matches"] == [[14, 14, None], [14, 21, None]]
    assert found["complete"] is True
    assert (found["oldest"], found["newest"]) == (0, 27)


def noted(log: Path, *entries: tuple[int, int]) -> None:
    """Say beside the log that the bytes from each offset on were written at so many ms."""
    times = b"".join(offset.to_bytes(6, "big") + at.to_bytes(6, "big") for offset, at in entries)
    log.with_name(f"{log.name}.times").write_bytes(times)


def test_lines_have_the_time_at_which_they_were_read(site: Site, viewer: str, log: Path, address: str) -> None:
    log.write_text("one\ntwo\nthree\nfour\n")
    assert site.json(f"{address}span?from=1000", viewer) == {"start": 0, "end": None, "known": False}
    noted(log, (0, 1000), (4, 2500), (14, 9000))
    assert site.json(f"{address}page?after=4&lines=2", viewer)["times"] == [[4, 2500]]
    assert site.json(f"{address}search?q=t", viewer)["matches"] == [[4, 4, 2500], [8, 8, 2500]]
    assert site.json(f"{address}span?from=2000", viewer) == {"start": 4, "end": None, "known": True}
    assert site.json(f"{address}span?from=2500&to=8000", viewer) == {"start": 4, "end": 14, "known": True}
    assert site.json(f"{address}span?to=1000", viewer) == {"start": 0, "end": 4, "known": True}
    assert site.json(f"{address}span?from=9001", viewer) == {"start": 19, "end": None, "known": True}


def test_pages_and_searches_keep_to_the_part_that_is_asked_for(
    site: Site, viewer: str, log: Path, address: str
) -> None:
    log.write_text("one\ntwo\nthree\nfour\n")
    assert site.json(f"{address}page?before=14&floor=4", viewer)["text"] == "two\nthree\n"
    assert site.json(f"{address}page?after=0&floor=4&ceiling=14", viewer)["text"] == "two\nthree\n"
    assert site.json(f"{address}page?before=3&floor=4", viewer)["text"] == ""
    assert site.json(f"{address}search?q=o&floor=4&ceiling=14", viewer)["count"] == 1


@pytest.mark.parametrize("query", ["", "q=", "q=" + "x" * 501, "q=x&limit=0"])
def test_a_search_for_nothing_is_refused(site: Site, viewer: str, address: str, query: str) -> None:
    assert site.get(f"{address}search?{query}", viewer)[0] == 400


@pytest.mark.parametrize("view", VIEWS)
def test_logs_are_for_users_with_the_permission(site: Site, address: str, view: str) -> None:
    expected = 302 if view == "download" else 401
    assert site.get(address + view)[0] == expected
    name = f"{address}-{view}"
    session = site.scribe.user(name=name, permissions=["operate_service"])["session"]
    assert site.get(address + view, session)[0] == 403


@pytest.mark.parametrize("view", VIEWS)
def test_a_log_that_is_not_there_is_not_found(site: Site, viewer: str, service: int, view: str) -> None:
    made = site.scribe.replica(service_id=service)
    for place in ("replica/999999/run/", f"replica/{made['replica']}/run/", f"operation/{made['operation']}/"):
        assert site.get(f"/logs/{place}{view}", viewer)[0] == 404
