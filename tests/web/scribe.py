"""A process that writes into a test's database through the real actions: one JSON order per line, one answer per line.

The server under test has a home of its own, which the settings of the test process are not those of.
"""

import json
import sys
import time
from typing import Any

import django

django.setup()

from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user_model  # noqa: E402
from django.contrib.auth.models import Permission  # noqa: E402
from django.contrib.sessions.backends.db import SessionStore  # noqa: E402
from django.db import connection, transaction  # noqa: E402

from replicas import clock  # noqa: E402
from replicas.actions import roles, transition  # noqa: E402
from replicas.core.values import LIVE, OperationStatus, ReplicaState, Role  # noqa: E402
from replicas.models import Event, Operation, Replica, Service, ServiceVersion  # noqa: E402


def user(name: str, permissions: list[str]) -> dict[str, Any]:
    """A user with a session: its name, id, session key."""
    person = get_user_model().objects.create_user(name, password="correct horse")
    person.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    session = SessionStore()
    session[SESSION_KEY] = str(person.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = person.get_session_auth_hash()
    session.create()
    return {"id": person.pk, "name": name, "session": session.session_key}


def change_user(name: str, **fields: Any) -> None:
    """Set columns of a user."""
    get_user_model().objects.filter(username=name).update(**fields)


def revoke(name: str) -> None:
    """Take all permissions away from a user."""
    get_user_model().objects.get(username=name).user_permissions.clear()


def role(name: str, role: str) -> None:
    """Give a user a role; "" takes it away."""
    roles.give(get_user_model().objects.get(username=name), Role(role) if role else None)


def set_password(name: str, password: str) -> None:
    """What changing the password elsewhere does."""
    person = get_user_model().objects.get(username=name)
    person.set_password(password)
    person.save()


def end_session(key: str) -> None:
    """What signing out does."""
    SessionStore(key).flush()


def service(name: str) -> int:
    """A service; its id."""
    now = clock.now()
    return Service.objects.create(name=name, created_at=now, updated_at=now).pk


def name_of(service_id: int) -> str:
    """The name of a service."""
    return Service.objects.get(pk=service_id).name


def emit(service_id: int, count: int = 1, each: int = 1, reason: str = "", trigger: str = "noted") -> list[int]:
    """Change the service `count` times, `each` changes per transaction; the ids of the events."""
    row = Service.objects.get(pk=service_id)
    before = Event.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    for start in range(0, count, each):
        with transition.writing():
            for _ in range(start, min(start + each, count)):
                transition.change(row, trigger, reason=reason, actor="test")
    return list(Event.objects.filter(pk__gt=before).order_by("pk").values_list("pk", flat=True))


def look(name: str) -> list[dict[str, Any]]:
    """The service's replicas that have not ended, by number."""
    rows = Replica.objects.filter(service__name=name, state__in=LIVE).order_by("number")
    return list(rows.values("number", "uid", "state", "pid", "version_number"))


def emit_on_both(first: int, second: int, count: int) -> int:
    """Change two services in one transaction, `count` times, in this order; how often both were changed."""
    done = 0
    for _ in range(count):
        with transition.writing():
            rows = [transition.locked(Service, first)]
            changed = [transition.change(row, "noted", reason="", actor="test") for row in rows if row]
            rows = [transition.locked(Service, second)]
            changed += [transition.change(row, "noted", reason="", actor="test") for row in rows if row]
        done += changed == [True, True]
    return done


def emit_at_pace(service_id: int, count: int, seconds: float) -> list[tuple[int, float]]:
    """Change the service `count` times, `seconds` apart; the id of each event, and the boot clock after its commit."""
    row = Service.objects.get(pk=service_id)
    found = []
    for _ in range(count):
        with transition.writing():
            transition.change(row, "noted", reason="", actor="test")
        committed = time.clock_gettime(time.CLOCK_BOOTTIME)
        found.append((newest(), committed))
        time.sleep(seconds)
    return found


def emit_quietly(service_id: int) -> int:
    """An event of whose commit nobody is told, as when another host writes it; its id."""
    row = Service.objects.get(pk=service_id)
    with transaction.atomic():
        Service.objects.filter(pk=row.pk).update(revision=row.revision + 1)
        row.revision += 1
        return transition.record(row, "noted", reason="", actor="test").pk


def prune_events(up_to: int) -> None:
    """Delete the events up to an id."""
    Event.objects.filter(pk__lte=up_to).delete()


def newest() -> int:
    """The newest event's id."""
    return Event.objects.order_by("-pk").values_list("pk", flat=True).first() or 0


def replica(service_id: int, log: str = "", launch_log: str = "", state: str = "STARTING") -> dict[str, int]:
    """A replica with its launch operation: the ids of both."""
    row = Service.objects.get(pk=service_id)
    now = clock.now()
    version, _ = ServiceVersion.objects.get_or_create(
        service=row,
        number=1,
        defaults={
            "uid": f"v{row.pk}",
            "text": "",
            "spec": {},
            "digest": "0",
            "process_digest": "0",
            "created_at": now,
        },
    )
    number = Replica.objects.filter(service=row).count() + 1
    copy = Replica.objects.create(
        service=row,
        version=version,
        version_number=1,
        number=number,
        uid=f"r{row.pk}-{number}",
        provider="local",
        state=state,
        state_since=now,
        created_at=now,
        log=log,
    )
    launch = Operation.objects.create(
        service=row, replica=copy, kind="LAUNCH", log=launch_log, created_at=now, status=OperationStatus.QUEUED
    )
    return {"replica": copy.pk, "operation": launch.pk}


def forget(replica_id: int) -> None:
    """The replica's rows are pruned."""
    Replica.objects.filter(pk=replica_id).delete()


def set_log(replica_id: int, log: str) -> None:
    """The replica was launched: its run log is known, and an event says so."""
    copy = Replica.objects.select_related("service").get(pk=replica_id)
    with transition.writing():
        transition.change(copy, "launched", reason="", actor="test", log=log)


def end(replica_id: int) -> None:
    """The replica ended, and its launch operation with it."""
    copy = Replica.objects.select_related("service").get(pk=replica_id)
    now = clock.now()
    with transition.writing():
        for operation in Operation.objects.filter(replica=copy).select_related("service", "replica"):
            transition.change(
                operation, "settled", reason="", actor="test", status=OperationStatus.SUCCEEDED, ended_at=now
            )
        transition.change(
            copy,
            "ended",
            reason="",
            actor="test",
            state=ReplicaState.TERMINATED,
            outcome=ReplicaState.TERMINATED,
            ended_at=now,
        )


DOORS = {
    each.__name__: each
    for each in (
        user,
        change_user,
        revoke,
        role,
        set_password,
        end_session,
        service,
        name_of,
        emit,
        emit_on_both,
        look,
        emit_at_pace,
        emit_quietly,
        prune_events,
        newest,
        replica,
        forget,
        set_log,
        end,
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
