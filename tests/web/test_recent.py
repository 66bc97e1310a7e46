"""Sparklines of all services: what was measured, gaps where nothing was, and as many queries for many as for one."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from replicas import clock
from replicas.actions import samples
from replicas.models import Sample
from replicas.web import recent
from tests import cast
from tests.web.people import browser, deployed

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 30, 12, 0, 7, 500_000, UTC)


def sample(service_id: int, at: datetime, requests: int = 0, seconds: float = 1.0, in_flight: float = 0.0) -> Sample:
    return Sample(service_id=service_id, at=at, seconds=seconds, requests=requests, in_flight=in_flight)


def of(name: str, now: datetime = NOW) -> dict[str, Any]:
    line: dict[str, Any] = recent.lines(now)["services"][name]
    return line


def test_seconds_become_steps_of_ten() -> None:
    web = cast.service("web").pk
    samples.keep([sample(web, NOW - timedelta(seconds=n), n, in_flight=2 * (n % 2)) for n in range(27)])
    line = of("web")
    # The last step began at 12:00:00 and has 8 samples so far, those of 0 to 7 s ago.
    assert line["rates"][-3:] == [22.0, 12.5, 3.5]
    assert line["rates"][:-3] == [None] * 57
    assert line["in_flights"][-2:] == [1.0, 1.0]
    assert recent.lines(NOW)["from"] == "2026-11-30T11:50:10.000Z"


def test_the_newest_figures_are_of_the_last_seconds() -> None:
    web = cast.service("web").pk
    newest = sample(web, NOW, 10, in_flight=4)
    newest.queued, newest.held = 2, 1
    samples.keep([newest, *(sample(web, NOW - timedelta(seconds=n), 0 if n < 5 else 1000) for n in range(1, 9))])
    line = of("web")
    assert (line["rate"], line["in_flight"], line["queued"]) == (2.0, 4, 3)


def test_silence_that_one_sample_covers_is_no_gap_and_what_was_not_measured_is() -> None:
    web = cast.service("web").pk
    samples.keep([sample(web, NOW - timedelta(seconds=each), 0, seconds=12.6) for each in (1, 60)])
    assert of("web")["rates"][-8:] == [0, 0, None, None, None, None, 0, 0]
    assert of("web")["rate"] == 0


def test_without_samples_nothing_is_claimed() -> None:
    cast.service("web")
    assert of("web") == {
        "rate": None,
        "in_flight": None,
        "queued": None,
        "rates": [None] * 60,
        "in_flights": [None] * 60,
    }


def test_old_samples_and_those_of_minutes_are_left_out() -> None:
    web = cast.service("web").pk
    minute = sample(web, NOW - timedelta(seconds=5), 600, seconds=60)
    minute.resolution = samples.MINUTE
    samples.keep([minute, sample(web, NOW - timedelta(minutes=11), 5)])
    assert set(of("web")["rates"]) == {None}


def test_many_services_take_as_many_queries_as_one() -> None:
    client, counts = browser("viewer"), []
    for name in ("a", "b", "c"):
        web = deployed(name).pk
        samples.keep([sample(web, clock.now() - timedelta(seconds=n), 5) for n in range(20)])
        with CaptureQueriesContext(
            connection,
        ) as captured:
            said = client.get("/figures.json").json()
        counts.append(len(captured))
        assert said["services"][name]["rate"] == 5
        assert len(said["services"][name]["rates"]) == recent.POINTS
    assert counts[0] == counts[-1]
