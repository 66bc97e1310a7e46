"""Where the next spot replica is asked for: SkyServe's `dynamic_fallback`, from what became of the others."""

from collections.abc import Sequence
from dataclasses import dataclass

from replicas.core.values import ReplicaState

TAKEN_BACK = frozenset({ReplicaState.PREEMPTED, ReplicaState.FAILED_PROVISION})
FEWEST_ACTIVE = 2


@dataclass(frozen=True, slots=True)
class Stay:
    """A spot replica at a place: `state` is its own, or the end that it goes to; those that ended in order of time."""

    place: str
    state: ReplicaState


def next_place(places: Sequence[str], stays: Sequence[Stay]) -> str:
    """The place of the next one; `places`, the cheapest first, are those that the spec allows; "" for none.

    A preemption or a failed launch marks a place. When fewer than 2 are left unmarked, all are good again. Next is the
    cheapest good one that nobody is at, else the cheapest good one.
    """
    known = list(dict.fromkeys(place for place in places if place))
    if len(known) < FEWEST_ACTIVE:
        return known[0] if known else ""
    marked: set[str] = set()
    for stay in stays:
        if stay.state in TAKEN_BACK and stay.place in known:
            marked.add(stay.place)
            if len(known) - len(marked) < FEWEST_ACTIVE:
                marked.clear()
    good = [place for place in known if place not in marked]
    used = {stay.place for stay in stays if not stay.state.ended and stay.state not in TAKEN_BACK}
    return next((place for place in good if place not in used), good[0])
