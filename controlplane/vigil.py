"""When is a child dead weight, and how long to wait before its replacement: decisions without clock or IO."""

from dataclasses import dataclass, field

START_SECONDS = 20.0  # imports and the first round may take so long on a busy machine; who was heard has started
SILENT_SECONDS = 8.0
LATE_SECONDS = 4.0
FRESH_SECONDS = 5.0
GAP_SECONDS = 2.0
DELAYS = (0.0, 1.0, 2.0, 5.0, 10.0)
SETTLED_SECONDS = 30.0


@dataclass(slots=True)
class Pulse:
    """The beats of one run of a child. Silence is counted, not read off a clock, so that a suspended machine, a
    stopped supervisor or a stepped clock counts as nothing."""

    age: float = 0.0
    silence: float = 0.0
    beat: int = 0
    heard: bool = False

    def observe(self, beat: int, seconds: float, due: bool = True) -> None:
        """`seconds` have passed and the last beat is now `beat` (any number that changes with each).

        `due`: a beat could be expected at all; a pool's comes only while the controller works.
        """
        if seconds > GAP_SECONDS:
            seconds = 0.0
        self.age += seconds
        if beat != self.beat:
            self.beat, self.silence, self.heard = beat, 0.0, True
        elif (self.age < START_SECONDS and not self.heard) or not due:
            self.silence = 0.0
        else:
            self.silence += seconds

    @property
    def fresh(self) -> bool:
        """Heard of lately."""
        return self.heard and self.silence < FRESH_SECONDS

    @property
    def late(self) -> bool:
        """Silent for so long that one should see what holds it up."""
        return self.silence > LATE_SECONDS

    @property
    def wedged(self) -> bool:
        """Silent for so long that only a replacement helps."""
        return self.silence > SILENT_SECONDS


@dataclass(slots=True)
class Patience:
    """How often a child died soon after its start, and so how long its replacement waits."""

    delays: tuple[float, ...] = DELAYS
    settled: float = SETTLED_SECONDS
    deaths: int = field(default=0)

    def delay(self, lived: float) -> float:
        """Seconds until the replacement of a child that lived for `lived` seconds: 0, 1, 2, 5, 10, 10, ...

        Who lived for `settled` seconds did not die of its start, and is replaced at once.
        """
        if lived >= self.settled:
            self.deaths = 0
        seconds = self.delays[min(self.deaths, len(self.delays) - 1)]
        self.deaths += 1
        return seconds
