"""A provider that acts out a script from the spec, without processes: for tests, and for simulation at scale.

`fake:` in the spec may hold (all optional; `replicas: {2: {...}}` gives the replica of that number other values):

    launch_seconds            the launch waits so long
    fail_launch               the launch fails with this text as the reason; fail_times: only so many first attempts do
    setup_fails               setup fails with this text as its last line: the user's fault, no second attempt
    ready_after_seconds       probes fail so long after the launch (0); not_ready_after_seconds: they fail from then on
    exit_after_seconds        the replica exits so long after the launch, with exit_code (0)
    preempt_after_seconds     the replica is taken away so long after the launch; one on demand, ordered as such, is not
    sold_out                  kinds of machine that are not to be had: accelerators (A100:8), spot, on-demand, places
                              (aws/us-east-1). The first that is to be had is taken; without one the launch fails
    down_steps                so many steps of a down find it still alive
    fail_down                 the down fails with this text as the reason

All it knows of a replica is one file, `<home>/fake/<replica uid>.json`, so that any process may take over. Its times
are of the kernel's boot clock: what ran before a boot is gone after it.
"""

import contextlib
import difflib
import json
import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from replicas.core.machines import offers, says_spot
from replicas.providers.base import (
    Checkpoint,
    Gone,
    Handle,
    Inspection,
    Kept,
    Launched,
    LaunchOrder,
    ProviderError,
    Waiting,
)
from replicas.providers.joblog import append_to
from replicas.providers.layout import checked
from replicas.providers.probe import Fault, ProbeRequest, ProbeResult

NUMBERS = (
    "launch_seconds",
    "fail_times",
    "ready_after_seconds",
    "not_ready_after_seconds",
    "exit_after_seconds",
    "exit_code",
    "preempt_after_seconds",
    "down_steps",
)
TEXTS = ("fail_launch", "setup_fails", "fail_down")
KNOWN = (*NUMBERS, *TEXTS, "sold_out", "replicas")
SPOT, ON_DEMAND = "spot", "on-demand"
STEP_SECONDS = 0.05
SCHEME = "fake://"


def steady() -> float:
    """Seconds since the boot: the same in every process, and no clock that somebody sets."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class FakeProvider:
    """The provider `fake`. `now` gives the seconds of a clock that all processes share."""

    name = "fake"

    def __init__(self, home: Path, now: Callable[[], float] = steady) -> None:
        self._directory = Path(os.path.abspath(home)) / "fake"
        self._now = now

    def check(self, spec: Mapping[str, Any]) -> list[str]:
        """See Provider."""
        script = spec.get("fake") or {}
        scripts = [("fake", script)]
        scripts += [(f"fake.replicas.{number}", each) for number, each in (script.get("replicas") or {}).items()]
        return [sentence for path, each in scripts for sentence in _complaints(path, each)]

    def launch(self, order: LaunchOrder, checkpoint: Checkpoint | None) -> Launched | Waiting:
        """See Provider."""
        state = self._read(order.replica_uid)
        if state and "launched" in state:
            return self._launched(order.replica_uid, state)
        script = _script(order)
        if script.get("setup_fails"):
            line = str(script["setup_fails"])
            append_to(order.log, line)
            raise ProviderError(f"setup failed: {line}", retryable=False, user_fault=True, tail=(line,))
        if script.get("fail_launch") and order.attempt <= script.get("fail_times", order.attempt):
            raise ProviderError(str(script["fail_launch"]))
        took = _take(order, script.get("sold_out") or ())
        now = self._now()
        began = min(float(state["began"]), now) if state else now
        remaining = began + float(script.get("launch_seconds", 0)) - now
        if remaining > 0:
            self._write(order.replica_uid, {"began": began})
            return Waiting({"began": began}, f"the fake launch takes {remaining:.1f} s more", min(remaining, 1.0))
        state = {"began": began, "launched": now, "script": script, **took}
        self._write(order.replica_uid, state)
        append_to(order.log, "the fake replica is launched")
        return self._launched(order.replica_uid, state)

    def _launched(self, uid: str, state: Mapping[str, Any]) -> Launched:
        return Launched(
            {"uid": uid},
            f"{SCHEME}{uid}",
            accelerators=state.get("accelerators", ""),
            spot=state.get("spot"),
            place=state.get("place", ""),
        )

    def down(
        self, order: LaunchOrder, handle: Handle | None, grace: timedelta, checkpoint: Checkpoint | None
    ) -> Gone | Waiting:
        """See Provider."""
        state = self._read(order.replica_uid)
        if state is None:
            return Gone("already gone" if handle else "nothing of it was there")
        script = _script(order)
        if script.get("fail_down"):
            raise ProviderError(str(script["fail_down"]))
        steps = int((checkpoint or {}).get("steps", 0)) + 1
        if steps <= int(script.get("down_steps", 0)) and self._inspect(state).kind == "running":
            return Waiting({"steps": steps}, "the fake replica does not want to end", STEP_SECONDS)
        detail = self._inspect(state).detail if "launched" in state else "its launch had not come to an end"
        self.forget_replica(order.replica_uid)
        return Gone(detail or "ended when asked to")

    def inspect(self, handle: Handle) -> Inspection:
        """See Provider."""
        return self._inspect(self._read(str(handle["uid"])))

    def _inspect(self, state: Mapping[str, Any] | None) -> Inspection:
        if state is None or "launched" not in state:
            return Inspection("gone", None, "nothing of it is left")
        script: Mapping[str, Any] = state["script"]
        if "code" in state:
            return _exited(int(state["code"]))
        age = self._now() - float(state["launched"])
        if age < 0:
            return Inspection("gone", None, "it ran before the last boot")
        ends = []
        if "exit_after_seconds" in script:
            ends.append((float(script["exit_after_seconds"]), _exited(int(script.get("exit_code", 0)))))
        if ("preempt_after_seconds" in script and state.get("spot") is not False) or "preempted" in state:
            after = 0.0 if "preempted" in state else float(script["preempt_after_seconds"])
            ends.append((after, Inspection("preempted", None, "the fake machine was taken back")))
        over = [(after, end) for after, end in ends if after <= age]
        return min(over, key=lambda each: each[0])[1] if over else Inspection("running")

    def find(self, replica_uid: str) -> Handle | None:
        """See Provider."""
        state = self._read(replica_uid)
        return {"uid": replica_uid} if state and "launched" in state else None

    def answer(self, request: ProbeRequest) -> ProbeResult:
        """What a probe of a fake replica gives, at once."""
        state = self._read(request.url.removeprefix(SCHEME).strip("/"))
        if state is None or self._inspect(state).kind != "running":
            return _result(request, None, Fault.REFUSED, f"{request.shown}: nothing listens")
        script: Mapping[str, Any] = state["script"]
        age = self._now() - float(state["launched"])
        fails_from = float(script.get("not_ready_after_seconds", float("inf")))
        if not float(script.get("ready_after_seconds", 0)) <= age < fails_from:
            return _result(request, 503, Fault.STATUS, f"{request.shown} gave 503")
        return _result(request, 200, None, f"{request.shown} gave 200")

    def end(self, replica_uid: str, code: int) -> None:
        """Let a launched replica exit now."""
        self._change(replica_uid, {"code": code})

    def preempt(self, replica_uid: str) -> None:
        """Take a launched replica away now. Raises ProviderError for one on demand: that is never taken back."""
        state = self._read(replica_uid) or {}
        if state.get("spot") is False:
            raise ProviderError(
                f"Replica {replica_uid} is on demand, and stays until it is taken down.", retryable=False
            )
        self._change(replica_uid, {"preempted": True})

    def forget_replica(self, replica_uid: str) -> None:
        """See Collecting."""
        self._path(replica_uid).unlink(missing_ok=True)

    def forget_version(self, version_uid: str) -> None:
        """See Collecting: nothing is kept per version."""

    def kept(self) -> Iterable[Kept]:
        """See Listing. Nothing of it ever runs."""
        for path in sorted(self._directory.glob("*.json")):
            with contextlib.suppress(FileNotFoundError):
                yield Kept("replica", path.stem, path.stat().st_mtime)

    def _path(self, uid: str) -> Path:
        return self._directory / f"{checked(uid)}.json"

    def _read(self, uid: str) -> dict[str, Any] | None:
        try:
            state: dict[str, Any] = json.loads(self._path(uid).read_bytes())
        except FileNotFoundError:
            return None
        return state

    def _write(self, uid: str, state: Mapping[str, Any]) -> None:
        path = self._path(uid)
        new = path.with_suffix(f".{os.getpid()}")
        self._directory.mkdir(parents=True, exist_ok=True)
        new.write_text(json.dumps(state))
        new.replace(path)

    def _change(self, uid: str, values: Mapping[str, Any]) -> None:
        state = self._read(uid)
        if state is None or "launched" not in state:
            raise ProviderError(f"Replica {uid} is not launched.", retryable=False)
        self._write(uid, {**state, **values})


def _script(order: LaunchOrder) -> dict[str, Any]:
    """What this replica is to act out."""
    script = dict(order.spec.get("fake") or {})
    per_replica = script.pop("replicas", None) or {}
    return script | dict(per_replica.get(str(order.number)) or per_replica.get(order.number) or {})


def _take(order: LaunchOrder, sold_out: Collection[str]) -> dict[str, Any]:
    """The kind of machine that the replica gets: the first that its resources would take and that is to be had."""
    resources = order.spec.get("resources") or {}
    found = [
        offer
        for offer in offers(resources, order.spot, order.place)
        if not {offer.accelerators, offer.place, SPOT if offer.spot else ON_DEMAND} & set(sold_out)
    ]
    if not found:
        raise ProviderError(f"no machine of its resources is to be had: {', '.join(sold_out)} sold out")
    told = order.spot is not None or says_spot(resources)
    best = found[0]
    return {"accelerators": best.accelerators, "spot": best.spot if told else None, "place": best.place}


def _complaints(path: str, script: object) -> list[str]:
    if not isinstance(script, Mapping):
        return [f"{path}: must be fields and values"]
    found = []
    for name, value in script.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if name not in KNOWN:
            near = difflib.get_close_matches(str(name), KNOWN, 1)
            found.append(f"{path}.{name}: the fake provider has no such field{f', try {near[0]}' if near else ''}")
        elif name in NUMBERS and not (number and value >= 0):
            found.append(f"{path}.{name}: must be a number of 0 or more")
        elif name == "sold_out" and not (isinstance(value, list) and all(isinstance(each, str) for each in value)):
            found.append(f"{path}.{name}: must be a list of texts, such as [spot, 'A100:8']")
    return found


def _exited(code: int) -> Inspection:
    return Inspection("exited", code, f"exited with code {code}")


def _result(request: ProbeRequest, status: int | None, error: Fault | None, detail: str) -> ProbeResult:
    return ProbeResult(request.key, error is None, status, error, detail, "", 0.0)
