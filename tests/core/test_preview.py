"""The plan says what a move does before it is done: what is launched, adopted and drained, in what order and bounds."""

from collections.abc import Mapping
from typing import Any

import pytest

from replicas.core.preview import Move, There, count, preview, scaling
from replicas.core.spec import Spec
from replicas.core.values import ReplicaState, RolloutKind, RolloutMode

S = ReplicaState
ROLLING, IN_PLACE, BLUE_GREEN = RolloutMode.ROLLING, RolloutMode.IN_PLACE, RolloutMode.BLUE_GREEN


def spec(**service: Any) -> Spec:
    """A spec with these keys in its service section."""
    return Spec.from_json({"name": "web", "run": "x", "service": {"replicas": 4, **service}})


def there(version: int, ready: int = 0, *, adopted: bool = False, listed: bool = True, **others: int) -> There:
    """Replicas of a version: so many READY, and others by state."""
    counts: Mapping[ReplicaState, int] = {S.READY: ready} | {S(state): number for state, number in others.items()}
    return There(version, counts, adopted, listed)


def move(mode: RolloutMode = ROLLING, **fields: Any) -> Move:
    """A move to version 5 from a version that has proved itself."""
    return Move(**{"version": 5, "kind": RolloutKind.UPDATE, "mode": mode, "good_version": 4, **fields})


def told(*sides: There, target: int = 4, moved: Move | None = None, old: Spec | None = None, **service: Any) -> str:
    """The lines as one text."""
    return "\n".join(preview(moved or move(), target, sides, old or spec(), spec(**service)))


class TestCounts:
    def test_what_fits_is_adopted_and_the_rest_is_launched(self) -> None:
        found = count(5, [there(3, 2, adopted=True), there(4, 1, STARTING=1)])
        assert (found.adopted, found.launched, found.surplus, found.older, found.held) == (2, 3, 0, 2, 0)

    def test_more_than_wanted_are_surplus(self) -> None:
        found = count(1, [there(3, 4, adopted=True)])
        assert (found.adopted, found.launched, found.surplus) == (1, 0, 3)

    def test_what_gets_no_traffic_is_held(self) -> None:
        found = count(2, [there(3, 2), there(4, 2, listed=False)])
        assert (found.older, found.held, found.launched) == (2, 2, 2)


class TestFirst:
    def test_everything_is_launched_at_once(self) -> None:
        lines = preview(Move(1, RolloutKind.FIRST, ROLLING), 2, (), None, spec())
        assert lines == [
            "2 replicas of version 1 are launched at once; nothing older is there.",
            "Once there were 5 failures or more without a replica that was ever ready, launches stop.",
        ]

    def test_nothing_is_launched_where_nothing_is_wanted(self) -> None:
        lines = preview(Move(1, RolloutKind.FIRST, ROLLING), 0, (), None, spec())
        assert lines == ["Nothing is launched, as no replica is wanted."]

    def test_the_mix_of_spot_and_on_demand_is_spoken_of(self) -> None:
        policy = {"min_replicas": 3, "base_ondemand_fallback_replicas": 1, "dynamic_ondemand_fallback": True}
        made = Spec.from_json(
            {"name": "web", "run": "x", "resources": {"use_spot": True}, "service": {"replica_policy": policy}}
        )
        lines = preview(Move(1, RolloutKind.FIRST, ROLLING), 3, (), None, made)
        assert "Of 3, 1 on demand and 2 spot; on-demand ones stand in while spot ones are missing." in lines

    def test_who_is_on_the_way_out_is_spoken_of(self) -> None:
        lines = preview(Move(2, RolloutKind.FIRST, ROLLING, leaving=1), 1, (), None, spec())
        assert any("1 replica is on the way out already" in line for line in lines)

    def test_a_service_that_comes_up_again_turns_back_as_in_an_update(self) -> None:
        lines = preview(Move(3, RolloutKind.FIRST, ROLLING, good_version=1), 2, (), None, spec())
        assert lines[-1].startswith("Without progress for")
        assert lines[-1].endswith("it has failed; then it goes back to version 1 by itself.")


class TestInPlace:
    def test_the_running_ones_are_adopted(self) -> None:
        text = told(there(4, 3, STARTING=1, adopted=True), moved=move(IN_PLACE))
        assert text == "In place: 4 replicas are adopted by version 5 and go on as they are; none is replaced."

    def test_more_are_launched(self) -> None:
        text = told(there(4, 1, adopted=True), moved=move(IN_PLACE))
        assert "1 replica is adopted by version 5 and goes on as it is" in text
        assert "3 replicas are launched, as 4 are wanted." in text

    def test_fewer_are_kept(self) -> None:
        text = told(there(4, 4, adopted=True), target=1, moved=move(IN_PLACE), drain_seconds=7)
        assert "3 replicas are drained, as 1 is wanted: those that are not ready first" in text
        assert "up to 7 s" in text

    def test_a_changed_probe_applies_at_once(self) -> None:
        text = told(there(4, 4, adopted=True), moved=move(IN_PLACE), readiness_probe="/other")
        assert "The changed probe applies to them at once, also to those that are starting." in text

    def test_where_nothing_runs_nothing_is_adopted(self) -> None:
        text = told(moved=move(IN_PLACE))
        assert text.splitlines()[0].endswith("none is there to be adopted.")
        assert "4 replicas are launched" in text


class TestRolling:
    def test_says_how_many_and_how_far(self) -> None:
        lines = told(there(4, 4)).splitlines()
        assert lines[0] == "Rolling: 4 replicas of version 5 are launched; 4 older ones (version 4) are drained."
        assert lines[1] == (
            "At most 5 are alive at a time (max_surge 25%), and at least 4 stay ready (max_unavailable 0)."
        )
        assert lines[2].startswith("Order: 1 of the new ones first; a new one takes an old one's place once")

    @pytest.mark.parametrize(
        ("surge", "unavailable", "target", "alive", "ready"),
        [("25%", 0, 10, 13, 10), (0, 1, 4, 4, 3), ("50%", "50%", 3, 5, 2), (2, 0, 1, 3, 1), ("0%", "10%", 4, 4, 3)],
    )
    def test_the_bounds_are_those_of_the_rollout(
        self, surge: Any, unavailable: Any, target: int, alive: int, ready: int
    ) -> None:
        text = told(there(4, target), target=target, rollout={"max_surge": surge, "max_unavailable": unavailable})
        assert f"At most {alive} are alive at a time" in text
        assert f"at least {ready} stay ready" in text

    def test_without_surge_old_ones_make_room(self) -> None:
        text = told(there(4, 4), rollout={"max_surge": 0, "max_unavailable": 2, "min_ready_seconds": 3})
        assert "Order: 2 of the old ones make room first; a new one takes an old one's place once it has been" in text
        assert "ready for 3 s" in text

    def test_several_old_versions_are_named(self) -> None:
        assert "3 older ones (versions 2 and 4) are drained" in told(there(2, 1), there(4, 2))

    def test_one_old_one(self) -> None:
        assert "1 older one (version 4) is drained." in told(there(4, 1), target=1)

    def test_what_fits_is_adopted_beside_what_does_not(self) -> None:
        text = told(there(3, 1, adopted=True), there(4, 3))
        assert "3 replicas of version 5 are launched; 3 older ones (version 4) are drained." in text
        assert "1 replica is adopted: the new version asks for the same process." in text

    def test_what_gets_no_traffic_goes_at_once(self) -> None:
        text = told(there(3, 4), there(4, 2, listed=False))
        assert "4 older ones (version 3) are drained" in text
        assert "2 replicas are taken down at once: no traffic goes to them." in text

    def test_one_port_lets_the_old_one_go_first(self) -> None:
        text = told(there(4, 1), target=1, moved=move(one_port=True))
        assert "an old one goes before a new one comes, whatever max_surge says" in text
        assert "At most" not in text

    def test_a_rollout_that_goes_on_is_superseded(self) -> None:
        first = told(there(4, 4), moved=move(superseded=4)).splitlines()[0]
        assert first == "The rollout to version 4, which is going on, is superseded."


class TestCanary:
    def test_waits_for_somebody(self) -> None:
        text = told(there(4, 4), rollout={"canary": 1})
        assert "Canary: 1 replica of version 5 at first; the rest wait until somebody promotes it." in text

    def test_bakes(self) -> None:
        text = told(there(4, 4), rollout={"canary": "30%", "bake_seconds": 60})
        assert "Canary: 2 replicas of version 5 at first; the rest wait until somebody promotes it, or it has" in text
        assert "been ready for 60 s without a failure." in text

    @pytest.mark.parametrize(
        "moved",
        [move(good_version=0), move(kind=RolloutKind.RESTART), move(BLUE_GREEN), move(kind=RolloutKind.ROLLBACK)],
    )
    def test_there_is_none_where_there_is_nothing_to_compare_with(self, moved: Move) -> None:
        assert "Canary" not in told(there(4, 4), moved=moved, rollout={"canary": 1})


class TestBlueGreen:
    def test_a_whole_set_then_one_step(self) -> None:
        lines = told(
            there(4, 4), moved=move(BLUE_GREEN), rollout={"keep_old_seconds": 300, "min_ready_seconds": 5}
        ).splitlines()
        assert lines[:3] == [
            "Blue-green: 4 replicas of version 5 are launched beside what serves, so up to 8 are alive; "
            "they get no traffic yet.",
            "Once all 4 have been ready for 5 s, all traffic is switched to them in one step.",
            "4 older ones (version 4) are kept for 300 s after the switch, then drained.",
        ]

    def test_nothing_is_kept_where_nothing_is_said(self) -> None:
        assert "4 older ones (version 4) are drained after the switch." in told(there(4, 4), moved=move(BLUE_GREEN))

    def test_it_may_begin_with_the_switch_made(self) -> None:
        text = told(there(3, 4, adopted=True), there(4, 2), moved=move(BLUE_GREEN, switched=True))
        assert "4 replicas are adopted by version 5, which gets all traffic at once." in text

    def test_where_nothing_else_is_there_it_just_launches(self) -> None:
        assert "launched at once; nothing older is there." in told(moved=move(BLUE_GREEN))


class TestFailing:
    def test_it_turns_back_by_itself(self) -> None:
        text = told(there(4, 4), rollout={"progress_deadline_seconds": 90})
        assert "Without progress for 90 s, or after 3 failures of new ones, it has failed; then it goes back to" in text
        assert "version 4 by itself." in text

    def test_unless_it_is_told_not_to(self) -> None:
        text = told(there(4, 4), rollout={"auto_rollback": False})
        assert "then version 4 fills the places that are missing, and it stays so (auto_rollback is off)." in text

    def test_a_rollback_does_not_turn_back(self) -> None:
        assert "a rollback does not turn back by itself" in told(there(4, 4), moved=move(kind=RolloutKind.ROLLBACK))

    def test_what_was_good_before_is_not_given_up(self) -> None:
        text = told(there(4, 4), moved=move(kind=RolloutKind.ROLLBACK, good_fits=True))
        assert text.endswith("so it is not given up: what fails of it is launched again.")

    def test_without_a_good_version_there_is_nothing_to_turn_back_to(self) -> None:
        assert "No version has proved itself so far" in told(there(4, 4), moved=move(good_version=0))


class TestScaling:
    def test_down_and_up(self) -> None:
        (down,) = scaling(1, [there(4, 3, adopted=True)])
        assert down.startswith("No new version: 2 replicas are drained, those that are not ready first")
        assert scaling(5, [there(4, 3, adopted=True)]) == ["No new version: 2 replicas are launched."]
