"""Which versions keep their files, and what goes back to a version has to do with them."""

import pytest

from replicas.actions import pruning, rollouts, services
from replicas.actions.rollouts import Refused
from replicas.models import Replica, Service, ServiceVersion
from tests import cast
from tests.actions.test_rollouts import live, proven, section, served, update

pytestmark = pytest.mark.django_db


def with_files(run: str, files: str) -> services.Draft:
    draft = cast.draft(run=run, workdir="/app", service=section())
    fields = {name: getattr(draft, name) for name in draft.__dataclass_fields__}
    return services.Draft(**{**fields, "files_digest": files})


def unused() -> list[int]:
    return sorted(version.number for version in pruning.unused_versions())


def moved(run: str, files: str) -> Service:
    """A version that proves itself, and whose predecessor is gone."""
    service = services.apply(with_files(run, files), actor="ann").service
    proven(service)
    return service


def test_those_of_the_good_version_before_are_kept_and_those_before_it_go() -> None:
    moved("sleep 61", "f1")
    moved("sleep 62", "f2")
    assert unused() == []
    service = moved("sleep 63", "f3")
    assert unused() == [1]
    rollouts.rollback(service.pk, actor="ann")
    assert ServiceVersion.objects.get(number=4).files_uid == ServiceVersion.objects.get(number=2).files_uid


def test_a_version_whose_files_are_gone_cannot_come_back() -> None:
    for number in (1, 2, 3):
        service = moved(f"sleep 6{number}", f"f{number}")
    with pytest.raises(Refused, match="files of version 1 of service web are gone; apply its text again"):
        rollouts.rollback(service.pk, 1, actor="ann")


def test_a_version_that_copies_none_comes_back_and_is_set_up_anew() -> None:
    service = served()
    Replica.objects.all().delete()
    for run in ("sleep 61", "sleep 62"):
        update(run)
        proven(service)
    assert unused() == [1]
    rollouts.rollback(service.pk, 1, actor="ann")
    made = ServiceVersion.objects.get(number=4)
    assert made.files_uid == made.uid != ServiceVersion.objects.get(number=1).files_uid


def test_a_restart_in_between_does_not_let_the_other_go() -> None:
    moved("sleep 61", "f1")
    service = moved("sleep 62", "f2")
    services.restart(service.pk, actor="ann")
    proven(service)
    assert unused() == []
    rollouts.rollback(service.pk, actor="ann")
    assert ServiceVersion.objects.get(number=4).digest == ServiceVersion.objects.get(number=1).digest


def test_what_a_failed_rollout_turns_back_to_is_kept() -> None:
    moved("sleep 61", "f1")
    going = live(services.apply(with_files("sleep 62", "f2"), actor="ann").service)
    assert rollouts.fail(going.pk, going.revision, reason="3 failed", actor="controller")
    assert unused() == []


def test_revived_after_a_down_files_are_copied_anew() -> None:
    service = moved("sleep 61", "f1")
    services.take_down(service.pk, purge=False, actor="ann")
    assert unused() == [1]
    again = services.apply(with_files("sleep 61", "f1"), actor="ann")
    assert (again.change, again.version.number, unused()) == ("revived", 2, [])
