"""The history, read in pieces as it grows: unbroken, ends that stay, and the same for whoever follows it live."""

from typing import Any

from tests.support.rows import LIVE, Row

SAME = ("kind", "object_id", "number", "revision", "trigger", "old", "new", "reason", "actor", "source", "data")
ENDED = {"operation": ("SUCCEEDED", "FAILED", "CANCELLED"), "rollout": ("SUCCEEDED", "FAILED", "ABORTED", "SUPERSEDED")}


class Chains:
    """`follow` takes the events after those it had, in their order, and says what is wrong with them."""

    def __init__(self) -> None:
        self.cursor = 0
        self.events = 0
        self._revisions: dict[tuple[str, int], int] = {}
        self._states: dict[tuple[str, int], str] = {}
        self._outcomes: dict[int, str] = {}
        self._ends: dict[tuple[str, int], str] = {}
        self._numbers: set[tuple[str, int]] = set()

    def follow(self, events: list[Row]) -> list[str]:
        """The faults of what is new."""
        faults = []
        for event in events:
            said = f"event {event['id']} ({event['kind']} {event['object_id']}, {event['trigger']})"
            if event["id"] <= self.cursor:
                faults.append(f"{said}: its number does not rise")
            self.cursor = event["id"]
            faults += [f"{said}: {what}" for what in (*self._link(event), *self._end(event), *self._replica(event))]
        self.events += len(events)
        return faults

    def _link(self, event: Row) -> list[str]:
        key = (event["kind"], event["object_id"])
        faults = []
        before = self._revisions.get(key, 0)
        if event["revision"] != before + 1:
            faults.append(f"revision {event['revision']} follows {before}")
        if before and event["old"] != self._states[key]:
            faults.append(f"begins in {event['old']!r}, the one before it ended in {self._states[key]!r}")
        self._revisions[key], self._states[key] = event["revision"], event["new"]
        return faults

    def _end(self, event: Row) -> list[str]:
        key, state = (event["kind"], event["object_id"]), event["new"]
        ended = state in ENDED.get(event["kind"], ()) or (event["kind"] == "replica" and state not in LIVE)
        faults = [f"{state!r} after the end {self._ends[key]!r}"] if self._ends.get(key, state) != state else []
        if ended:
            self._ends.setdefault(key, state)
        return faults

    def _replica(self, event: Row) -> list[str]:
        """Numbers are given out once; an outcome stays as it was fixed."""
        if event["kind"] != "replica":
            return []
        row, faults = event["data"], []
        if event["trigger"] == "created":
            key = (event["service_name"], row["number"])
            faults += [f"number {key} is given out twice"] if key in self._numbers else []
            self._numbers.add(key)
        outcome = row["outcome"] or ""
        known = self._outcomes.setdefault(event["object_id"], outcome)
        if known not in ("", outcome):
            faults.append(f"outcome {outcome!r} after {known!r}")
        self._outcomes[event["object_id"]] = outcome or known
        return faults


def differences(stored: list[Row], read: list[dict[str, Any]]) -> list[str]:
    """How what a websocket told differs from what is stored; both in the order in which they came."""
    have, told = [event["id"] for event in stored], [event["id"] for event in read]
    if have != told:
        missing, extra = sorted(set(have) - set(told)), sorted(set(told) - set(have))
        return [f"the websocket told {len(told)} events of {len(have)}: missing {missing[:5]}, beyond {extra[:5]}"]
    return [
        f"event {row['id']}: {key} is stored as {row[key]!r} and was told as {event[key]!r}"
        for row, event in zip(stored, read, strict=True)
        for key in SAME
        if row[key] != event[key]
    ]
