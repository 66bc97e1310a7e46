"""Between rows and probes: which replicas are probed and how, and what a result does to them."""

import time
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.db.models import Max

from replicas import clock
from replicas.actions import replicas
from replicas.actions.sealing import Unsealable, unseal
from replicas.core.health import PROBED, Observed, ProbePolicy, judge, next_probe_in
from replicas.core.values import ReplicaState
from replicas.models import Event, Replica, ServiceVersion
from replicas.providers import registry
from replicas.providers.probe import ProbeRequest, ProbeResult

QUIET_START_SECONDS = 3.0  # a replica that refuses connections for so long after its launch is nothing to write down
MASK = "***"
FIELDS = (
    "id",
    "uid",
    "state",
    "state_since",
    "launched_at",
    "url",
    "provider",
    "version__uid",
    "probe_ok",
    "probe_detail",
)


@dataclass(slots=True)
class Target:
    """A replica that is probed. `due` is on the monotonic clock."""

    id: int
    state: ReplicaState
    state_since: datetime
    launched_at: datetime | None
    provider: str
    probe_ok: bool | None
    probe_detail: str
    policy: ProbePolicy
    request: ProbeRequest
    secrets: tuple[str, ...]
    due: float

    def launched_for(self) -> float:
        """Seconds since its process began."""
        return (clock.now() - self.launched_at).total_seconds() if self.launched_at else 0.0

    def interval(self) -> float:
        """Seconds until the probe after this one."""
        return next_probe_in(self.state, self.launched_for(), self.policy)

    def answered(self) -> ProbeResult | None:
        """The answer of a provider that answers for its replicas itself; None where a real probe must be made."""
        provider = registry.get(self.provider, settings.ROLLCALL.home)
        answer = getattr(provider, "answer", None)
        return answer(self.request) if answer is not None else None


def newest_event() -> int:
    """The id of the newest event; 0 for none."""
    newest: int | None = Event.objects.aggregate(newest=Max("id"))["newest"]
    return newest or 0


@lru_cache(maxsize=512)
def policy_of(version_uid: str) -> tuple[ProbePolicy, tuple[str, ...]]:
    """The probe policy of a version, which never changes, and its secret values (to mask them in excerpts)."""
    version = ServiceVersion.objects.get(uid=version_uid)
    try:
        secrets = tuple(value for value in unseal(version.sealed).values() if value)
    except Unsealable:
        secrets = ()
    return ProbePolicy.from_spec(version.spec), secrets


def load_targets(shard: int, known: dict[int, Target]) -> dict[int, Target]:
    """The shard's replicas that are to be probed. One that is new or has changed its state is due at once."""
    shards = settings.ROLLCALL.probe_shards
    found: dict[int, Target] = {}
    for row in Replica.objects.filter(state__in=PROBED).exclude(url="").values(*FIELDS):
        if row["id"] % shards == shard:
            target = found[row["id"]] = make_target(row)
            before = known.get(target.id)
            if before is not None and before.policy == target.policy:
                soonest = time.monotonic() + target.interval()
                target.due = min(before.due, soonest)
    return found


def make_target(row: dict[str, Any]) -> Target:
    """A target, due now."""
    policy, secrets = policy_of(row["version__uid"])
    return Target(
        id=row["id"],
        state=ReplicaState(row["state"]),
        state_since=row["state_since"],
        launched_at=row["launched_at"],
        provider=row["provider"],
        probe_ok=row["probe_ok"],
        probe_detail=row["probe_detail"],
        policy=policy,
        request=request_for(policy, row),
        secrets=secrets,
        due=time.monotonic(),
    )


def request_for(policy: ProbePolicy, row: dict[str, Any]) -> ProbeRequest:
    """The probe to make of a replica."""
    return ProbeRequest(
        key=row["id"],
        url=policy.base_url(row["url"]),
        path=policy.path,
        method=policy.method,
        body=policy.body,
        headers=policy.headers,
        timeout=policy.timeout,
        insecure_tls=policy.insecure_tls,
    )


def record(target: Target, result: ProbeResult) -> None:
    """Let the result have its effect; a row is written only when it tells something new."""
    now = clock.now()
    facts: dict[str, Any] = {
        "probe_at": now,
        "probe_ok": result.ok,
        "probe_detail": masked(result.detail, target.secrets),
        "probe_excerpt": masked(result.excerpt, target.secrets),
        "probe_seconds": round(result.seconds, 4),
    }
    verdict = judge(
        Observed(target.state, target.state_since, target.launched_at), result.ok, result.detail, target.policy, now
    )
    if verdict is not None:
        replicas.observe(
            target.id, verdict.trigger, reason=masked(verdict.reason, target.secrets), actor="probe", **facts
        )
    elif is_news(target, result):
        replicas.note_probe(target.id, actor="probe", **facts)
    target.probe_ok, target.probe_detail = result.ok, facts["probe_detail"]


def is_news(target: Target, result: ProbeResult) -> bool:
    """True when people should see the result although it changes no state."""
    if target.probe_ok == result.ok and target.probe_detail == masked(result.detail, target.secrets):
        return False
    return target.state is not ReplicaState.STARTING or target.launched_for() > QUIET_START_SECONDS


def masked(text: str, secrets: tuple[str, ...]) -> str:
    """The text without the version's secret values."""
    for secret in secrets:
        text = text.replace(secret, MASK)
    return text
