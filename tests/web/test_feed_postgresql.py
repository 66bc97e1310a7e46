"""The feed on PostgreSQL, where transactions of several writers overlap and ids are given out before the commit."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.support.needs import needs
from tests.support.polling import eventually
from tests.support.servers import PostgreSQL
from tests.web.site import Scribe, Site, follow, receive

pytestmark = needs("postgres")


@pytest.fixture
def database() -> Iterator[PostgreSQL]:
    """A server of the test's own."""
    made = PostgreSQL()
    yield made
    made.close()


@pytest.fixture
def on_postgresql(database: PostgreSQL) -> Iterator[Site]:
    """A web process on it."""
    made = Site(DATABASE_URL=database.url)
    try:
        yield made.start()
    finally:
        made.close()


def test_overlapping_writers_lose_and_double_nothing(on_postgresql: Site) -> None:
    site = on_postgresql
    session = site.scribe.user(name="ann", permissions=["view_service"])["session"]
    services = [site.scribe.service(name=f"web-{number}") for number in range(4)]
    writers = [Scribe(site.environment) for _ in services]
    try:
        with site.socket("/ws/feed", session) as ws, ThreadPoolExecutor(4) as threads:
            receive(ws)
            for writer in writers:
                writer.newest()  # it has started
            work = [
                threads.submit(writer.emit, service_id=service, count=200, each=4)
                for writer, service in zip(writers, services, strict=True)
            ]
            found: list[dict[str, Any]] = []
            while len(found) < 800:
                found += receive(ws, 60)["events"]
            for each in work:
                each.result()
    finally:
        for writer in writers:
            writer.close()
    ids = [event["id"] for event in found]
    assert ids == sorted(set(ids))
    assert ids[-1] == site.scribe.newest()
    for service in services:
        assert [event["revision"] for event in found if event["object_id"] == service] == list(range(1, 201))


def test_writers_of_the_same_rows_in_another_order_do_not_wait_for_each_other(database: PostgreSQL) -> None:
    """A circle of waiting writers would be broken by the server, at the cost of one of them."""
    site = Site(DATABASE_URL=database.url)
    other = Scribe(site.environment)
    try:
        one, two = site.scribe.service(name="one"), site.scribe.service(name="two")
        other.newest()  # it has started
        with ThreadPoolExecutor(2) as threads:
            forth = threads.submit(site.scribe.emit_on_both, first=one, second=two, count=60)
            back = threads.submit(other.emit_on_both, first=two, second=one, count=60)
            assert (forth.result(), back.result()) == (60, 60)
    finally:
        other.close()
        site.close()


def test_the_feed_goes_on_after_the_database_was_away(on_postgresql: Site, database: PostgreSQL) -> None:
    site = on_postgresql
    session = site.scribe.user(name="ann", permissions=["view_service"])["session"]
    service = site.scribe.service(name="web")
    with site.socket("/ws/feed", session) as ws:
        cursor = receive(ws)["cursor"]
        database.stop()
        time.sleep(3)  # that long the database is away
        database.start()
        writer = Scribe(site.environment)
        ids = writer.emit(service_id=service, count=5)
        writer.close()
        assert [event["id"] for event in follow(site, session, ws, cursor, ids[-1])] == ids
    eventually(lambda: site.json("/readyz", session)["parts"]["feed"]["ok"])
