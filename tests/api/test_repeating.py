"""A POST with an Idempotency-Key that is sent again: answered as the first time, and carried out once."""

from datetime import timedelta
from typing import Any

import pytest

from replicas import clock
from replicas.actions import idempotency
from replicas.core.values import Scope
from replicas.models import Event, KeptAnswer, Service
from replicas.web.api import acting
from tests.api.caller import Caller
from tests.web.people import deployed, text

pytestmark = pytest.mark.django_db
RESTART = "/services/web/restart"


def restarts() -> int:
    return Event.objects.filter(trigger="restarted").count()


def test_the_same_request_again_is_answered_the_same_and_does_nothing() -> None:
    deployed()
    ann = Caller()
    first = ann.post(RESTART, key='"a key"')
    again = ann.post(RESTART, key='"a key"')
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again["Idempotent-Replayed"] == "true"
    assert "Idempotent-Replayed" not in first
    assert restarts() == 1
    ann.post(RESTART, key="another")
    ann.post(RESTART)
    assert restarts() == 3


def test_refusals_are_answered_the_same_too() -> None:
    ann = Caller()
    first = ann.post("/services/web/scale", {"target": 2}, key="k")
    deployed()
    again = ann.post("/services/web/scale", {"target": 2}, key="k")
    assert (first.status_code, again.status_code, again.content) == (404, 404, first.content)


def test_a_key_is_for_one_request() -> None:
    deployed()
    ann = Caller()
    ann.post("/services/web/scale", {"target": 3}, key="k")
    for path, body in (("/services/web/scale", {"target": 4}), (RESTART, None)):
        refused = ann.post(path, body, key="k")
        assert (refused.status_code, refused.json()["error"]["code"]) == (422, "key_reused")
    assert Service.objects.get().target == 3
    assert restarts() == 0


def test_a_key_is_its_tokens_own() -> None:
    deployed()
    Caller().post(RESTART, key="k")
    Caller().post(RESTART, key="k")
    assert restarts() == 2


def test_while_the_first_is_at_work_the_second_waits_unless_the_first_died() -> None:
    deployed()
    ann = Caller()
    ann.post(RESTART, key="k")
    KeptAnswer.objects.update(status=None)
    refused = ann.post(RESTART, key="k")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "at_work")
    KeptAnswer.objects.update(created_at=clock.now() - idempotency.AT_WORK - timedelta(seconds=1))
    assert ann.post(RESTART, key="k").status_code == 200
    assert restarts() == 2


def test_a_fault_of_ours_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    deployed()
    ann = Caller()

    def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError("boom")

    with monkeypatch.context() as patched:
        patched.setattr(acting.services, "restart", fails)
        assert ann.post(RESTART, key="k").status_code == 500
    assert ann.post(RESTART, key="k").status_code == 200


@pytest.mark.parametrize("key", ["", '""', "x" * 256, 'a"b', "schlüssel", "two words"])
def test_what_is_no_key_is_refused(key: str) -> None:
    deployed()
    assert Caller().post(RESTART, key=key).status_code == 400
    assert restarts() == 0


def test_who_may_not_act_leaves_no_answer_and_gets_none() -> None:
    deployed()
    assert Caller(scope=Scope.READ).post(RESTART, key="k").status_code == 403
    assert not KeptAnswer.objects.exists()


def test_answers_go_after_a_day_and_hold_no_secret() -> None:
    ann = Caller()
    yaml = text("web", 1, "secrets:\n  TOKEN: hunter2hunter2\n")
    assert ann.post("/apply", {"yaml": yaml}, key="k").status_code == 201
    assert ann.post("/apply", {"yaml": yaml}, key="k")["Idempotent-Replayed"] == "true"
    (kept,) = KeptAnswer.objects.values()
    assert "hunter2" not in str(kept)
    assert idempotency.prune() == 0
    KeptAnswer.objects.update(created_at=clock.now() - timedelta(hours=25))
    assert "Idempotent-Replayed" not in ann.post("/apply", {"yaml": yaml}, key="k")
    KeptAnswer.objects.update(created_at=clock.now() - timedelta(hours=25))
    assert idempotency.prune() == 1
