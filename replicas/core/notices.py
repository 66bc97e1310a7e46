"""What of all that happens is told to people, and when: events and a memory in, at most one notice and a memory out."""

import unicodedata
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

from replicas.core.values import FAILURES, Occasion, RolloutState, ServiceStatus
from replicas.core.wording import after, at, some, times

MOST_ITEMS = 50  # in one notice; further ones are counted
BURST = 3  # notices in an hour before they are spaced out
HOUR = timedelta(hours=1)
LONGEST_NAME, LONGEST_REASON = 80, 300
TROUBLE = frozenset({ServiceStatus.FAILED, ServiceStatus.FAILED_CLEANUP})
NOT_WANTED = frozenset({ServiceStatus.DOWN, ServiceStatus.SHUTTING_DOWN, ServiceStatus.NO_REPLICA})
TOLD = {
    Occasion.FAILED: "failed",
    Occasion.ROLLOUT: "rollout failed or turned back",
    Occasion.CRASH_LOOP: "crash loop",
    Occasion.RECOVERED: "recovered",
}


@dataclass(frozen=True, slots=True)
class Happening:
    """What an event says. `data` is the row's public form after the change."""

    at: datetime
    service: str
    kind: str
    trigger: str
    old: str
    new: str
    reason: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Limits:
    """What is grouped, how much is sent, and what a crash loop is."""

    group: timedelta = timedelta(seconds=10)
    per_hour: int = 20
    crash_failures: int = 5
    crash_window: timedelta = timedelta(seconds=600)


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to be told: the newest reason and time of `count` times the same."""

    service: str
    occasion: str
    reason: str
    at: datetime
    count: int = 1


@dataclass(frozen=True, slots=True)
class Said:
    """What one notice holds; `left_out` more did not find room."""

    items: tuple[Item, ...]
    left_out: int = 0


@dataclass(slots=True)
class Trouble:
    """What is remembered of a service: the troubles that were told and since when, and its latest failures."""

    told: dict[str, datetime] = field(default_factory=dict)
    failures: list[datetime] = field(default_factory=list)
    failed: bool = False  # by its status


@dataclass(slots=True)
class Memory:
    """Of one channel, between two looks: troubles by service, what waits to be told and since when, what was sent."""

    troubles: dict[str, Trouble] = field(default_factory=dict)
    pending: list[Item] = field(default_factory=list)
    left_out: int = 0
    since: datetime | None = None
    sent: list[datetime] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Decision:
    """The memory from now on, what is to be sent now, and when to look again although nothing happens."""

    memory: Memory
    said: Said | None
    due: datetime | None


def decide(
    happenings: Iterable[Happening], memory: Memory, wanted: Collection[str], now: datetime, limits: Limits
) -> Decision:
    """What to tell of `happenings`, oldest first, to a channel that wants the occasions `wanted`.

    A trouble is told once, until it is over; that it is over is told only after it was told. What happens within
    `limits.group` goes into one notice; after BURST notices in an hour the next waits for its share of the hour, and
    what happens meanwhile is added to it.
    """
    round_ = _Round(loaded(stored(memory)), wanted, limits)
    for each in happenings:
        round_.take(each)
    round_.end_crash_loops(now)
    round_.forget(now)
    said = round_.say(now)
    return Decision(round_.memory, said, round_.due())


class _Round:
    """One look at what happened; it works on a memory of its own."""

    def __init__(self, memory: Memory, wanted: Collection[str], limits: Limits) -> None:
        self.memory = memory
        self.wanted = wanted
        self.limits = limits

    def take(self, each: Happening) -> None:
        """One event."""
        if each.kind == "service":
            self._service(each)
        elif each.kind == "rollout":
            self._rollout(each)
        elif each.kind == "replica" and each.new in FAILURES:
            self._failure(each)

    def _trouble(self, service: str) -> Trouble:
        return self.memory.troubles.setdefault(service, Trouble())

    def _service(self, each: Happening) -> None:
        trouble = self._trouble(each.service)
        if each.trigger == "forgotten" or each.new in NOT_WANTED:
            del self.memory.troubles[each.service]
        elif each.new in TROUBLE:
            trouble.failed = True
            self._tell(each, Occasion.FAILED, each.reason)
        elif each.new == ServiceStatus.READY:
            trouble.failed = False
            if Occasion.CRASH_LOOP not in trouble.told:  # else it is ready for a moment only
                self._over(each.service, Occasion.FAILED, each.at, f"ready again{after(each.reason)}")

    def _rollout(self, each: Happening) -> None:
        version, good = each.data.get("to_version"), each.data.get("good_version")
        if each.new == RolloutState.FAILED:
            back = f"; it turns back to version {good}" if good and each.data.get("kind") != "rollback" else ""
            self._trouble(each.service).told.pop(Occasion.ROLLOUT, None)  # each of them is news
            self._tell(each, Occasion.ROLLOUT, f"the rollout to version {version} failed{after(each.reason)}{back}")
        elif each.new == RolloutState.ABORTED:
            self._put(
                each.service,
                Occasion.ROLLOUT,
                each.at,
                f"the rollout to version {version} was turned back{after(each.reason)}",
            )
        elif each.new == RolloutState.SUCCEEDED:
            self._over(each.service, Occasion.ROLLOUT, each.at, f"version {version} is in place")

    def _failure(self, each: Happening) -> None:
        trouble = self._trouble(each.service)
        known = [moment for moment in trouble.failures if moment > each.at - self.limits.crash_window]
        trouble.failures = [*known, each.at][-self.limits.crash_failures :]
        if len(trouble.failures) >= self.limits.crash_failures:
            within = round((trouble.failures[-1] - trouble.failures[0]).total_seconds())
            number = some(self.limits.crash_failures)
            self._tell(
                each, Occasion.CRASH_LOOP, f"{number} failed within {within} s, the last one{after(each.reason)}"
            )

    def _tell(self, each: Happening, occasion: Occasion, reason: str) -> None:
        """A trouble, unless it was told and goes on."""
        told = self._trouble(each.service).told
        if occasion not in told:
            told[occasion] = each.at
            self._put(each.service, occasion, each.at, reason)

    def _over(self, service: str, occasion: Occasion, moment: datetime, reason: str) -> None:
        since = self._trouble(service).told.pop(occasion, None)
        if since is not None:
            lasted = max(1, round((moment - since).total_seconds()))
            self._put(service, Occasion.RECOVERED, moment, f"{reason}; {TOLD[occasion]} {lasted} s before")

    def _put(self, service: str, occasion: Occasion, moment: datetime, reason: str) -> None:
        if occasion not in self.wanted:
            return
        memory = self.memory
        memory.since = memory.since or moment
        same = next((i for i in memory.pending if (i.service, i.occasion) == (service, occasion)), None)
        if same is not None:
            memory.pending.remove(same)  # the newest comes last
        elif len(memory.pending) >= MOST_ITEMS:
            memory.left_out += 1
            return
        count = same.count + 1 if same else 1
        memory.pending.append(Item(service, str(occasion), inert(reason, LONGEST_REASON), moment, count))

    def end_crash_loops(self, now: datetime) -> None:
        """Those in which nothing has failed for the whole window."""
        for service, trouble in self.memory.troubles.items():
            quiet = not trouble.failures or trouble.failures[-1] <= now - self.limits.crash_window
            if Occasion.CRASH_LOOP not in trouble.told or not quiet:
                continue
            if trouble.failed:
                trouble.told.pop(Occasion.CRASH_LOOP)  # it has given up: that it failed stays the trouble
                continue
            first = min(trouble.told.pop(Occasion.FAILED, now), trouble.told[Occasion.CRASH_LOOP])
            trouble.told[Occasion.CRASH_LOOP] = first
            quiet_for = f"no replica has failed for {self.limits.crash_window.total_seconds():g} s"
            self._over(service, Occasion.CRASH_LOOP, now, quiet_for)

    def forget(self, now: datetime) -> None:
        """What no decision needs any more."""
        self.memory.sent = [moment for moment in self.memory.sent if now - HOUR < moment <= now]
        for service, trouble in list(self.memory.troubles.items()):
            trouble.failures = [moment for moment in trouble.failures if moment > now - self.limits.crash_window]
            if not trouble.told and not trouble.failures:
                del self.memory.troubles[service]

    def _sendable(self) -> datetime | None:
        memory = self.memory
        if memory.since is None:
            return None
        moment = memory.since + self.limits.group
        if len(memory.sent) >= BURST:
            moment = max(moment, memory.sent[-1] + HOUR / self.limits.per_hour)
        return moment

    def say(self, now: datetime) -> Said | None:
        """The notice that is due."""
        sendable, memory = self._sendable(), self.memory
        if sendable is None or (sendable > now and memory.since is not None and memory.since <= now):
            return None
        said = Said(tuple(memory.pending), memory.left_out)
        memory.pending, memory.left_out, memory.since = [], 0, None
        memory.sent = [*memory.sent, now]
        return said

    def due(self) -> datetime | None:
        """When the next notice can be sent, or the next crash loop be over."""
        looping = [t for t in self.memory.troubles.values() if Occasion.CRASH_LOOP in t.told and t.failures]
        ends = [trouble.failures[-1] + self.limits.crash_window for trouble in looping]
        sendable = self._sendable()
        return min([*ends, sendable] if sendable else ends, default=None)


def stored(memory: Memory) -> dict[str, Any]:
    """The memory as JSON."""

    def plain(value: Any) -> Any:
        if isinstance(value, datetime):
            return value.isoformat()
        if isinstance(value, dict):
            return {key: plain(each) for key, each in value.items()}
        return [plain(each) for each in value] if isinstance(value, list) else value

    found: dict[str, Any] = plain(asdict(memory))
    return found


def loaded(row: Mapping[str, Any]) -> Memory:
    """The memory again."""
    moment = datetime.fromisoformat
    troubles = {
        service: Trouble(
            {occasion: moment(text) for occasion, text in each["told"].items()},
            [moment(text) for text in each["failures"]],
            each["failed"],
        )
        for service, each in row.get("troubles", {}).items()
    }
    return Memory(
        troubles,
        [Item(**{**each, "at": moment(each["at"])}) for each in row.get("pending", [])],
        row.get("left_out", 0),
        moment(row["since"]) if row.get("since") else None,
        [moment(text) for text in row.get("sent", [])],
    )


def title(said: Said) -> str:
    """web: failed; or, of several: web and 3 more: 2 failed, 2 recovered."""
    names = list(dict.fromkeys(item.service for item in said.items))
    first = inert(names[0], LONGEST_NAME)
    if len(said.items) == 1 and not said.left_out:
        return f"{first}: {TOLD[Occasion(said.items[0].occasion)]}"
    counts = [(word, sum(item.occasion == occasion for item in said.items)) for occasion, word in TOLD.items()]
    what = ", ".join(f"{count} {word}" for word, count in counts if count)
    more = len(names) - 1 + said.left_out
    return f"{first}{f' and {more} more' if more else ''}: {what}"


def lines(said: Said) -> list[str]:
    """A line for each thing that is told."""
    found = [
        f"{inert(item.service, LONGEST_NAME)}: {TOLD[Occasion(item.occasion)]}"
        f"{f' ({times(item.count)})' if item.count > 1 else ''} at {at(item.at)}{after(item.reason)}"
        for item in said.items
    ]
    return [*found, f"and {said.left_out} more"] if said.left_out else found


def inert(text: str, longest: int) -> str:
    """The text on one line, without control and direction characters: it breaks out of no subject and no line."""
    kept = "".join(c if unicodedata.category(c)[0] != "C" else " " for c in text)
    line = " ".join(kept.split())
    return line if len(line) <= longest else line[: longest - 1] + "…"
