"""Which ended replicas a tick reads: none that decisions do not need, found by an index, and never one too few."""

import random
import uuid
from datetime import timedelta
from typing import Any

from django.db import connection
from django.test.utils import CaptureQueriesContext

from replicas import clock
from replicas.actions import rollouts
from replicas.controller import observe as observing
from replicas.controller.observe import observe
from replicas.controller.picture import COLUMNS
from replicas.core.planner import plan
from replicas.core.status import status
from replicas.core.values import OUTCOMES
from replicas.models import Replica, Rollout, Service
from replicas.models.fields import ENDED
from tests import cast

FAILED, TERMINATED, PREEMPTED = "FAILED", "TERMINATED", "PREEMPTED"


def settled(name: str, ready: int = 2) -> Service:
    """A service with a version before the active one, whose rollout has come to a good end."""
    cast.ready(cast.service(name, target=ready, run="sleep 1"))
    service = cast.service(name, target=ready)
    for _ in range(ready):
        cast.ready(service)
    latest = Rollout.objects.filter(service=service).latest("id")
    assert rollouts.succeed(latest.pk, latest.revision, reason="done", actor="controller")
    service.refresh_from_db()
    return service


def ended(service: Service, version: Any, state: str, minutes: float, **more: Any) -> Replica:
    """A row of history."""
    service.refresh_from_db(fields=["last_number"])
    service.last_number += 1
    Service.objects.filter(pk=service.pk).update(last_number=service.last_number)
    at = clock.now() - timedelta(minutes=minutes)
    usual = {"created_at": at - timedelta(minutes=1), "state_since": at, "ended_at": at, "reason": f"it was {state}"}
    return Replica.objects.create(
        service=service,
        version=version,
        version_number=version.number,
        number=service.last_number,
        uid=uuid.uuid4().hex,
        provider="fake",
        state=state,
        outcome=state if state in OUTCOMES else "",
        **usual | more,
    )


def lives(service: Service, count: int) -> None:
    """So many deaths of late, one after the other, each of which somebody took the place of; the last heir is alive."""
    before = None
    for minute in range(count, 0, -1):
        gone = ended(service, service.version, FAILED, minute / 4, ready_at=clock.now(), replaces=before)
        before = gone.number
    Replica.objects.filter(pk=cast.pending(service, replaces=before).pk).update(state="READY")


def random_history(service: Service, chance: random.Random) -> None:
    """Rows of every kind, of two versions and three hours; who takes a place is of the version of the one before."""
    versions = list(service.versions.all())
    numbers: dict[int, list[int]] = {version.pk: [] for version in versions}
    for minutes in sorted((180 * chance.random() ** 2 for _ in range(chance.randrange(12))), reverse=True):
        version = chance.choice(versions)
        free = numbers[version.pk]
        made = ended(
            service,
            version,
            chance.choice([FAILED, FAILED, TERMINATED, PREEMPTED, "FAILED_INITIAL_DELAY", "FAILED_CLEANUP"]),
            minutes,
            replaces=free.pop(0) if free and chance.random() < 0.6 else None,
            ready_at=chance.choice([None, clock.now() - timedelta(hours=4)]),
            retire_reason=chance.choice(["", "terminated by ann"]),
            restarts=chance.randrange(3),
        )
        free.append(made.number)


def test_a_steady_service_is_read_without_the_deaths_that_it_has_got_over(db: None) -> None:
    service = settled("web")
    lives(service, 30)
    world = observe(clock.now())
    assert [view.number for view in world.replicas[service.pk] if view.state.ended] == []
    gap = ended(service, service.version, FAILED, 1)
    world = observe(clock.now())
    assert [view.number for view in world.replicas[service.pk] if view.state.ended] == [gap.number]


def test_a_tick_reads_no_table_from_end_to_end(db: None) -> None:
    lives(settled("web"), 3)
    cast.pending(cast.service("young"))
    with CaptureQueriesContext(connection) as captured:
        observe(clock.now())
    if connection.vendor != "sqlite":
        return
    whole = ("SCAN replicas_replica", "SCAN replicas_operation", "SCAN replicas_event")
    for query in captured:
        with connection.cursor() as cursor:
            cursor.execute("EXPLAIN QUERY PLAN " + query["sql"].replace("%", "%%"))
            steps = [step for _, _, _, step in cursor.fetchall()]
        assert not [step for step in steps if step in whole], query["sql"]


def test_less_history_makes_no_other_plan_and_no_other_status(db: None, monkeypatch: Any) -> None:
    chance = random.Random(11)
    for number in range(40):
        service = settled(f"service-{number}", ready=chance.randrange(3))
        random_history(service, chance)
    now = clock.now()
    little = observe(now)
    recent = Replica.objects.filter(ENDED, version__in=Service.objects.values("version"))
    monkeypatch.setattr(
        observing,
        "_history",
        lambda now, *_: (
            [
                row
                for row in recent.values(*COLUMNS)
                if row["ended_at"] > now - observing.HISTORY or row["state"] == "FAILED_CLEANUP"
            ]
            + list(Replica.objects.filter(state="FAILED_CLEANUP").exclude(pk__in=recent).values(*COLUMNS))
        ),
    )
    much = observe(now)
    fewer = 0
    for service in little.services:
        views = little.replicas[service.id], much.replicas[service.id]
        plans = [plan(service, each, now) for each in views]
        assert plans[0] == plans[1], service.name
        assert status(service, views[0], plans[0]) == status(service, views[1], plans[1]), service.name
        fewer += len(views[1]) - len(views[0])
    assert fewer > 5
