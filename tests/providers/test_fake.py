"""The fake provider acts out its script."""

import json
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from replicas.providers.base import Gone, Launched, ProviderError, Waiting
from replicas.providers.fake import FakeProvider
from replicas.providers.probing import ProbeRequest
from tests.providers.cast import Cast, again


class Clock:
    """A clock that stands until it is set."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cast(tmp_path: Path, clock: Clock) -> Cast:
    return Cast(FakeProvider(tmp_path / "home", clock), tmp_path / "home", tmp_path)


def probe(cast: Cast, url: str) -> Any:
    return cast.provider.answer(ProbeRequest(7, url, "/healthz"))


def test_a_launch_takes_its_time(cast: Cast, clock: Clock) -> None:
    order = cast.order(fake={"launch_seconds": 10})
    step = cast.provider.launch(order, None)
    assert isinstance(step, Waiting)
    assert (step.reason, step.seconds) == ("the fake launch takes 10.0 s more", 1.0)
    clock.seconds += 9.5
    assert isinstance(cast.provider.launch(order, None), Waiting)
    clock.seconds += 0.5
    launched = cast.provider.launch(order, step.checkpoint)
    assert isinstance(launched, Launched)
    assert launched.url == "fake://r1"


def test_a_launch_fails_as_often_as_it_should(cast: Cast) -> None:
    order = cast.order(fake={"fail_launch": "no machine free", "fail_times": 2})
    for attempt in (1, 2):
        with pytest.raises(ProviderError, match="no machine free") as caught:
            cast.provider.launch(again(order, attempt=attempt), None)
        assert caught.value.retryable
        assert not caught.value.user_fault
    assert cast.launch(again(order, attempt=3)).url == "fake://r1"


def test_a_launch_that_always_fails(cast: Cast) -> None:
    order = cast.order(fake={"fail_launch": "no machine free"})
    for attempt in (1, 100):
        with pytest.raises(ProviderError):
            cast.provider.launch(again(order, attempt=attempt), None)


def test_it_exits_and_is_ready_by_the_clock(cast: Cast, clock: Clock) -> None:
    script = {"ready_after_seconds": 5, "not_ready_after_seconds": 8, "exit_after_seconds": 10, "exit_code": 7}
    launched = cast.launch(cast.order(fake=script))
    assert (probe(cast, launched.url).status, probe(cast, launched.url).ok) == (503, False)
    clock.seconds += 5
    assert (probe(cast, launched.url).status, probe(cast, launched.url).ok) == (200, True)
    clock.seconds += 3
    assert probe(cast, launched.url).error == "status"
    assert cast.provider.inspect(launched.handle).kind == "running"
    clock.seconds += 2
    assert (cast.provider.inspect(launched.handle).kind, cast.provider.inspect(launched.handle).code) == ("exited", 7)
    assert probe(cast, launched.url).error == "refused"
    assert probe(cast, launched.url).key == 7


def test_it_is_preempted_by_the_clock(cast: Cast, clock: Clock) -> None:
    launched = cast.launch(cast.order(fake={"preempt_after_seconds": 3, "exit_after_seconds": 4}))
    clock.seconds += 100
    assert cast.provider.inspect(launched.handle).kind == "preempted"


def test_a_test_may_end_or_preempt_it(cast: Cast) -> None:
    one, two = cast.launch(cast.order("r1")), cast.launch(cast.order("r2"))
    cast.provider.end("r1", 9)
    cast.provider.preempt("r2")
    assert cast.provider.inspect(one.handle).code == 9
    assert cast.provider.inspect(two.handle).kind == "preempted"
    with pytest.raises(ProviderError, match="r3 is not launched"):
        cast.provider.end("r3", 1)


def test_a_down_meets_resistance_for_some_steps(cast: Cast) -> None:
    order = cast.order(fake={"down_steps": 2})
    launched = cast.launch(order)
    cast.down(order, launched.handle)
    assert len(cast.steps) == 2
    assert cast.provider.inspect(launched.handle).kind == "gone"


def test_a_down_fails(cast: Cast) -> None:
    order = cast.order(fake={"fail_down": "the machine does not answer"})
    launched = cast.launch(order)
    with pytest.raises(ProviderError, match="does not answer"):
        cast.provider.down(order, launched.handle, timedelta(0), None)
    assert cast.provider.inspect(launched.handle).kind == "running"


def test_one_replica_may_have_a_script_of_its_own(cast: Cast) -> None:
    script = {"exit_code": 3, "replicas": {"2": {"exit_after_seconds": 0}}}
    one, two = cast.launch(cast.order("r1", fake=script)), cast.launch(cast.order("r2", number=2, fake=script))
    assert cast.provider.inspect(one.handle).kind == "running"
    assert cast.provider.inspect(two.handle).code == 3


def test_a_script_with_faults_is_refused_at_their_place(cast: Cast) -> None:
    script = {"exit_cod": 1, "launch_seconds": "long", "down_steps": -1, "replicas": {"2": {"exit_code": True}, "3": 1}}
    assert cast.provider.check({"fake": script}) == [
        "fake.exit_cod: the fake provider has no such field, try exit_code",
        "fake.launch_seconds: must be a number of 0 or more",
        "fake.down_steps: must be a number of 0 or more",
        "fake.replicas.2.exit_code: must be a number of 0 or more",
        "fake.replicas.3: must be fields and values",
    ]
    assert cast.provider.check({"fake": {"launch_seconds": 0.5, "fail_down": "x"}}) == []
    assert cast.provider.check({}) == []


def test_a_thousand_replicas_are_a_small_file_each(cast: Cast) -> None:
    handles = [cast.provider.launch(cast.order(f"r{n}"), None).handle for n in range(1000)]
    assert all(cast.provider.inspect(handle).kind == "running" for handle in handles)
    files = list((cast.home / "fake").iterdir())
    assert len(files) == 1000
    assert max(each.stat().st_size for each in files) < 300
    for number in range(1000):
        assert isinstance(cast.provider.down(cast.order(f"r{number}"), {}, timedelta(0), None), Gone)
    assert list((cast.home / "fake").iterdir()) == []


def test_another_process_sees_the_same(cast: Cast, clock: Clock) -> None:
    launched = cast.launch(cast.order(fake={"exit_after_seconds": 5}))
    other = FakeProvider(cast.home, clock)
    assert other.inspect(launched.handle).kind == "running"
    clock.seconds += 5
    assert other.inspect(launched.handle).kind == "exited"
    assert json.loads((cast.home / "fake" / "r1.json").read_text())["launched"] == 1000.0


def test_a_wall_clock_that_is_set_changes_nothing(tmp_path: Path) -> None:
    """All it notes is by the kernel's boot clock, the same for every process and set by nobody."""
    cast = Cast(FakeProvider(tmp_path / "home"), tmp_path / "home", tmp_path)
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    cast.launch(cast.order())
    noted = json.loads((tmp_path / "home" / "fake" / "r1.json").read_text())
    after = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert before <= noted["began"] <= noted["launched"] <= after


def test_what_was_launched_before_a_boot_is_gone_after_it(cast: Cast, clock: Clock) -> None:
    launched = cast.provider.launch(cast.order(), None)
    assert isinstance(launched, Launched)
    clock.seconds = 5.0
    assert cast.provider.inspect(launched.handle).kind == "gone"
    assert probe(cast, launched.url).error is not None


def test_a_launch_that_a_boot_interrupted_begins_anew(cast: Cast, clock: Clock) -> None:
    order = cast.order(fake={"launch_seconds": 30})
    cast.provider.launch(order, None)
    clock.seconds = 5.0
    waiting = cast.provider.launch(order, None)
    assert isinstance(waiting, Waiting)
    assert "takes 30.0 s more" in waiting.reason
