"""Figures become rows, and rows fall in number with their age."""

from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from replicas.actions import samples
from replicas.controller import sampling
from replicas.controller.sampling import Sampler
from replicas.core.latency import bucket, middle
from replicas.gateway.accesslog import Tally
from replicas.gateway.statistics import Backend, Figures
from replicas.gateway.values import Entry
from replicas.models import Sample
from replicas.web import metrics
from tests import cast

pytestmark = pytest.mark.django_db(transaction=True)
NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def backend(total: int, in_flight: int = 0) -> Backend:
    server = Figures("r1", "UP", in_flight=in_flight, total=total)
    return Backend(Figures("BACKEND", "UP", total=total), {"r1": server, "r2": Figures("r2", "MAINT")})


def test_a_second_of_traffic_is_a_row(home: object) -> None:
    entry = Entry(cast.service().pk, "web", 18000)
    sampler = Sampler()
    tally = Tally()
    for milliseconds in range(1, 101):
        tally.add(200 if milliseconds < 100 else 503, milliseconds, "1")
    assert sampler.sample(NOW, [entry], {entry.backend: backend(50)}, {}, {}) == []
    sampler.sample(NOW, [entry], {entry.backend: backend(150, 7)}, {entry.id: tally}, {entry.id: 2})
    row = Sample.objects.get(resolution=1)
    assert (row.requests, row.in_flight, row.held, row.ready) == (100, 7, 2, 1)
    assert (row.p50, row.p95, row.p99) == (51, 96, 100)
    assert sum(row.times.values()) == 100
    assert row.codes == [0, 99, 0, 0, 1]
    assert row.replicas == {"1": [100, 7, 0]}


def test_what_nobody_could_take_has_no_latency(home: object) -> None:
    entry = Entry(cast.service().pk, "web", 18000)
    sampler, tally = Sampler(), Tally()
    tally.add(503, 0, "<NOSRV>", "LR")
    assert (tally.percentile(0.5), tally.codes[4], tally.count) == (None, 1, 1)
    sampler.sample(NOW, [entry], {entry.backend: backend(50)}, {}, {})
    sampler.sample(NOW, [entry], {entry.backend: backend(51)}, {entry.id: tally}, {})
    assert Sample.objects.get().p95 is None
    tally.add(503, 900, "<NOSRV>", "sQ")  # it waited for a replica
    tally.add(200, 7, "1")
    assert (tally.percentile(0.0), tally.percentile(0.99)) == (7, 900)


def test_failures_are_counted_by_replica(home: object) -> None:
    entry = Entry(cast.service().pk, "web", 18000)
    sampler, tally = Sampler(), Tally()
    for ended in ("--", "SH", "CD", "sH", "SC"):
        tally.add(200 if ended == "--" else 502, 5, "1", ended)
    sampler.sample(NOW, [entry], {entry.backend: backend(50)}, {}, {})
    sampler.sample(NOW, [entry], {entry.backend: backend(55)}, {entry.id: tally}, {})
    assert Sample.objects.get().replicas == {"1": [5, 0, 3]}


def test_a_worker_that_counts_anew_is_no_negative_rate(home: object) -> None:
    entry = Entry(cast.service().pk, "web", 18000)
    sampler = Sampler()
    sampler.sample(NOW, [entry], {entry.backend: backend(500)}, {}, {})
    sampler.sample(NOW, [entry], {entry.backend: backend(20)}, {}, {})
    assert Sample.objects.get().requests == 20


def test_silence_is_few_rows_that_cover_all_of_it(home: object, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = Entry(cast.service().pk, "web", 18000)
    sampler, moment = Sampler(), 1000.0
    monkeypatch.setattr(sampling.time, "monotonic", lambda: moment)
    for _ in range(31):
        sampler.sample(NOW, [entry], {entry.backend: backend(5)}, {}, {})
        moment += 1
    rows = list(Sample.objects.order_by("id"))
    assert [row.seconds for row in rows] == [1, 10, 10]
    assert all(row.requests == 0 for row in rows)


def test_what_was_not_measured_has_no_row(home: object, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = Entry(cast.service().pk, "web", 18000)
    sampler = Sampler()
    sampler.sample(NOW, [entry], {entry.backend: backend(5)}, {}, {})
    sampler.forget()
    assert sampler.sample(NOW, [entry], {entry.backend: backend(900)}, {}, {}) == []


def made(service_id: int, at: datetime, requests: int, p95: float | None) -> Sample:
    times = {} if p95 is None else {str(bucket(round(p95))): requests}
    return Sample(
        service_id=service_id,
        resolution=1,
        at=at,
        seconds=1,
        requests=requests,
        in_flight=requests / 10,
        p50=p95 and p95 / 2,
        p95=p95,
        p99=p95,
        times=times,
        codes=[0, requests, 0, 0, 0],
        replicas={"1": [requests, 1, 0]},
    )


def test_minutes_are_made_of_seconds_and_old_ones_go(home: object) -> None:
    web = cast.service().pk
    begin = NOW - timedelta(minutes=3)
    samples.keep(
        [made(web, begin + timedelta(seconds=n), n % 2 * 10, 5.0 * n if n % 2 else None) for n in range(1, 121)]
    )
    samples.keep([made(web, NOW - timedelta(hours=2), 1, None)])
    old = made(web, NOW - timedelta(days=8), 1, None)
    old.resolution = 60
    samples.keep([old])
    samples.tidy(NOW)
    samples.tidy(NOW)  # again: nothing more
    minutes = list(Sample.objects.filter(resolution=60).order_by("at"))
    assert [(row.at, row.requests, row.seconds) for row in minutes] == [
        (begin + timedelta(minutes=1), 300, 60),
        (begin + timedelta(minutes=2), 300, 60),
    ]
    assert (minutes[0].p50, minutes[0].p99) == (middle(bucket(155)), middle(bucket(295))), "not of the worst second"
    assert sum(minutes[0].times.values()) == 300
    assert minutes[0].in_flight == pytest.approx(0.5)
    assert minutes[1].codes == [0, 300, 0, 0, 0]
    assert Sample.objects.filter(resolution=1).count() == 120


def test_the_series_is_given_to_who_may_see(home: object, admin_client: Client, client: Client) -> None:
    web = cast.service().pk
    from replicas import clock

    now = clock.now()  # once, or two of them may be of the same second
    samples.keep([made(web, now - timedelta(seconds=n), n, 4.0) for n in (1, 2, 3)])
    said = admin_client.get("/services/web/samples.json?range=60").json()
    assert (said["resolution"], said["columns"]["requests"]) == (1, [3, 2, 1])
    assert len(said["columns"]["at"]) == len(said["columns"]["replicas"]) == 3
    assert admin_client.get("/services/web/samples.json?range=86400").json()["resolution"] == 60
    assert client.get("/services/web/samples.json").status_code == 302


def test_metrics_have_the_control_planes_own_figures(home: object, client: Client) -> None:
    replica = cast.ready(cast.service())
    replica.probe_seconds = 0.25
    replica.save(update_fields=["probe_seconds"])
    text = client.get("/metrics").content.decode()
    for line in (
        'rollcall_replicas{service="web",state="READY"} 1.0',
        'rollcall_probe_seconds{service="web",replica="1"} 0.25',
        'rollcall_operation_wait_seconds{kind="LAUNCH",quantile="0.95"}',
        'rollcall_operation_duration_seconds{kind="LAUNCH",quantile="0.5"}',
    ):
        assert line in text


def test_metrics_of_each_replica_in_traffic(home: object, monkeypatch: pytest.MonkeyPatch) -> None:
    web = cast.service()
    server = Figures("r7", "UP", in_flight=3, queued=1, total=40, errors=2)
    found = {f"b{web.pk}": Backend(Figures("BACKEND", total=41, codes=(0, 38, 0, 0, 2)), {"r7": server})}
    monkeypatch.setattr(metrics.runtime, "ask", lambda *_: "")
    monkeypatch.setattr(metrics.statistics, "parse", lambda _: found)
    text = "".join(metrics.gateway_lines())
    for name, value in (("in_flight_requests", 3), ("queued_requests", 1), ("requests_total", 40), ("errors_total", 2)):
        assert f'rollcall_replica_{name}{{service="web",replica="7"}} {value}.0' in text
    assert 'rollcall_requests_total{service="web"} 41.0' in text
    assert 'rollcall_responses_total{service="web",class="5xx"} 2.0' in text


def test_metrics_are_for_this_host_or_with_a_token(home: object, client: Client, settings: object) -> None:
    import dataclasses
    from typing import Any

    cast.service()
    text = client.get("/metrics").content.decode()
    assert 'rollcall_target_replicas{service="web"} 1.0' in text
    assert "rollcall_gateway_up 0.0" in text
    assert client.get("/metrics", REMOTE_ADDR="10.0.0.9").status_code == 401
    assert client.get("/metrics", HTTP_X_FORWARDED_FOR="10.0.0.9").status_code == 401
    holder: Any = settings
    holder.ROLLCALL = dataclasses.replace(holder.ROLLCALL, metrics_token="let-me")
    far = {"REMOTE_ADDR": "10.0.0.9"}
    assert client.get("/metrics", HTTP_AUTHORIZATION="Bearer wrong", **far).status_code == 401
    assert client.get("/metrics", HTTP_AUTHORIZATION="Bearer let-me", **far).status_code == 200
