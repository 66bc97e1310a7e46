"""When nobody acts: waits until all is as it was wished, and says what is wrong with what it has come to."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.chaos import invariants
from tests.chaos.cast import CAST
from tests.chaos.operator import Operator
from tests.chaos.sampling import Sampler
from tests.chaos.world import World, patiently
from tests.support.patience import Patience

WHOLE_SECONDS = 45.0  # every part works again: a silent one is replaced after 8 s, one that has just started after 28 s
WISH_SECONDS = 90.0  # so long a service may take to what was wished: three replicas, one after the other, 3 s each
QUIET_SECONDS = 30.0  # so long until nothing happens any more
STILL_SECONDS = 5.0  # nothing has happened for so long
LOOK_SECONDS = 15.0
LONG_LOOK_SECONDS = 3.0


@dataclass
class Calm:
    """What came of it. `whole`, `came`, `quiet`: seconds since the beginning until that was so."""

    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    whole: float = 0.0
    came: float = 0.0
    quiet: float = 0.0


class Judge:
    """Knows what was looked at before."""

    def __init__(self, world: World, operator: Operator, sampler: Sampler) -> None:
        self.world = world
        self.operator = operator
        self.sampler = sampler
        self.history = invariants.History(world)
        self.logs = invariants.Logs(world)
        self.spared: dict[str, list[int]] = {}  # the pids of services that nobody touches

    def judge(self) -> Calm:
        """Wait for rest, then look at everything."""
        calm, began = Calm(), time.monotonic()
        steps: list[tuple[str, Callable[[], list[str]]]] = [
            ("whole", lambda: patiently(self.world.unwell, WHOLE_SECONDS)),
            ("came", self.wishes),
            ("quiet", self.stillness),
        ]
        for name, step in steps:
            calm.faults += step()
            setattr(calm, name, time.monotonic() - began)
        calm.faults += self.look(calm)
        return calm

    def wishes(self) -> list[str]:
        """Each service comes to what was wished last. Each has to be seen so once: some never stay so."""
        self.operator.last_wishes()
        open_ = list(CAST)

        def look() -> list[str]:
            wrong = [
                (part, invariants.unfulfilled(self.world, part, self.operator.wishes[part.name])) for part in open_
            ]
            open_[:] = [part for part, texts in wrong if texts]
            return [text for _, texts in wrong for text in texts]

        return patiently(look, WISH_SECONDS)

    def stillness(self) -> list[str]:
        """Nothing happens for a while."""
        patience, since = Patience(QUIET_SECONDS), self.newest()
        still = Patience(STILL_SECONDS)
        while not still.over():
            if stirs := invariants.stirring(self.world, since):
                if patience.over():
                    return [f"not quiet after {QUIET_SECONDS:g} s: {text}" for text in stirs[-5:]]
                since, still = self.newest(), Patience(STILL_SECONDS)
            patience.over()
            time.sleep(0.2)  # the time between two looks
        return []

    def newest(self) -> int:
        """The newest event."""
        return int(self.world.rows.query("SELECT MAX(id) AS id FROM replicas_event")[0]["id"])

    def look(self, calm: Calm) -> list[str]:
        """Everything that must be true now."""
        looks: dict[str, Callable[[], list[str]]] = {
            "processes": lambda: invariants.strangers(self.world),
            "gateway": lambda: invariants.misled(self.world),
            "logs": self.logs.broken,
            "feed": self.history.behind,
        }
        faults = [text for name, look in looks.items() for text in self.seen(name, look, calm)]
        faults += self.history.news()
        faults += invariants.damaged(self.world)
        for part in CAST:  # what had come to rest has stayed so
            if not part.restless:
                faults += invariants.unfulfilled(self.world, part, self.operator.wishes[part.name])
        return faults + self.disturbed() + self.sampler.faults

    def seen(self, name: str, look: Callable[[], list[str]], calm: Calm) -> list[str]:
        """What a look finds wrong for long; what it found at first is noted."""
        began, first = time.monotonic(), []

        def remembered() -> list[str]:
            wrong = look()
            first.extend(wrong[:1] if not first else [])
            return wrong

        wrong = patiently(remembered, LOOK_SECONDS)
        if first or time.monotonic() - began > LONG_LOOK_SECONDS:
            calm.notes.append(f"{name} looked at for {time.monotonic() - began:.1f} s {first}")
        return wrong

    def disturbed(self) -> list[str]:
        """Services that nobody touches, and that run as other processes than before."""
        faults = []
        for part in CAST:
            if part.spared:
                pids = [row["pid"] for row in self.world.rows.replicas(part.name, "READY")]
                if self.spared.setdefault(part.name, pids) != pids:
                    faults.append(f"{part.name} ran as {self.spared[part.name]} and runs as {pids}")
        return faults
