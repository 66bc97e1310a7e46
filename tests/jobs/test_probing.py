"""The probe job: what results do to rows, one job per shard, and hanging replicas that delay nobody."""

import asyncio
import socket
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from replicas import clock
from replicas.actions import leases, replicas, services
from replicas.jobs import probe, probing
from replicas.models import Event, Replica
from replicas.providers.probe import Fault, ProbeResult
from tests import cast
from tests.support.patience import within
from tests.support.polling import eventually

pytestmark = pytest.mark.django_db


def result(
    target: probing.Target, ok: bool, detail: str = "", excerpt: str = "", error: str | None = None
) -> ProbeResult:
    return ProbeResult(
        target.key, ok, 200 if ok else 503, error or (None if ok else Fault.STATUS), detail, excerpt, 0.01
    )


def targets(replica: Replica) -> dict[str, probing.Target]:
    return {t.kind: t for t in probing.load_targets(0, {}).values() if t.id == replica.pk}


def readiness(replica: Replica) -> probing.Target:
    return targets(replica)[probing.READINESS]


def test_the_first_success_makes_a_replica_ready_with_its_facts() -> None:
    replica = cast.starting(cast.service())
    target = readiness(replica)
    probing.record(target, result(target, True, "HTTP 200 from GET /", "hello"), clock.now())
    replica.refresh_from_db()
    assert (replica.state, replica.probe_ok, replica.probe_excerpt) == ("READY", True, "hello")


def test_a_probe_that_tells_nothing_new_writes_nothing() -> None:
    replica = cast.ready(cast.service())
    target = readiness(replica)
    probing.record(target, result(target, True, "HTTP 200"), clock.now())
    count = Event.objects.count()
    probing.record(target, result(target, True, "HTTP 200"), clock.now())
    probing.record(readiness(replica), result(target, True, "HTTP 200"), clock.now())
    assert Event.objects.count() == count


def test_the_probe_that_proves_a_new_replica_is_made_in_time_and_written_down() -> None:
    replica = cast.ready(cast.service(service={"rollout": {"min_ready_seconds": 4}}))
    target = readiness(replica)
    assert target.proves_at is not None
    assert target.proves_at - replica.state_since == timedelta(seconds=4)
    assert 0 < target.interval() <= 4, "sooner than the usual interval of 10 s"
    early = target.proves_at - timedelta(milliseconds=1)
    probing.record(target, result(target, True, "HTTP 200"), early)
    count = Event.objects.count()
    probing.record(target, result(target, True, "HTTP 200"), early)
    assert Event.objects.count() == count
    probing.record(target, result(target, True, "HTTP 200"), target.proves_at)
    assert Event.objects.count() == count + 1
    replica.refresh_from_db()
    assert replica.probe_at == target.proves_at
    proved = readiness(replica)
    assert (proved.proves_at, proved.interval()) == (None, 10)
    probing.record(proved, result(proved, True, "HTTP 200"), clock.now())
    assert Event.objects.count() == count + 1


def test_a_version_that_takes_a_replica_over_wants_its_own_proof() -> None:
    owner = cast.service(service={"rollout": {"min_ready_seconds": 4}})
    replica = cast.ready(owner)
    Replica.objects.filter(pk=replica.pk).update(state_since=clock.now() - timedelta(seconds=60))
    target = readiness(replica)
    probing.record(target, result(target, True, "HTTP 200"), clock.now())
    assert readiness(replica).proves_at is None
    adopted = clock.now() + timedelta(seconds=1)
    Replica.objects.filter(pk=replica.pk).update(adopted_at=adopted)
    assert readiness(replica).proves_at == adopted + timedelta(seconds=4)


def test_a_version_without_min_ready_seconds_asks_for_no_further_probe() -> None:
    assert readiness(cast.ready(cast.service(service={"rollout": {"min_ready_seconds": 0}}))).proves_at is None


def test_refusals_of_a_replica_that_has_just_begun_are_not_written_down() -> None:
    replica = cast.starting(cast.service())
    count = Event.objects.count()
    target = readiness(replica)
    probing.record(target, result(target, False, "refused"), clock.now())
    assert Event.objects.count() == count
    Replica.objects.filter(pk=replica.pk).update(launched_at=clock.now() - timedelta(seconds=10))
    probing.record(readiness(replica), result(target, False, "refused"), clock.now())
    replica.refresh_from_db()
    assert (replica.state, replica.probe_detail) == ("STARTING", "refused")


def test_failing_in_a_row_ends_a_replica_and_says_for_how_long() -> None:
    service = {"readiness_probe": {"path": "/", "consecutive_failure_threshold_timeout": 30}}
    replica = cast.ready(cast.service(service=service))
    target = readiness(replica)
    probing.record(target, result(target, False, "HTTP 503"), clock.now())
    replica.refresh_from_db()
    assert replica.state == "NOT_READY"
    Replica.objects.filter(pk=replica.pk).update(state_since=clock.now() - timedelta(seconds=31))
    probing.record(readiness(replica), result(target, False, "HTTP 503"), clock.now())
    replica.refresh_from_db()
    assert (replica.state, replica.outcome) == ("SHUTTING_DOWN", "FAILED_PROBING")
    assert "30 s in a row" in replica.reason


def test_a_liveness_probe_that_fails_for_too_long_ends_a_replica_that_is_ready() -> None:
    service = {
        "readiness_probe": {"path": "/"},
        "liveness_probe": {"path": "/live", "consecutive_failure_threshold_timeout": 20},
    }
    owner = cast.service(service=service)
    starting = cast.starting(owner)
    assert set(targets(starting)) == {probing.READINESS}
    replica = cast.ready(owner)
    live = targets(replica)[probing.LIVENESS]
    assert live.request.path == "/live"
    probing.record(live, result(live, False, "HTTP 500"), clock.now())
    replica.refresh_from_db()
    assert replica.state == "READY"
    assert replica.liveness_failing_since is not None
    live = targets(replica)[probing.LIVENESS]
    probing.record(live, result(live, True, "HTTP 200"), clock.now())
    replica.refresh_from_db()
    assert replica.liveness_failing_since is None
    Replica.objects.filter(pk=replica.pk).update(liveness_failing_since=clock.now() - timedelta(seconds=21))
    live = targets(replica)[probing.LIVENESS]
    probing.record(live, result(live, False, "HTTP 500"), clock.now())
    replica.refresh_from_db()
    assert (replica.state, replica.outcome) == ("SHUTTING_DOWN", "FAILED_PROBING")
    assert replica.reason.startswith("the liveness probe failed for 20 s in a row")


def test_a_late_result_changes_nothing_of_a_replica_that_is_going() -> None:
    replica = cast.ready(cast.service())
    target = readiness(replica)
    replicas.retire(replica.pk, "drain_begun", reason="x", actor="a")
    probing.record(target, result(target, False, "HTTP 503"), clock.now())
    replica.refresh_from_db()
    assert replica.state == "DRAINING"


def test_secrets_in_answers_are_masked_before_they_are_stored() -> None:
    draft = cast.draft()
    fields = {name: getattr(draft, name) for name in draft.__dataclass_fields__}

    fields["spec"]["service"]["readiness_probe"]["headers"] = {"Authorization": "Bearer $T", "Cost": "$5"}
    owner = services.apply(services.Draft(**{**fields, "secrets": {"T": "s3cr3t-value"}}), actor="ann").service
    replica = cast.starting(owner)
    target = readiness(replica)
    assert dict(target.request.headers) == {"Authorization": "Bearer s3cr3t-value", "Cost": "$5"}
    probing.record(target, result(target, True, "said s3cr3t-value", "token=s3cr3t-value"), clock.now())
    replica.refresh_from_db()
    assert replica.probe_excerpt == "token=***"
    assert "s3cr3t" not in str(list(Event.objects.values()))


def test_a_changed_state_or_policy_is_due_at_once_and_the_rest_keeps_its_turn() -> None:
    replica = cast.ready(cast.service())
    known = probing.load_targets(0, {})
    for target in known.values():
        target.due = time.monotonic() + 5
    again = probing.load_targets(0, known)
    (kept,) = again.values()
    assert kept.due == pytest.approx(known[kept.key].due)
    assert replica.pk == kept.id


def test_what_events_tell_of_is_read_again_and_nothing_else(django_assert_num_queries: Any) -> None:
    owner = cast.service()
    begun, gone, same = cast.starting(owner), cast.ready(owner), cast.ready(owner)
    cursor, everything = probing.changes_after(-1)
    assert everything is None
    known = probing.load_targets(0, {})
    replicas.observe(begun.pk, "probe_passed", reason="HTTP 200", actor="probe")
    replicas.observe(gone.pk, "exited", reason="exited with code 1", actor="controller")
    new = cast.starting(owner)
    services.scale(owner.pk, 9, actor="ann")
    newest, changed = probing.changes_after(cursor)
    assert (newest, changed) == (Event.objects.latest("id").pk, {begun.pk, gone.pk, new.pk})
    with django_assert_num_queries(1):
        found = probing.load_targets(0, known, changed)
    assert {t.id: t.state for t in found.values()} == {begun.pk: "READY", same.pk: "READY", new.pk: "STARTING"}
    (kept,) = (target for target in found.values() if target.id == same.pk)
    assert kept is known[kept.key]
    assert probing.changes_after(newest) == (newest, set())


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "LIFETIME_SECONDS", 0.5)
    monkeypatch.setattr(probe, "OVERTIME_SECONDS", 0.5)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("short")
def test_one_job_has_the_shard_and_a_second_delivery_ends_at_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "LIFETIME_SECONDS", 20)
    assert leases.acquire(probe.lease_of(0), "another", 60) is not None
    with within(10):
        probe.run(0)
    leases.release(probe.lease_of(0), "another")
    assert leases.free([probe.lease_of(0)]) == [probe.lease_of(0)]


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("short")
def test_a_job_ends_in_time_and_gives_the_lease_back(home: Path) -> None:
    hanging, port = _hanging()
    replica = cast.starting(cast.service(provider="local"))
    Replica.objects.filter(pk=replica.pk).update(url=f"http://127.0.0.1:{port}")
    with within(10):
        probe.run(0)
    hanging.close()
    assert leases.free([probe.lease_of(0)]) == [probe.lease_of(0)]


def _hanging() -> tuple[socket.socket, int]:
    """A server that takes connections and never answers."""
    server = socket.create_server(("127.0.0.1", 0), backlog=64)
    return server, server.getsockname()[1]


@pytest.mark.django_db(transaction=True)
def test_replicas_that_hang_delay_no_other(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten of them hang; the others become ready at once and stay on time."""
    monkeypatch.setattr(probe, "LIFETIME_SECONDS", 4.0)
    monkeypatch.setattr(probe, "OVERTIME_SECONDS", 0.0)
    hanging, hanging_port = _hanging()
    answering, port = _answering()
    service = cast.service(target=20, provider="local")
    for number in range(20):
        replica = cast.starting(service)
        Replica.objects.filter(pk=replica.pk).update(url=f"http://127.0.0.1:{hanging_port if number < 10 else port}")
    worker = threading.Thread(target=probe.run, args=(0,))
    worker.start()
    try:
        eventually(lambda: Replica.objects.filter(state="READY").count() == 10, 3)
    finally:
        worker.join()
        hanging.close()
        answering.set()
    assert Replica.objects.filter(state="STARTING").count() == 10


def _answering() -> tuple[threading.Event, int]:
    """A server that answers 200, until the event is set."""
    stop = threading.Event()
    ports: list[int] = []
    up = threading.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
        await writer.drain()
        writer.close()

    async def serve() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        ports.append(server.sockets[0].getsockname()[1])
        up.set()
        async with server:
            while not stop.is_set():
                await asyncio.sleep(0.05)

    threading.Thread(target=asyncio.run, args=(serve(),), daemon=True).start()
    assert up.wait(5)
    return stop, ports[0]


def test_the_policy_of_a_probe_is_the_versions(settings: Any) -> None:
    service = {
        "readiness_probe": {"path": "/ready", "post_data": {"a": 1}, "headers": {"X": "y"}, "timeout_seconds": 3}
    }
    replica = cast.starting(cast.service(service=service))
    request = readiness(replica).request
    assert (request.path, request.method, request.body, dict(request.headers), request.timeout) == (
        "/ready",
        "POST",
        b'{"a": 1}',
        {"X": "y"},
        3,
    )
