"""Plays rounds of chaos, each with a calm after it; a failure tells its seed and timeline, and can be replayed."""

import argparse
import random
import signal
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from tests.chaos import plan
from tests.chaos.calm import Calm, Judge
from tests.chaos.cast import CAST
from tests.chaos.enemy import Enemy
from tests.chaos.operator import Operator
from tests.chaos.plan import Act, Round
from tests.chaos.sampling import Sampler
from tests.chaos.world import World, patiently

ROUND_SECONDS = (15.0, 45.0)
PAUSE = 0.05
SHOWN = 200  # lines of the timeline


class Chaos:
    """One run in a home of its own. `play` gives what is wrong; `told` is the timeline."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.aloud = False
        self.world = World()
        self.operator = Operator(self.world)
        self.enemy = Enemy(self.world)
        self.sampler = Sampler(self.world.rows)
        self.judge = Judge(self.world, self.operator, self.sampler)
        self.rounds: Iterable[Round] = self.rounds_of(seed)
        self.played: list[Round] = []
        self.told: list[str] = []
        self.done: Counter[str] = Counter()
        self.calms: list[Calm] = []
        self.crashes: list[str] = []
        self.began = 0.0
        self.over = threading.Event()  # the acts of this round are

    def rounds_of(self, seed: int, seconds: tuple[float, float] = ROUND_SECONDS) -> Iterator[Round]:
        """The rounds of a seed, each between so many seconds long."""
        weights = {"operator": self.operator.weights, "enemy": self.enemy.weights}
        return plan.rounds(seed, seconds, weights, [part.name for part in CAST if not part.spared])

    # --- playing --------------------------------------------------------------------------------------------------

    def play(self, seconds: float) -> list[str]:
        """Rounds until the time is over, one at least; ends with the first calm that has faults."""
        self.began = time.monotonic()
        self.world.start()
        self.tell("up")
        self.operator.begin()
        self.sampler.start()
        self.tell("deployed")
        faults = self.rest()
        for acts in self.rounds:
            if faults or (self.played and time.monotonic() - self.began > seconds):
                break
            self.played.append(acts)
            self.storm(acts)
            faults = self.crashes or self.rest()
        return faults

    def storm(self, acts: Round) -> None:
        """The two act at the same time, each at its own pace: who waits for an answer keeps nobody else waiting."""
        began = time.monotonic()
        self.over.clear()
        pair = [threading.Thread(target=self._act, args=(who, acts, began)) for who in ("operator", "enemy")]
        for each in pair:
            each.start()
        try:
            for each in pair:
                each.join()
        finally:  # also when somebody interrupts: nobody acts on what is being ended
            self.over.set()
            for each in pair:
                each.join()

    def _act(self, who: str, acts: Round, began: float) -> None:
        try:
            for act in acts:
                if act.who == who and not self.over.is_set():
                    self._wait(who, began + act.at)
                    self._do(act)
            if who == "enemy":
                self.enemy.rest()
        except Exception:  # noqa: BLE001  (whatever it is, it ends the run with its timeline)
            self.crashes.append(f"{who}: {traceback.format_exc()}")

    def _wait(self, who: str, until: float) -> None:
        while not self.over.is_set() and ((now := time.monotonic()) < until or who == "enemy"):
            if who == "enemy":
                self.enemy.let_go(now)
                if now >= until:
                    return
            time.sleep(min(PAUSE, max(0.0, until - now)))

    def _do(self, act: Act) -> None:
        actor = self.operator if act.who == "operator" else self.enemy
        began = time.monotonic()
        said = actor.do(act)
        took = time.monotonic() - began
        if said:
            self.done[act.name] += 1
            self.tell(f"{act.number:4d} {act.who:8s} {said}" + (f" ({took:.1f} s)" if took > 3 else ""))

    def rest(self) -> list[str]:
        """The calm after a round."""
        self.tell("calm")
        calm = self.judge.judge()
        self.calms.append(calm)
        self.tell(f"whole after {calm.whole:.1f} s, as wished after {calm.came:.1f} s, quiet after {calm.quiet:.1f} s")
        for note in calm.notes:
            self.tell(note)
        return calm.faults

    # --- telling --------------------------------------------------------------------------------------------------

    def tell(self, text: str) -> None:
        """Add a line to the timeline."""
        self.told.append(f"{time.monotonic() - self.began:7.1f} {text}")
        if self.aloud:
            print(self.told[-1], flush=True)

    def end(self, keep: bool = False) -> list[str]:
        """End every process, and remove the home unless it is to be kept; what was still running."""
        if self.sampler.is_alive():
            self.sampler.stop()
        return [f"left running: {line}" for line in self.world.close(keep)]

    def take_down(self) -> list[str]:
        """All services go down, and nothing of them is left."""
        for name, wish in self.operator.wishes.items():
            self.world.person.down(name)
            wish.up = False
        return self.judge.wishes() + patiently(lambda: [str(p) for p in self.world.plane.replicas().items()], 10)

    def summary(self) -> str:
        """What was done and what came of it."""
        acts = ", ".join(f"{name} {count}" for name, count in sorted(self.done.items()))
        worst = {name: max(getattr(calm, name) for calm in self.calms) for name in ("whole", "came", "quiet")}
        lines = [
            f"seed {self.seed}: {sum(self.done.values())} acts in {len(self.played)} rounds: {acts}",
            f"  whole after {worst['whole']:.1f} s at most, as wished after {worst['came']:.1f} s,"
            f" quiet after {worst['quiet']:.1f} s",
            f"  {self.judge.history.chains.events} events, {self.world.reader.connections} sockets,"
            f" {self.judge.logs.bytes / 1e6:.0f} MB of logs read, {self.sampler.samples} samples",
        ]
        lines += [f"  not done here: {name}: {why}" for name, why in self.world.skipped.items()]
        return "\n".join(lines + [f"  surprise: {text}" for text in self.operator.surprises])

    def timeline(self) -> str:
        """The last lines of it."""
        return "\n".join(self.told[-SHOWN:])


def run(seed: int, seconds: float, *, replay: Path | None = None, aloud: bool = False) -> int:
    """A whole run with what is printed of it; the exit code."""
    print(f"chaos with seed {seed}, {seconds:g} s", flush=True)
    chaos = Chaos(seed)
    chaos.aloud = aloud
    if replay:
        chaos.rounds = plan.kept(replay)
        seconds = float("inf")
    try:
        faults = chaos.play(seconds) or chaos.take_down()
    except KeyboardInterrupt:
        chaos.end()
        return 130
    except Exception:  # noqa: BLE001  (it ends the run, with all that explains it)
        faults = [traceback.format_exc()]
    if faults:
        keep(chaos, faults)
    else:
        faults = chaos.end()
    print(chaos.summary() if chaos.calms else "no calm was reached", flush=True)
    return 1 if faults else 0


def keep(chaos: Chaos, faults: list[str]) -> None:
    """Tell what is wrong, and leave the home as it is."""
    acts = Path(f"{chaos.world.plane.home}-chaos.json")
    plan.keep(acts, chaos.played, seed=chaos.seed, faults=faults, timeline=chaos.told)
    with suppress(Exception):  # a home that is inspected needs no clean end
        chaos.enemy.let_go(float("inf"))
    print(f"\nTIMELINE (seed {chaos.seed})\n{chaos.timeline()}\n\nFAULTS")
    print("\n".join(faults[:40]))
    chaos.end(keep=True)
    print(f"\nThe home is left at {chaos.world.plane.home}.")
    print(f"Again: python -m tests.chaos --seed {chaos.seed}, or the same acts: --replay {acts}", flush=True)


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what was started is ended as with Ctrl-C
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long to go on with new rounds")
    parser.add_argument("--seed", type=int, default=None, help="decides the acts; by chance if not given")
    parser.add_argument("--replay", type=Path, help="the file of acts that a failed run has left")
    parser.add_argument("--verbose", action="store_true", help="print the timeline as it grows")
    given = parser.parse_args(arguments)
    seed = random.randrange(10**6) if given.seed is None else given.seed
    return run(seed, given.minutes * 60, replay=given.replay, aloud=given.verbose)


if __name__ == "__main__":
    sys.exit(main())
