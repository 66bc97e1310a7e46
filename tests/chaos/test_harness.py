"""The harness itself: acts follow from the seed, and the checks see what they are for."""

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.chaos import logcheck, plan
from tests.chaos.chains import Chains, differences
from tests.chaos.operator import Form
from tests.chaos.server import LINE

PARTS = {"operator": {"scale": 1, "down": 2}, "enemy": {"kill": 1}}
WRITTEN = logcheck.expected(0, 40 * LINE)


def test_the_seed_decides_the_acts_and_a_file_keeps_them(tmp_path: Path) -> None:
    def first(seed: int) -> list[plan.Round]:
        return list(islice(plan.rounds(seed, (5, 9), PARTS, ["a", "b"]), 3))

    assert first(1) == first(1) != first(2)
    numbers = [act.number for each in first(1) for act in each]
    assert numbers == list(range(1, len(numbers) + 1))
    assert {act.who for each in first(1) for act in each} == {"operator", "enemy"}
    plan.keep(tmp_path / "acts.json", first(1), seed=1)
    assert plan.kept(tmp_path / "acts.json") == first(1)


def note(lost: int) -> bytes:
    return b"\n[rollcall: %d bytes of output are lost: no room on the disk]\n" % lost


@pytest.mark.parametrize(
    "data",
    [
        WRITTEN,
        WRITTEN[: 7 * LINE + 13],
        WRITTEN[:100] + note(200) + WRITTEN[300:],
        WRITTEN[:63] + note(65) + WRITTEN[128:],
        WRITTEN[:128] + note(64) + WRITTEN[192:200] + note(10) + WRITTEN[210:],
        WRITTEN[:100] + b"\n[rollcall: 2" + note(200) + WRITTEN[300:],
    ],
)
def test_a_log_as_it_was_written(data: bytes) -> None:
    length, wrong = logcheck.told(data)
    assert not wrong
    assert length == len(WRITTEN) or data == WRITTEN[:length]


@pytest.mark.parametrize(
    "data",
    [
        WRITTEN[:LINE] + WRITTEN[2 * LINE :],
        WRITTEN[: 2 * LINE] + WRITTEN[LINE:],
        WRITTEN[LINE : 2 * LINE] + WRITTEN[:LINE] + WRITTEN[2 * LINE :],
        WRITTEN[:100] + note(199) + WRITTEN[300:],
        WRITTEN[:100] + b"x" + WRITTEN[101:],
    ],
)
def test_a_log_with_a_loss_a_double_or_another_order(data: bytes) -> None:
    assert logcheck.told(data)[1]


def test_a_log_whose_beginning_was_removed() -> None:
    assert logcheck.told(WRITTEN[10 * LINE :], cut=True) == (40 * LINE, "")
    assert logcheck.told(WRITTEN[10 * LINE :])[1]


def event(number: int, revision: int, old: str, new: str, **data: Any) -> dict[str, Any]:
    row = {"number": 1, "outcome": None, **data}
    return {
        "id": number, "kind": "replica", "object_id": 5, "number": 1, "service_name": "web", "revision": revision,
        "trigger": "created" if revision == 1 else "moved", "old": old, "new": new, "reason": "",
        "actor": "job", "source": "", "data": row,
    }  # fmt: skip


def begun() -> Chains:
    chains = Chains()
    assert chains.follow([event(1, 1, "", "PENDING"), event(2, 2, "PENDING", "FAILED", outcome="FAILED")]) == []
    return chains


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (event(3, 4, "FAILED", "FAILED", outcome="FAILED"), "revision 4 follows 2"),
        (event(3, 3, "READY", "FAILED", outcome="FAILED"), "begins in 'READY'"),
        (event(3, 3, "FAILED", "READY", outcome="FAILED"), "after the end 'FAILED'"),
        (event(3, 3, "FAILED", "FAILED", outcome="TERMINATED"), "outcome 'TERMINATED' after 'FAILED'"),
        (event(2, 3, "FAILED", "FAILED", outcome="FAILED"), "does not rise"),
        (event(3, 1, "", "PENDING") | {"object_id": 6}, "given out twice"),
    ],
)
def test_a_broken_chain(after: dict[str, Any], said: str) -> None:
    faults = begun().follow([after])
    assert any(said in fault for fault in faults), faults


@pytest.mark.parametrize(
    "change",
    [lambda events: events[:-1], lambda events: [*events, events[-1]], lambda events: [events[1], events[0]]],
)
def test_what_a_websocket_tells_otherwise(change: Callable[[list[Any]], list[Any]]) -> None:
    events = [event(1, 1, "", "PENDING"), event(2, 2, "PENDING", "READY")]
    assert differences(events, events) == []
    assert differences(events, change(events))
    assert differences(events, [events[0], {**events[1], "reason": "another"}])


def test_a_form_is_read_as_a_browser_posts_it() -> None:
    form = Form()
    form.feed(
        '<form><input type="hidden" name="expected" value="3">'
        '<textarea name="text">\nname: a\nrun: &lt;b&gt;</textarea>'
        '<select name="desired"><option value="UP" selected>UP</option><option value="DOWN">DOWN</option></select>'
        '<input type="submit" name="_save" value="Save"></form>'
    )
    assert form.values == {"expected": "3", "text": "name: a\nrun: <b>", "desired": "UP"}
