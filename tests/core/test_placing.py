"""Where spot replicas go: SkyServe's placer."""

import pytest

from replicas.core.placing import Stay, next_place
from replicas.core.values import ReplicaState

S = ReplicaState
PLACES = ["a", "b", "c"]


@pytest.mark.parametrize(
    ("stays", "place"),
    [
        ([], "a"),
        ([("a", S.READY)], "b"),
        ([("a", S.READY), ("b", S.STARTING), ("c", S.READY)], "a"),
        ([("a", S.PREEMPTED)], "b"),
        ([("a", S.PREEMPTED), ("b", S.READY), ("c", S.READY)], "b"),
        ([("a", S.FAILED_PROVISION), ("b", S.READY)], "c"),
        ([("a", S.TERMINATED), ("b", S.FAILED)], "a"),
        ([("a", S.PREEMPTED), ("b", S.PREEMPTED)], "a"),
        ([("a", S.PREEMPTED), ("b", S.PREEMPTED), ("a", S.READY)], "b"),
        ([("x", S.PREEMPTED)], "a"),
    ],
)
def test_next(stays: list[tuple[str, ReplicaState]], place: str) -> None:
    assert next_place(PLACES, [Stay(*stay) for stay in stays]) == place


def test_few_places() -> None:
    assert next_place([], []) == next_place([""], []) == ""
    assert next_place(["a", "a"], [Stay("a", S.PREEMPTED)]) == "a"
    assert next_place(["a", "b"], [Stay("a", S.READY)]) == "b"
