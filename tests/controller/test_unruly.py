"""A provider that breaks its contract for one replica costs that one, not all."""

from django.conf import settings

from replicas.models import Replica
from replicas.providers import registry
from tests import cast
from tests.controller.stage import Stage


def test_a_replica_that_cannot_be_asked_about_does_not_hold_up_the_others(stage: Stage) -> None:
    service = cast.service(target=2)
    stage.settle(service)
    broken, ended = Replica.objects.order_by("number")
    (settings.ROLLCALL.home / "fake" / f"{broken.uid}.json").write_text("{ half a")
    registry.get("fake", settings.ROLLCALL.home).end(ended.uid, 3)  # type: ignore[attr-defined]
    stage.loop.watch.inspect_seconds = 0
    stage.tick()
    broken.refresh_from_db()
    ended.refresh_from_db()
    assert broken.state == "READY"
    assert ended.state == "SHUTTING_DOWN"
    assert "exited with code 3" in ended.reason
