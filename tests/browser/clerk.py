"""A process that writes what the controller and its jobs would: one JSON order per line, one answer per line.

In a process of its own, because Playwright keeps an event loop in the thread of the test, where the ORM does not work.
"""

import json
import sys
from datetime import timedelta
from typing import Any

import django

django.setup()

from django.db import connection  # noqa: E402

from replicas import clock  # noqa: E402
from replicas.actions import endpoints, operations, replicas, rollouts, samples, scaling, services, transition  # noqa: E402
from replicas.actions.operations import Usage  # noqa: E402
from replicas.core.values import LIVE, OperationStatus, ServiceStatus  # noqa: E402
from replicas.models import Event, Operation, Replica, Rollout, Sample, Service  # noqa: E402
from replicas.web import intake, outbox  # noqa: E402
from tests import cast  # noqa: E402
from tests.browser import crowds  # noqa: E402
from tests.web import people  # noqa: E402
from tests.web.scribe import end_session, prune_events, user  # noqa: E402


def apply(text: str, actor: str = "ann", message: str = "") -> str:
    """Apply a text; the service's name."""
    return intake.carry_out(intake.propose(text, message=message), actor=actor).service.name


def deploy(name: str, replicas: int = 2) -> str:
    """A service that wants so many replicas and has none yet."""
    return apply(people.text(name, replicas))


def force(name: str, text: str) -> None:
    """A service with this name and this text everywhere, past the parser, with a replica."""
    made = cast.draft(name, run=text)
    draft = services.Draft(name, f"# {text}\nrun: x\n", made.spec, made.digest, made.process_digest, 1, message=text)
    service = services.apply(draft, actor=text[:150]).service
    replica = cast.ready(service)
    facts = {"probe_at": clock.now(), "probe_ok": False, "probe_detail": text, "probe_excerpt": text}
    replicas.observe(
        replica.pk, "probe_failed", reason=text, actor=text[:150], last_lines=[text], url=text[:200], **facts
    )
    services.report(service.pk, status=ServiceStatus.NOT_READY, reason=text, ready=0, live=1, actor="controller")
    Service.objects.filter(pk=service.pk).update(endpoint=text[:200])


def _service(name: str) -> Service:
    return Service.objects.select_related("version").get(name=name)


def _replica(name: str, number: int) -> Replica:
    return Replica.objects.select_related("service", "version").get(service__name=name, number=number)


def _live(replica: Replica) -> Operation:
    return Operation.objects.filter(replica=replica, ended_at=None).get()


def pending(name: str, replaces: int | None = None) -> int:
    """A replica with its queued launch; its number."""
    service = _service(name)
    assert service.version
    made = replicas.create(
        service.pk, service.version.number, replaces=replaces, restarts=0, reason="too few", actor="controller"
    )
    assert made
    return made.number


def provisioning(name: str, number: int) -> None:
    """A worker has taken the launch up."""
    assert operations.claim(_live(_replica(name, number)).pk, cast.WORKER)


def waiting(name: str, number: int, reason: str) -> None:
    """The launch waits."""
    operation = _live(_replica(name, number))
    operations.wait(operation, checkpoint=None, reason=reason, seconds=0, watch=None, usage=Usage())


def go_on(name: str, number: int) -> None:
    """The launch that waited is claimed again."""
    assert operations.claim(_live(_replica(name, number)).pk, cast.WORKER)


def launched(name: str, number: int, port: int = 20001, log: str = "", **machine: Any) -> None:
    """The replica's process runs."""
    operation = _live(_replica(name, number))
    done = operations.settle(
        operation,
        OperationStatus.SUCCEEDED,
        "launched",
        reason=f"it runs on port {port}",
        usage=Usage(0.4, 42_000_000),
        url=f"http://127.0.0.1:{port}",
        pid=4242,
        handle={},
        log=log,
        **machine,
    )
    assert done == "settled", done


def probed(name: str, number: int, ok: bool = True, detail: str = "GET /healthz: 200") -> None:
    """A probe that changes the state."""
    replica = _replica(name, number)
    facts = {"probe_at": clock.now(), "probe_ok": ok, "probe_detail": detail, "probe_seconds": 0.012}
    trigger = "probe_passed" if ok else "probe_failed"
    assert replicas.observe(replica.pk, trigger, reason=detail, actor="job", probe_excerpt="ok\n", **facts)


def noted(name: str, number: int, detail: str) -> None:
    """A probe that tells something new and changes no state."""
    replica = _replica(name, number)
    facts = {"probe_at": clock.now(), "probe_ok": True, "probe_excerpt": "ok", "probe_seconds": 0.01}
    assert replicas.note_probe(replica.pk, actor="job", probe_detail=detail, **facts)


def ready(name: str, port: int = 20001, **machine: Any) -> int:
    """A ready replica; its number. `machine`: what it got (`spot`, `accelerators`)."""
    number = pending(name)
    provisioning(name, number)
    launched(name, number, port, **machine)
    probed(name, number)
    return number


def exited(name: str, number: int, reason: str = "run exited with code 7") -> None:
    """The replica's process has ended by itself."""
    replica = _replica(name, number)
    lines = ["starting", "Traceback: no such model"]
    assert replicas.observe(replica.pk, "exited", reason=reason, actor="controller", last_lines=lines)


def down(name: str, number: int) -> None:
    """A replica that is shutting down is taken down."""
    replica = _replica(name, number)
    operation = replicas.begin_down(replica.pk, reason="it is shutting down", actor="controller")
    assert operation
    claimed = operations.claim(operation.pk, cast.WORKER)
    assert claimed
    usage = Usage(0.1, 9_000_000)
    assert operations.settle(claimed, OperationStatus.SUCCEEDED, "gone", reason="gone", usage=usage) == "settled"


def terminate(name: str, number: int, purge: bool = False) -> None:
    """The wish to see a replica gone."""
    assert replicas.want_gone(_service(name).pk, number, purge=purge, actor="bob")


def retire(name: str, number: int, trigger: str = "retired") -> None:
    """What the controller makes of the wish."""
    replica = _replica(name, number)
    assert replicas.retire(replica.pk, trigger, reason="terminated by bob", actor="controller")


def explain(name: str, number: int, reason: str) -> None:
    """Another reason for where the replica is."""
    with transition.writing():
        columns = {"reason": reason}
        assert transition.change(_replica(name, number), "noted", reason=reason, actor="controller", columns=columns)


def withdraw(name: str, number: int) -> None:
    """The end of a replica whose launch has not begun."""
    assert replicas.withdraw(_replica(name, number).pk, reason="not wanted any more", actor="controller")


def report(name: str, status: str, reason: str) -> None:
    """What the controller saw of the service."""
    service = _service(name)
    alive = Replica.objects.filter(service=service, state__in=LIVE)
    counts = {"ready": alive.filter(state="READY").count(), "live": alive.count()}
    services.report(service.pk, status=ServiceStatus(status), reason=reason, actor="controller", **counts)


def scale(name: str, target: int) -> None:
    """Another target."""
    services.scale(_service(name).pk, target, actor="bob")


def restart(name: str) -> None:
    """A new version of the same text."""
    assert services.restart(_service(name).pk, actor="bob")


def steer(name: str, verb: str) -> int:
    """What somebody does to the rollout that goes on: pause, resume, promote or abort; the rollout's id."""
    return int(getattr(rollouts, verb)(_service(name).pk, actor="bob").pk)


def roll_back(name: str, number: int | None = None, message: str = "") -> None:
    """An earlier version becomes active again."""
    rollouts.rollback(_service(name).pk, number, actor="bob", message=message)


def rollout_proved(name: str, best: int) -> None:
    """So many replicas of the new version have proved themselves."""
    going = _going(name)
    assert rollouts.progress(going.pk, going.revision, best, reason=f"{best} proved", actor="controller")


def rollout_switched(name: str) -> None:
    """All traffic goes to the new version."""
    going = _going(name)
    assert rollouts.switch(going.pk, going.revision, reason="complete and proved", actor="controller")


def rollout_ended(name: str, how: str, reason: str) -> None:
    """The rollout that goes on has come to its end: `how` is succeed or fail."""
    going = _going(name)
    assert getattr(rollouts, how)(going.pk, going.revision, reason=reason, actor="controller")


def _going(name: str) -> Rollout:
    found = rollouts.live_of(_service(name).pk)
    assert found is not None
    return found


def measured(
    name: str, first: int, last: int, requests: int = 10, refused: int = 0, step: int = 1, **more: Any
) -> None:
    """Samples from `first` to `last` seconds ago, one for each `step` seconds, as the gateway's driver makes them."""
    now, service = clock.now(), _service(name)
    samples.keep(
        [
            Sample(
                service=service,
                resolution=60 if step >= 60 else 1,
                at=now - timedelta(seconds=ago),
                seconds=step,
                requests=requests * step,
                in_flight=requests / 5,
                queued=refused,
                ready=service.ready,
                p50=20,
                p95=80,
                p99=250,
                codes=[0, (requests - refused) * step, 0, 0, refused * step],
                **more,
            )
            for ago in range(first, last - 1, -step)
        ]
    )


def decided(name: str, target: int, reason: str, **inputs: float | None) -> None:
    """The autoscaler wants another number."""
    service = _service(name)
    said = {"reason": reason, "memory": {}, "inputs": inputs, "actor": "autoscaler"}
    assert scaling.autoscale(service.pk, target, base=service.target, **said)  # type: ignore[arg-type]


def no_endpoint(name: str, reason: str) -> None:
    """The gateway cannot serve it."""
    endpoints.tell(_service(name).pk, "", reason, actor="gateway")


def take_down(name: str, purge: bool = False) -> None:
    """Nothing of it is wanted."""
    services.take_down(_service(name).pk, purge=purge, actor="bob")


def forget(name: str) -> None:
    """The service's row goes."""
    assert services.forget(_service(name).pk, actor="controller")


def cancel(name: str, number: int) -> None:
    """The launch is not wanted."""
    operations.request_cancel(_live(_replica(name, number)).pk, actor="bob")


def crowd(name: str, count: int) -> None:
    """Ready replicas at once and without events, as they are on a page that is opened now."""
    service = _service(name)
    assert service.version
    now = clock.now()
    first = service.last_number + 1
    Replica.objects.bulk_create(
        Replica(
            service=service,
            version=service.version,
            version_number=service.version.number,
            number=number,
            uid=f"crowd-{service.pk}-{number}",
            provider="fake",
            state="READY",
            state_since=now - timedelta(seconds=number),
            url=f"http://127.0.0.1:{20000 + number}",
            reason="a readiness probe passed",
            revision=1,
            created_at=now,
        )
        for number in range(first, first + count)
    )
    Service.objects.filter(pk=service.pk).update(last_number=first + count - 1, ready=count, live=count)


def flap(name: str, first: int, last: int, ok: bool) -> None:
    """Probes that change the state of many replicas."""
    for number in range(first, last + 1):
        probed(name, number, ok)


def events(after: int) -> list[dict[str, Any]]:
    """The events after a cursor, as the feed sends them."""
    found: list[dict[str, Any]] = []
    while items := outbox.items_after(after):
        found += [json.loads(item.text) for item in items]
        after = items[-1].id
    return found


def target_of(name: str) -> int:
    """The service's target."""
    return _service(name).target


def newest() -> int:
    """The newest event's id."""
    return outbox.newest()


def count_events(trigger: str, name: str) -> int:
    """How often something happened."""
    return Event.objects.filter(trigger=trigger, service_name=name).count()


DOORS = {
    each.__name__: each
    for each in (
        apply,
        cancel,
        count_events,
        crowd,
        *crowds.DOORS,
        decided,
        deploy,
        down,
        end_session,
        events,
        exited,
        explain,
        flap,
        force,
        forget,
        go_on,
        launched,
        measured,
        newest,
        no_endpoint,
        noted,
        pending,
        probed,
        provisioning,
        prune_events,
        ready,
        report,
        restart,
        retire,
        roll_back,
        rollout_ended,
        rollout_proved,
        rollout_switched,
        scale,
        steer,
        take_down,
        target_of,
        terminate,
        user,
        waiting,
        withdraw,
    )
}


def main() -> None:
    """Carry out orders until the input ends."""
    for line in sys.stdin:
        order = json.loads(line)
        answer = DOORS[order.pop("do")](**order)
        print(json.dumps(answer), flush=True)
    connection.close()


if __name__ == "__main__":
    main()
