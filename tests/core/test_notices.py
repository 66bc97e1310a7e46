"""What is told to people, and when: pure decisions over events and a memory."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from replicas.core.notices import (
    MOST_ITEMS,
    Decision,
    Happening,
    Item,
    Limits,
    Memory,
    Said,
    decide,
    inert,
    lines,
    loaded,
    stored,
    title,
)

START = datetime(2026, 12, 1, 12, tzinfo=UTC)
LIMITS = Limits(timedelta(seconds=10), 20, 3, timedelta(seconds=600))
ALL = ("failed", "rollout", "crash_loop", "recovered")


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def status(
    new: str, seconds: float = 0, service: str = "web", trigger: str = "status", reason: str = "why"
) -> Happening:
    return Happening(after(seconds), service, "service", trigger, "X", new, reason)


def failure(seconds: float, service: str = "web") -> Happening:
    return Happening(after(seconds), service, "replica", "gone", "SHUTTING_DOWN", "FAILED", "exited with code 7")


def rollout(new: str, seconds: float = 0, **data: Any) -> Happening:
    data = {"to_version": 2, "good_version": 1, "kind": "update"} | data
    return Happening(after(seconds), "web", "rollout", "x", "PROGRESSING", new, "no progress", data)


class Channel:
    """A channel whose memory goes through JSON at each look, as in life."""

    def __init__(self, wanted: tuple[str, ...] = ALL) -> None:
        self.row: dict[str, Any] = {}
        self.wanted = wanted
        self.decision = Decision(Memory(), None, None)

    def look(self, seconds: float, *happenings: Happening) -> list[tuple[str, str]]:
        """The (service, occasion)s that are said."""
        self.decision = decide(happenings, loaded(self.row), self.wanted, after(seconds), LIMITS)
        self.row = json.loads(json.dumps(stored(self.decision.memory)))
        said = self.decision.said
        return [(item.service, item.occasion) for item in said.items] if said else []


def test_a_failure_is_told_once_after_the_time_of_grouping() -> None:
    channel = Channel()
    assert channel.look(0, status("FAILED")) == []
    assert channel.decision.due == after(10)
    assert channel.look(10) == [("web", "failed")]
    assert channel.look(60, status("FAILED", 40), status("FAILED", 50)) == []
    assert channel.decision.due is None


def test_recovered_only_after_a_failure_that_was_told() -> None:
    channel = Channel()
    channel.look(0, status("READY"))
    assert channel.look(20) == []
    channel.look(30, status("FAILED", 30))
    channel.look(40)
    channel.look(95, status("READY", 90))
    assert channel.look(101) == [("web", "recovered")]
    assert channel.row["troubles"] == {}


@pytest.mark.parametrize("end", ["DOWN", "SHUTTING_DOWN", "NO_REPLICA"])
def test_what_nobody_wants_any_more_does_not_recover(end: str) -> None:
    channel = Channel()
    channel.look(20, status("FAILED"))
    channel.look(50, status(end, 40), status("READY", 45))
    assert channel.look(100) == []


def test_a_service_that_was_forgotten_is_forgotten() -> None:
    channel = Channel()
    channel.look(20, status("FAILED"))
    channel.look(40, status("", 30, trigger="forgotten"))
    assert channel.row["troubles"] == {}


def test_rollouts_that_fail_turn_back_and_succeed() -> None:
    channel = Channel()
    assert channel.look(20, rollout("FAILED")) == [("web", "rollout")]
    assert channel.decision.said is not None
    assert "turns back to version 1" in channel.decision.said.items[0].reason
    channel.look(30, rollout("SUCCEEDED", 30, to_version=3, kind="rollback"))
    assert channel.look(40) == [("web", "recovered")]
    channel.look(50, rollout("ABORTED", 50))
    assert channel.look(60) == [("web", "rollout")]
    assert channel.look(90, rollout("SUPERSEDED", 70), rollout("SUCCEEDED", 75)) == []


def test_a_crash_loop_is_a_count_in_a_window() -> None:
    channel = Channel()
    assert channel.look(1300, failure(0), failure(100), failure(701)) == []
    assert channel.look(1600, failure(1350), failure(1400), failure(1500), failure(1550)) == [("web", "crash_loop")]
    assert channel.look(1700, failure(1650)) == []  # it is known
    assert channel.decision.due == after(1650 + 600)
    assert channel.look(2251) == []
    assert channel.look(2262) == [("web", "recovered")]


def test_a_service_that_flaps_in_a_crash_loop_is_not_told_at_each_turn() -> None:
    channel = Channel()
    told = channel.look(20, failure(0), failure(1), failure(2), status("FAILED", 3))
    assert set(told) == {("web", "crash_loop"), ("web", "failed")}
    for turn in range(30, 500, 10):
        assert channel.look(turn, status("READY", turn - 5), failure(turn - 1), status("FAILED", turn)) == []
    channel.look(600, status("READY", 599))
    channel.look(1200)
    assert channel.look(1300) == [("web", "recovered")]


def test_a_crash_loop_that_was_given_up_is_no_recovery() -> None:
    channel = Channel()
    channel.look(20, failure(0), failure(1), failure(2), status("FAILED", 3))
    assert channel.look(900) == []
    channel.look(945, status("READY", 940))
    assert channel.look(960) == [("web", "recovered")]


def test_a_storm_is_one_notice() -> None:
    channel = Channel()
    assert len(channel.look(20, *[status("FAILED", 1, f"s{n}") for n in range(500)])) == MOST_ITEMS
    assert channel.decision.said is not None
    assert channel.decision.said.left_out == 500 - MOST_ITEMS
    assert title(channel.decision.said).startswith("s0 and 499 more: 50 failed")


def test_what_never_ends_is_spaced_out() -> None:
    """A service that fails and recovers each 5 s for an hour: 3 at once, then 20 in the hour, and nothing is lost."""
    channel, notices, items = Channel(), 0, 0
    for second in range(0, 3600, 5):
        new = "FAILED" if second % 10 == 0 else "READY"
        channel.look(second, status(new, second))
        said = channel.decision.said
        notices += said is not None
        items += sum(item.count for item in said.items) if said else 0
    assert notices <= 3 + 20
    channel.look(4000)
    assert channel.decision.said is not None
    assert items + sum(item.count for item in channel.decision.said.items) == 720


def test_only_what_a_channel_wants() -> None:
    channel = Channel(("recovered",))
    assert channel.look(20, status("FAILED"), failure(1)) == []
    channel.look(30, status("READY", 30))
    assert channel.look(40) == [("web", "recovered")]


def test_a_clock_that_was_set_back_holds_nothing_up() -> None:
    channel = Channel()
    channel.look(5000, status("FAILED", 5000))
    assert channel.look(0) == [("web", "failed")]


def test_hostile_text_stays_on_its_line() -> None:
    name = "web\r\nBcc: all@example.org\u202e\x1b[31m" + "x" * 500
    said = Said((Item(name, "failed", "a\nb", START, 2),), 3)
    assert "\n" not in title(said)
    assert not any(ord(c) < 32 or c == "\u202e" for c in title(said) + "".join(lines(said)))
    assert len(title(said)) < 200
    assert len(lines(said)) == 2
    assert inert("a\0b", 10) == "a b"
