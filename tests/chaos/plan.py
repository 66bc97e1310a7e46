"""What happens, fixed before it happens: the acts of every round follow from the seed, and can be kept in a file.

An act names no process and no replica, since which there are is left to the moment: `pick` chooses among those.
"""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

PAUSE_SECONDS = {"operator": (0.3, 2.0), "enemy": (0.5, 4.0)}


@dataclass(frozen=True, slots=True)
class Act:
    """Something that somebody (`who`: operator or enemy) does `at` seconds after the beginning of its round.

    `pick` and `amount` lie between 0 and 1: whom it meets of those there are, and how much or how long.
    """

    number: int
    at: float
    who: str
    name: str
    service: str
    pick: float
    amount: float

    def chosen(self, among: Sequence[T]) -> T | None:
        """The one that is picked; None of none."""
        return among[int(self.pick * len(among))] if among else None

    def between(self, least: float, most: float) -> float:
        """The amount as a number between the two."""
        return least + self.amount * (most - least)


Round = Sequence[Act]


def rounds(
    seed: int, seconds: tuple[float, float], parts: Mapping[str, Mapping[str, int]], services: Sequence[str]
) -> Iterator[Round]:
    """Rounds without end. `seconds`: how long one takes, at least and at most; `parts`: the acts that each of the two
    knows, with their weight."""
    number = 0
    for place in range(10**9):
        chance = random.Random(f"{seed} {place}")  # a round depends on the seed and on its place alone
        length = chance.uniform(*seconds)
        acts = [act for who in sorted(parts) for act in _acts(chance, who, length, parts[who], services)]
        acts.sort(key=lambda act: act[0])
        yield [Act(number + index + 1, *act) for index, act in enumerate(acts)]
        number += len(acts)


def _acts(
    chance: random.Random, who: str, length: float, weights: Mapping[str, int], services: Sequence[str]
) -> Iterator[tuple[float, str, str, str, float, float]]:
    at = chance.uniform(0, 1)
    names = sorted(weights)
    while at < length:
        (name,) = chance.choices(names, [weights[each] for each in names])
        values = round(chance.random(), 4), round(chance.random(), 4)
        yield round(at, 2), who, name, chance.choice(list(services)), *values
        at += chance.uniform(*PAUSE_SECONDS[who])


def keep(path: Path, played: Sequence[Round], **facts: object) -> None:
    """Write the rounds down, for `kept`."""
    text = {**facts, "rounds": [[asdict(act) for act in each] for each in played]}
    path.write_text(json.dumps(text, indent=1) + "\n")


def kept(path: Path) -> list[Round]:
    """The rounds of a file that `keep` wrote."""
    return [[Act(**act) for act in each] for each in json.loads(path.read_text())["rounds"]]
