"""What plots are drawn from: even steps of what was measured, gaps left out, replicas and decisions from events."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from replicas import clock
from replicas.actions import samples, scaling, services
from replicas.core.latency import middle
from replicas.core.values import ServiceStatus
from replicas.models import Event, Sample, Service
from replicas.web import history
from tests import cast
from tests.web.people import browser, deployed

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
Columns = dict[str, list[Any]]


def sample(service: Service, at: datetime, requests: int = 0, seconds: float = 1.0, **more: Any) -> Sample:
    codes = more.pop("codes", [0, requests, 0, 0, 0])
    return Sample(service=service, at=at, seconds=seconds, requests=requests, codes=codes, **more)


def measured(service: Service, length: float, step: int, *, fine: bool = True) -> Columns:
    return history.measured(service.pk, NOW - timedelta(seconds=length), step, fine=fine)


def test_samples_are_added_up_in_even_steps() -> None:
    web = cast.service()
    first = sample(web, NOW - timedelta(seconds=4), 30, in_flight=4, p50=10, p95=20, p99=30, codes=[0, 29, 0, 0, 1])
    second = sample(web, NOW - timedelta(seconds=1), 10, 2.0, queued=1, held=2, p50=30, p95=50, p99=60)
    samples.keep([first, second, sample(web, NOW, 0, 1.0)])
    made = measured(web, 60, 5)
    assert made["at"] == ["2026-11-30T12:00:00.000Z"]
    assert (made["seconds"], made["requests"], made["codes"]) == ([4.0], [40], [[0, 39, 0, 0, 1]])
    assert (made["in_flight"], made["queued"]) == ([1.0], [1.5])
    assert (made["p50"], made["p95"], made["p99"]) == ([10.0], [30.5], [49.5]), "of rows without buckets: about"
    one_by_one = measured(web, 60, 1)
    assert one_by_one["requests"] == [30, 10, 0]
    assert one_by_one["p50"] == [10.0, 30.0, None]


def test_percentiles_of_a_step_are_of_all_its_requests_and_not_the_worst_samples() -> None:
    """A second of few and slow requests among seconds of many that are quick: the p95 of the step stays quick."""
    web = cast.service()
    quick = {"times": {"10": 100}, "p50": 10, "p95": 10, "p99": 10}
    slow = {"times": {"64": 2}, "p50": 1024, "p95": 1024, "p99": 1024}
    rows = [sample(web, NOW - timedelta(seconds=each), 100, **quick) for each in range(1, 5)]
    samples.keep([*rows, sample(web, NOW, 2, **slow)])
    made = measured(web, 60, 5)
    assert (made["p50"], made["p95"], made["p99"]) == ([10], [10], [10])
    samples.keep([sample(web, NOW, 20, times={"64": 20}, p50=1024, p95=1024, p99=1024)])
    made = measured(web, 60, 5)
    assert (made["p50"], made["p95"]) == ([10], [middle(64)])


def test_what_was_not_measured_has_no_step() -> None:
    web = cast.service()
    samples.keep([sample(web, NOW - timedelta(seconds=each), 1) for each in (49, 48, 2)])
    assert measured(web, 60, 5)["requests"] == [2, 1]
    assert measured(web, 20, 5)["requests"] == [1]


def test_long_ranges_are_made_of_minutes_and_the_seconds_since() -> None:
    web = cast.service()
    minutes = [sample(web, NOW - timedelta(minutes=each), 600, 60.0, resolution=60) for each in (4, 3, 2)]
    seconds = [sample(web, NOW - timedelta(seconds=each), 1) for each in range(180)]
    samples.keep([*minutes, *seconds])
    made = measured(web, 6 * 3600, 60, fine=False)
    assert made["requests"] == [600, 600, 600, 60, 60]


def test_shares_are_of_the_replicas_in_traffic_now() -> None:
    web = cast.service()
    older = [sample(web, NOW - timedelta(seconds=each), replicas={"1": [9, 5, 1], "2": [1, 0, 0]}) for each in (50, 9)]
    newer = [sample(web, NOW - timedelta(seconds=each), replicas={"2": [4, 2, 1]}) for each in range(5)]
    samples.keep([*older, *newer])
    assert history.shares(web.pk, NOW) == {"2": {"rate": 4.0, "in_flight": 2, "failed": 5}}
    assert history.shares(web.pk, NOW + timedelta(seconds=30)) == {}, "not measured of late"


def test_levels_tell_of_each_change_and_of_the_state_at_the_beginning() -> None:
    web = deployed("web", 3)
    services.report(web.pk, status=ServiceStatus.READY, reason="", ready=3, live=3, actor="controller")
    middle = Event.objects.latest("id")
    services.scale(web.pk, 5, actor="ann")
    services.report(web.pk, status=ServiceStatus.READY, reason="again", ready=3, live=4, actor="controller")
    services.take_down(web.pk, purge=False, actor="ann")
    told = history.happened(web.pk, clock.now() - timedelta(hours=1), 1, None)
    assert told["cursor"] == Event.objects.latest("id").pk
    assert [level[1:] for level in told["levels"]][-1] == [3, 0]
    since = history.happened(web.pk, clock.now(), 1, None)["levels"]
    assert [level[1:] for level in since] == [[3, 0]]
    fresh = history.happened(web.pk, clock.now() - timedelta(hours=1), 1, middle.pk)["levels"]
    assert [level[1:] for level in fresh][-1] == [3, 0]


def test_of_many_changes_in_a_step_the_dip_stays() -> None:
    at = NOW.replace(second=10)
    levels = [(at + timedelta(seconds=n), ready, 4) for n, ready in enumerate([4, 3, 1, 2, 4, 4])]
    later = (at + timedelta(seconds=40), 4, 4)
    found = [level[1] for level in history.thinned([*levels, later], 30)]
    assert found == [1, 4]
    assert [level[1] for level in history.thinned(levels, 1)] == [4, 3, 1, 2, 4]


def test_of_a_service_whose_history_was_pruned_what_is_now_is_shown() -> None:
    web = deployed("web", 2)
    cast.ready(web)
    Service.objects.filter(pk=web.pk).update(ready=1)
    Event.objects.all().delete()
    now = clock.now()
    ((at, ready, wanted),) = history.happened(web.pk, now - timedelta(days=1), 1, None)["levels"]
    assert (ready, wanted) == (1, 2)
    assert now - timedelta(minutes=1) < datetime.fromisoformat(at) <= now
    ((at, _, _),) = history.happened(web.pk, now + timedelta(seconds=5), 1, None)["levels"]
    assert datetime.fromisoformat(at) > now
    assert history.happened(web.pk, now, 1, 0)["levels"] == []
    assert history.happened(10**9, now, 1, None)["levels"] == []


def test_decisions_come_with_what_they_were_made_from() -> None:
    web = deployed("web", 1)
    for target in (2, 4):
        base = Service.objects.get(pk=web.pk).target
        said = {"reason": f"to {target}", "memory": {}, "inputs": {"qps": 7.5, "load": None}, "actor": "autoscaler"}
        assert scaling.autoscale(web.pk, target, base=base, **said)  # type: ignore[arg-type]
    told = history.happened(web.pk, clock.now() - timedelta(minutes=5), 1, None)
    assert [(each["from"], each["target"], each["reason"]) for each in told["decisions"]] == [
        (1, 2, "to 2"),
        (2, 4, "to 4"),
    ]
    assert told["decisions"][0]["inputs"] == {"qps": 7.5, "load": None}
    newer = history.happened(web.pk, clock.now() - timedelta(minutes=5), 1, told["decisions"][0]["id"])
    assert [each["target"] for each in newer["decisions"]] == [4]
    assert history.happened(web.pk, clock.now() - timedelta(minutes=5), 1, told["cursor"])["decisions"] == []


def test_a_page_asks_for_all_first_and_then_for_what_is_new() -> None:
    web, client = deployed("web"), browser("viewer")
    now = clock.now()
    samples.keep([sample(web, now - timedelta(seconds=each), each) for each in (3, 2, 1)])
    first = client.get("/services/web/samples.json?range=300&step=1").json()
    assert (first["range"], first["step"], first["service"]) == (300, 1, web.pk)
    assert first["columns"]["requests"] == [3, 2, 1]
    assert first["levels"][-1][1:] == [0, 2]
    after, cursor = first["columns"]["at"][1], first["cursor"]
    samples.keep([sample(web, now, 9)])
    then = client.get(f"/services/web/samples.json?range=300&step=1&after={after}&cursor={cursor}").json()
    assert then["columns"]["requests"] in ([1, 9], [2, 1, 9])  # `after` has no microseconds
    assert then["levels"] == []
    for after in ("never", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00%2B14:00"):
        said = client.get(f"/services/web/samples.json?step=1&after={after}&cursor=x&range=-4").json()
        assert said["range"] == 900, after


def test_a_step_of_nothing_gives_the_samples_as_they_are() -> None:
    web = deployed("web")
    samples.keep([sample(web, clock.now(), 3, replicas={"1": [3, 0, 0]})])
    said = browser("viewer").get("/services/web/samples.json?step=0").json()
    assert said["columns"]["replicas"] == [{"1": [3, 0, 0]}]
