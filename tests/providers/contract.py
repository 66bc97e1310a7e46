"""What every provider must do, as a suite that each one runs through. Subclass it and give it a `cast`."""

import json
import time
from datetime import timedelta
from typing import Any

import pytest

from replicas.providers.base import Gone, Launched, LaunchOrder, ProviderError, Waiting
from tests.providers.cast import Cast, again, eventually

GRACE = timedelta(seconds=5)


class ProviderContract:
    """The tests. `scripted` turns what is to happen into spec fields of the provider."""

    @pytest.fixture
    def cast(self) -> Cast:
        raise NotImplementedError

    def scripted(self, **happens: Any) -> dict[str, Any]:
        """Spec fields for: exits (a code), setup_fails, ignores_stop."""
        raise NotImplementedError

    def twin(self, cast: Cast) -> Cast:
        """The same home in another process's eyes: a provider that remembers nothing."""
        return Cast(type(cast.provider)(cast.home), cast.home, cast.logs)

    def test_a_launch_ends_with_a_url_and_a_replica_that_runs(self, cast: Cast) -> None:
        order = cast.order()
        launched = cast.launch(order)
        assert "://" in launched.url
        assert cast.provider.inspect(launched.handle).kind == "running"

    def test_handles_and_checkpoints_are_json(self, cast: Cast) -> None:
        order = cast.order(**self.scripted(slow=True))
        first = cast.provider.launch(order, None)
        assert isinstance(first, Waiting)
        assert json.loads(json.dumps(dict(first.checkpoint))) == first.checkpoint
        launched = cast.launch(order)
        assert json.loads(json.dumps(dict(launched.handle))) == launched.handle

    def test_a_repeated_launch_makes_no_second_replica(self, cast: Cast) -> None:
        order = cast.order()
        launched = cast.launch(order)
        repeats = [cast.launch(order), self.twin(cast).launch(order)]
        assert [repeat.handle for repeat in repeats] == [launched.handle, launched.handle]
        assert [repeat.url for repeat in repeats] == [launched.url, launched.url]

    def test_a_launch_goes_on_without_the_checkpoint_that_a_crash_lost(self, cast: Cast) -> None:
        order = cast.order(**self.scripted(slow=True))
        assert isinstance(cast.provider.launch(order, None), Waiting)
        launched = self.twin(cast).launch(order)
        assert cast.provider.inspect(launched.handle).kind == "running"

    def test_two_replicas_are_apart(self, cast: Cast) -> None:
        one, two = cast.order("r1"), cast.order("r2", number=2)
        first, second = cast.launch(one), cast.launch(two)
        assert first.url != second.url
        cast.down(one, first.handle)
        assert cast.provider.inspect(first.handle).kind == "gone"
        assert cast.provider.inspect(second.handle).kind == "running"

    def test_find_gives_the_handle_of_a_launch_that_nobody_recorded(self, cast: Cast) -> None:
        order = cast.order()
        assert cast.provider.find(order.replica_uid) is None
        launched = cast.launch(order)
        assert self.twin(cast).provider.find(order.replica_uid) == launched.handle

    def test_inspect_after_an_exit_gives_the_code(self, cast: Cast) -> None:
        for uid, code in (("r1", 0), ("r2", 7)):
            launched = cast.launch(cast.order(uid, **self.scripted(exits=code)))
            seen = cast.exited(launched.handle)
            assert (seen.kind, seen.code) == ("exited", code)
            assert str(code) in seen.detail

    def test_a_repeated_launch_of_a_replica_that_has_exited_does_not_start_it_again(self, cast: Cast) -> None:
        order = cast.order(**self.scripted(exits=7))
        launched = cast.launch(order)
        cast.exited(launched.handle)
        assert cast.launch(order).handle == launched.handle
        assert cast.provider.inspect(launched.handle).code == 7

    def test_a_down_of_what_has_exited_is_success(self, cast: Cast) -> None:
        order = cast.order(**self.scripted(exits=7))
        launched = cast.launch(order)
        cast.exited(launched.handle)
        assert "7" in cast.down(order, launched.handle).detail

    def test_a_down_twice_is_success(self, cast: Cast) -> None:
        order = cast.order()
        launched = cast.launch(order)
        assert cast.down(order, launched.handle).detail
        assert cast.down(order, launched.handle).detail
        assert cast.provider.find(order.replica_uid) is None

    def test_a_down_of_what_was_never_launched_is_success_and_leaves_nothing(self, cast: Cast) -> None:
        assert isinstance(cast.provider.down(cast.order(), None, GRACE, None), Gone)
        assert not [each for each in cast.home.rglob("*") if "r1" in each.name]

    def test_a_down_without_a_handle_finds_the_replica(self, cast: Cast) -> None:
        order = cast.order()
        launched = cast.launch(order)
        self.twin(cast).down(order, None)
        assert cast.provider.inspect(launched.handle).kind == "gone"

    def test_a_down_in_the_middle_of_a_launch_leaves_nothing(self, cast: Cast) -> None:
        order = cast.order(**self.scripted(slow=True))
        assert isinstance(cast.provider.launch(order, None), Waiting)
        cast.down(order, None)
        assert cast.provider.find(order.replica_uid) is None

    def test_a_down_waits_for_what_does_not_want_to_end(self, cast: Cast) -> None:
        order = cast.order(**self.scripted(ignores_stop=True))
        launched = cast.launch(order)
        self.settled(cast, launched)
        step = cast.provider.down(order, launched.handle, timedelta(seconds=0.4), None)
        assert isinstance(step, Waiting)
        assert step.reason
        assert json.loads(json.dumps(dict(step.checkpoint))) == step.checkpoint
        assert cast.provider.inspect(launched.handle).kind == "running"
        cast.down(order, launched.handle, grace=0.4)
        assert cast.provider.inspect(launched.handle).kind == "gone"

    def settled(self, cast: Cast, launched: Launched) -> None:
        """Wait until a replica of `ignores_stop` ignores it."""

    def test_after_a_down_the_same_replica_can_be_launched_again_for_another_attempt(self, cast: Cast) -> None:
        order = cast.order()
        first = cast.launch(order)
        cast.down(order, first.handle)
        second = cast.launch(again(order, attempt=2))
        assert cast.provider.inspect(second.handle).kind == "running"

    def test_a_failing_setup_is_the_users_fault_and_brings_its_last_lines(self, cast: Cast) -> None:
        order: LaunchOrder = cast.order(**self.scripted(setup_fails="no such package"))
        with pytest.raises(ProviderError) as caught:
            cast.launch(order)
        assert caught.value.user_fault
        assert not caught.value.retryable
        assert "setup" in caught.value.reason
        assert "no such package" in caught.value.tail[-1]
        assert "no such package" in cast.log(order)
        cast.down(order, None)
        assert cast.provider.find(order.replica_uid) is None

    def test_forgetting_a_replica_or_a_version_twice_is_success(self, cast: Cast) -> None:
        order = cast.order()
        launched = cast.launch(order)
        cast.down(order, launched.handle)
        for _ in range(2):
            cast.provider.forget_replica(order.replica_uid)
            cast.provider.forget_version(order.version_uid)
        assert not [each for each in cast.home.rglob("*") if order.replica_uid in each.name]

    def test_what_is_kept_is_listed_until_it_is_forgotten(self, cast: Cast) -> None:
        before = time.time() - 5  # file systems have a clock of their own
        order = cast.order()
        assert list(cast.provider.kept()) == []
        launched = cast.launch(order)
        kept = {(each.kind, each.uid): each for each in self.twin(cast).provider.kept()}
        assert ("replica", "r1") in kept
        assert all(before < each.changed < time.time() + 5 for each in kept.values())
        cast.down(order, launched.handle)
        assert not any(each.live for each in cast.provider.kept())
        cast.provider.forget_replica("r1")
        cast.provider.forget_version("v1")
        assert list(cast.provider.kept()) == []

    def test_a_uid_that_leads_out_of_the_home_is_refused(self, cast: Cast) -> None:
        for uid in ("../r1", "a/b", "", ".", "a\0b"):
            with pytest.raises(ValueError, match="is not a uid"):
                cast.provider.find(uid)

    def test_it_carries_the_smallest_spec(self, cast: Cast) -> None:
        assert cast.provider.check(cast.order().spec) == []

    def test_ready_replicas_are_never_taken_for_ended(self, cast: Cast) -> None:
        launched = cast.launch(cast.order())
        kinds = {self.twin(cast).provider.inspect(launched.handle).kind for _ in range(20)}
        assert kinds == {"running"}
        eventually(lambda: cast.provider.inspect(launched.handle).kind == "running")
