"""What a probe's result makes of a replica, and when to ask it again. The rules are SkyServe's.

Until `initial_delay` (seconds after its launch) has passed, failures count for nothing and the first success makes it
ready. Once it has been ready, failures in a row for `failure_threshold` seconds end it.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from replicas.core.values import ReplicaState

PROBED = frozenset({ReplicaState.STARTING, ReplicaState.READY, ReplicaState.NOT_READY})

# While a replica is starting, the gap to its next probe is 0.1 s and half the time so far, which makes each gap 1.5
# times the one before it.
FIRST_GAP = 0.1
GROWTH = 0.5
STARTING_GAP = 1.0  # the longest gap in the first minute
SLOW_START = 60.0
SLOW_STARTING_GAP = 2.0  # the longest gap after it
NOT_READY_GAP = 1.0


@dataclass(frozen=True, slots=True)
class ProbePolicy:
    """`service.readiness_probe` of a version. Durations are seconds; the defaults are SkyServe's.

    `body` is JSON, and makes the probe a POST. `scheme` https asks over TLS whatever the replica's own url says.
    """

    path: str = "/"
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    initial_delay: float = 1200.0
    timeout: float = 15.0
    interval: float = 10.0
    failure_threshold: float = 180.0
    insecure_tls: bool = False
    scheme: str = "http"

    @property
    def method(self) -> Literal["GET", "POST"]:
        """GET, or POST when there is a body to post."""
        return "GET" if self.body is None else "POST"

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any], section: str = "readiness_probe") -> "ProbePolicy":
        """The policy in a resolved spec (its JSON form); what it does not say has SkyServe's default."""
        probe = spec.get("service", {}).get(section) or {}
        given = {name: probe[key] for key, name in SPEC_FIELDS.items() if probe.get(key) is not None}
        if probe.get("post_data") is not None:
            given["body"] = json.dumps(probe["post_data"]).encode()
        return cls(**given)

    def base_url(self, url: str) -> str:
        """The base to probe a replica at, from its own `url`: https where the probe asks for it."""
        return f"https://{url.removeprefix('http://')}" if self.scheme == "https" and url.startswith("http://") else url


SPEC_FIELDS = {
    "path": "path",
    "headers": "headers",
    "initial_delay_seconds": "initial_delay",
    "timeout_seconds": "timeout",
    "endpoint_probe_interval_seconds": "interval",
    "consecutive_failure_threshold_timeout": "failure_threshold",
    "insecure_tls": "insecure_tls",
    "scheme": "scheme",
}


@dataclass(frozen=True, slots=True)
class Observed:
    """A replica as it was when its probe was sent. Times are aware; NOT_READY began with the first failure."""

    state: ReplicaState
    state_since: datetime
    launched_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """A trigger of the life cycle, and why it is pulled: a sentence for the user."""

    trigger: str
    reason: str


def judge(observed: Observed, ok: bool, detail: str, policy: ProbePolicy, now: datetime) -> Verdict | None:
    """What follows from one probe of the replica, None if nothing changes. `detail` is the probe's own sentence.

    `now` must come from a clock that does not jump: the lengths of failure are differences of its times.
    """
    if ok:
        return _passed(observed, detail)
    if observed.state is ReplicaState.READY:
        return Verdict("probe_failed", _sentence("the readiness probe failed", detail))
    if observed.state is ReplicaState.STARTING:
        began = observed.launched_at or observed.state_since
        if (now - began).total_seconds() < policy.initial_delay:
            return None
        reason = f"never ready within {policy.initial_delay:g} s of its launch (initial_delay_seconds)"
        return Verdict("initial_delay_passed", _sentence(reason, detail))
    if observed.state is ReplicaState.NOT_READY:
        if (now - observed.state_since).total_seconds() < policy.failure_threshold:
            return None
        reason = (
            f"the readiness probe failed for {policy.failure_threshold:g} s in a row"
            " (consecutive_failure_threshold_timeout)"
        )
        return Verdict("probe_exhausted", _sentence(reason, detail))
    return None


def _passed(observed: Observed, detail: str) -> Verdict | None:
    if observed.state in (ReplicaState.STARTING, ReplicaState.NOT_READY):
        return Verdict("probe_passed", _sentence("the readiness probe passed", detail))
    return None


def _sentence(said: str, detail: str) -> str:
    return f"{said}: {detail}" if detail else said


def next_probe_in(state: ReplicaState, launched_for: float, policy: ProbePolicy) -> float:
    """Seconds from one probe to the next; infinite in a state in which a replica is not probed.

    `launched_for`: seconds since its launch. Never more than the version's own interval. A replica that is starting
    is asked often at first, so that it takes traffic as soon as it can; one that stopped being ready, each second.
    """
    if state is ReplicaState.READY:
        return policy.interval
    if state is ReplicaState.NOT_READY:
        return min(policy.interval, NOT_READY_GAP)
    if state is ReplicaState.STARTING:
        longest = STARTING_GAP if launched_for < SLOW_START else SLOW_STARTING_GAP
        return min(policy.interval, longest, FIRST_GAP + GROWTH * max(launched_for, 0.0))
    return math.inf


def ready_anew(state_since: datetime, adopted_at: datetime | None) -> datetime:
    """Since when a READY replica is so under its version: what it did before it was adopted proves nothing of that."""
    return max(state_since, adopted_at or state_since)


def proof_due(since: datetime, min_ready_seconds: float, passed_at: datetime | None) -> datetime | None:
    """From when on a probe that passes proves a replica that is ready `since` then; None: one has, or none is needed.

    The probe that made it ready is no proof of lasting, so one more is made (and written down) at that moment. Who
    makes it and who waits for it ask here. `passed_at`: when a probe passed, as far as was written down.
    """
    if min_ready_seconds <= 0:
        return None
    moment = since + timedelta(seconds=min_ready_seconds)
    return None if passed_at is not None and passed_at >= moment else moment


def judge_liveness(
    failing_since: datetime | None, ok: bool, detail: str, policy: ProbePolicy, now: datetime
) -> Verdict | None:
    """What follows from a liveness probe of a replica that has been ready; None while it may go on.

    Failing in a row for `failure_threshold` ends it even though it runs, as a failing liveness probe of Kubernetes
    does. `failing_since` is the time of the first failure of the row, None if this is the first.
    """
    if ok or failing_since is None or (now - failing_since).total_seconds() < policy.failure_threshold:
        return None
    reason = f"the liveness probe failed for {policy.failure_threshold:g} s in a row"
    return Verdict("liveness_exhausted", _sentence(reason, detail))
