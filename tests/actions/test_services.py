"""Wishes: versions, targets and the end of services; and the events that tell of them."""

import pytest

from replicas.actions import pruning, replicas, services
from replicas.actions.sealing import Unsealable, seal, unseal
from replicas.actions.services import Conflict
from replicas.core.values import ServiceStatus
from replicas.models import Event, Operation, Replica, Rollout, Service, ServiceVersion
from replicas.models.public import operation_row, replica_row, rollout_row, service_row, version_row
from tests import cast

pytestmark = pytest.mark.django_db


def test_the_first_apply_makes_service_and_version():
    applied = services.apply(cast.draft("web", 3), actor="ann")
    assert (applied.change, applied.version.number, applied.service.target) == ("created", 1, 3)
    triggers = list(Event.objects.order_by("id").values_list("trigger", flat=True))
    assert triggers == ["version_made", "rollout_begun", "created"]


def test_the_same_draft_again_changes_nothing():
    services.apply(cast.draft("web", 3), actor="ann")
    count = Event.objects.count()
    again = services.apply(cast.draft("web", 3), actor="ben")
    assert again.change == "unchanged"
    assert (ServiceVersion.objects.count(), Event.objects.count()) == (1, count)


def test_another_text_makes_the_next_version():
    services.apply(cast.draft("web"), actor="ann")
    applied = services.apply(cast.draft("web", run="sleep 61"), actor="ann")
    assert (applied.change, applied.version.number) == ("updated", 2)
    assert Service.objects.get().version_id == applied.version.pk


def test_changed_files_make_a_new_version_of_the_same_text():
    services.apply(cast.draft("web"), actor="ann")
    changed = cast.draft("web")
    applied = services.apply(services.Draft(**{**_fields(changed), "files_digest": "f2"}), actor="ann")
    assert applied.version.number == 2


def _fields(draft: services.Draft) -> dict:  # type: ignore[type-arg]
    return {name: getattr(draft, name) for name in draft.__dataclass_fields__}


def test_applying_the_text_again_takes_back_a_scale_by_hand():
    service = cast.service(target=2)
    services.scale(service.pk, 5, actor="ben")
    assert services.apply(cast.draft("web", 2), actor="ann").change == "scaled"
    assert Service.objects.get().target == 2


def test_two_updates_at_once_one_wins_and_the_other_is_told():
    services.apply(cast.draft("web"), actor="ann")
    services.apply(cast.draft("web", run="sleep 61"), actor="ann", expected=1)
    with pytest.raises(Conflict, match="at version 2 by now, not 1"):
        services.apply(cast.draft("web", run="sleep 62"), actor="ben", expected=1)
    assert ServiceVersion.objects.count() == 2


def test_a_service_that_was_taken_down_comes_back_with_the_next_numbers():
    service = cast.service()
    first = cast.pending(service)
    services.take_down(service.pk, purge=False, actor="ann")
    replicas.withdraw(first.pk, reason="x", actor="controller")
    applied = services.apply(cast.draft("web"), actor="ann")
    assert (applied.change, applied.version.number) == ("revived", 1)
    assert cast.pending(applied.service).number == first.number + 1


def test_replica_numbers_are_never_reused_even_when_rows_are_purged():
    service = cast.service()
    first = cast.pending(service)
    replicas.withdraw(first.pk, reason="x", actor="controller")
    replicas.want_gone(service.pk, first.number, purge=True, actor="ann")
    assert not Replica.objects.filter(pk=first.pk).exists()
    assert cast.pending(service).number == 2


def test_scale_is_written_once():
    service = cast.service(target=1)
    assert services.scale(service.pk, 4, actor="ben")
    assert services.scale(service.pk, 4, actor="ben")
    assert Event.objects.filter(trigger="scaled").count() == 1
    assert not services.scale(10**9, 4, actor="ben")


def test_a_restart_is_a_version_that_no_running_replica_fits():
    service = cast.service()
    version = services.restart(service.pk, actor="ann")
    assert version is not None
    first = ServiceVersion.objects.get(number=1)
    assert (version.number, version.text) == (2, first.text)
    assert (version.files_uid, version.uid != first.uid) == (first.uid, True)
    assert pruning.unused_versions() == []
    assert version.process_digest != first.process_digest
    replica = cast.pending(service, version=1)
    assert not replicas.adopt(replica.pk, 2, reason="x", actor="controller")


def test_a_version_with_the_same_process_adopts():
    service = cast.service()
    replica = cast.pending(service)
    other = {"readiness_probe": {"path": "/other"}, "replicas": 1}
    services.apply(cast.draft("web", service=other), actor="ann")
    assert replicas.adopt(replica.pk, 2, reason="same process", actor="controller")
    assert Replica.objects.get(pk=replica.pk).version_number == 2


def test_a_report_that_says_the_same_writes_nothing():
    service = cast.service()
    said = {"status": ServiceStatus.READY, "reason": "1 of 1 ready", "ready": 1, "live": 1}
    assert services.report(service.pk, actor="controller", **said)
    count = Event.objects.count()
    assert not services.report(service.pk, actor="controller", **said)
    assert Event.objects.count() == count


def test_forgetting_waits_for_the_last_replica_and_keeps_the_events():
    service = cast.service()
    replica = cast.pending(service)
    services.take_down(service.pk, purge=True, actor="ann")
    assert not services.forget(service.pk, actor="controller")
    replicas.withdraw(replica.pk, reason="x", actor="controller")
    assert services.forget(service.pk, actor="controller")
    assert not Service.objects.exists()
    last = Event.objects.latest("id")
    assert (last.trigger, last.service_name, last.data["forgotten"]) == ("forgotten", "web", True)


def test_secrets_are_stored_sealed(settings):
    draft = services.Draft(**{**_fields(cast.draft("web")), "secrets": {"TOKEN": "hunter2-and-more"}})
    version = services.apply(draft, actor="ann").version
    stored = ServiceVersion.objects.filter(pk=version.pk).values().get()
    assert "hunter2" not in str(stored)
    assert unseal(version.sealed) == {"TOKEN": "hunter2-and-more"}
    settings.SECRET_KEY = "another key altogether, as long as it must be"
    with pytest.raises(Unsealable, match="apply the service again"):
        unseal(version.sealed)
    assert unseal(seal({})) == {}


def test_snapshot_and_events_after_its_cursor_give_the_later_snapshot():
    """Whatever the actions did in between: a browser that replays events ends where a fresh one begins."""

    def snapshot() -> dict:  # type: ignore[type-arg]
        rows = {("service", s.pk): service_row(s) for s in Service.objects.select_related("version")}
        rows |= {("version", v.pk): version_row(v) for v in ServiceVersion.objects.all()}
        rows |= {("replica", r.pk): replica_row(r) for r in Replica.objects.all()}
        rows |= {("rollout", r.pk): rollout_row(r) for r in Rollout.objects.all()}
        return rows | {("operation", o.pk): operation_row(o) for o in Operation.objects.select_related("replica")}

    one = cast.service("one", 2)
    cast.ready(one)
    gone = cast.pending(one)
    cursor = Event.objects.latest("id").pk
    seen = snapshot()
    services.scale(one.pk, 3, actor="ann")
    replicas.withdraw(gone.pk, reason="x", actor="controller")
    replicas.want_gone(one.pk, gone.number, purge=True, actor="ann")
    late = cast.starting(one)
    replicas.note_probe(
        late.pk, actor="probe", probe_detail="HTTP 503", probe_ok=False, probe_excerpt="", probe_seconds=0.1
    )
    replicas.observe(late.pk, "exited", reason="code 3", actor="controller", last_lines=["boom"])
    replicas.begin_down(late.pk, reason="x", actor="controller")
    services.apply(cast.draft("two", 1, run="sleep 5"), actor="ben")
    services.restart(one.pk, actor="ben")
    services.report(one.pk, status=ServiceStatus.READY, reason="fine", ready=1, live=2, actor="controller")
    services.take_down(one.pk, purge=False, actor="ann")
    for event in Event.objects.filter(pk__gt=cursor).order_by("id"):
        key = (event.kind, event.object_id)
        if event.data.get("forgotten"):
            seen.pop(key, None)
        elif event.revision > seen.get(key, {}).get("revision", 0):
            seen[key] = event.data
    now = snapshot()
    # Operations go with their purged replica: their rows have no event of their own.
    kept = {row["id"] for (kind, _), row in now.items() if kind == "replica"}
    seen = {k: row for k, row in seen.items() if k[0] != "operation" or row["replica_id"] in kept}
    assert seen == now


def test_files_of_a_version_are_kept_while_a_wanted_service_or_a_live_replica_uses_them():
    service = cast.service()
    replica = cast.pending(service)
    services.apply(cast.draft("web", run="sleep 61"), actor="ann")
    assert pruning.unused_versions() == []
    services.apply(cast.draft("web", run="sleep 62"), actor="ann")
    replicas.withdraw(replica.pk, reason="x", actor="controller")
    assert sorted(version.number for version in pruning.unused_versions()) == [1, 2]
    services.take_down(service.pk, purge=False, actor="ann")
    assert len(pruning.unused_versions()) == 3
