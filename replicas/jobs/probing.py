"""Between rows and probes: which replicas are probed and how, and what a result does to them."""

import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.db.models import Max

from replicas import clock
from replicas.actions import replicas
from replicas.actions.sealing import Unsealable, unseal
from replicas.core.health import (
    PROBED,
    Observed,
    ProbePolicy,
    judge,
    judge_liveness,
    next_probe_in,
    proof_due,
    ready_anew,
)
from replicas.core.values import ReplicaState
from replicas.core.views import RolloutPolicy
from replicas.models import Event, Replica, ServiceVersion
from replicas.models.fields import ALIVE
from replicas.providers import registry
from replicas.providers.probe import ProbeRequest, ProbeResult

QUIET_START_SECONDS = 3.0  # a replica that refuses connections for so long after its launch is nothing to write down
MASK = "***"
FIELDS = (
    "id",
    "state",
    "state_since",
    "launched_at",
    "url",
    "provider",
    "version__uid",
    "probe_ok",
    "probe_detail",
    "probe_at",
    "adopted_at",
    "liveness_failing_since",
)
READINESS = "readiness_probe"
LIVENESS = "liveness_probe"
KINDS = (READINESS, LIVENESS)
LIVENESS_STATES = (ReplicaState.READY, ReplicaState.NOT_READY)


@dataclass(slots=True)
class Target:
    """One kind of probe of a replica. `due` is on the monotonic clock; `key` tells the kinds of a replica apart.

    `proves_at`: a pass from then on proves the replica and is written down; None once it was, or where none is needed.
    """

    id: int
    kind: str
    state: ReplicaState
    state_since: datetime
    launched_at: datetime | None
    provider: str
    probe_ok: bool | None
    probe_detail: str
    failing_since: datetime | None
    policy: ProbePolicy
    request: ProbeRequest
    secrets: tuple[str, ...]
    due: float
    proves_at: datetime | None = None

    @property
    def key(self) -> int:
        """The key of its requests and results."""
        return key_of(self.id, self.kind)

    def launched_for(self) -> float:
        """Seconds since its process began."""
        return (clock.now() - self.launched_at).total_seconds() if self.launched_at else 0.0

    def interval(self) -> float:
        """Seconds until the probe after this one."""
        usual = next_probe_in(self.state, self.launched_for(), self.policy)
        left = (self.proves_at - clock.now()).total_seconds() if self.proves_at else 0.0
        return min(usual, left) if left > 0 else usual

    def answered(self) -> ProbeResult | None:
        """The answer of a provider that answers for its replicas itself; None where a real probe must be made."""
        provider = registry.get(self.provider, settings.ROLLCALL.home)
        answer = getattr(provider, "answer", None)
        return answer(self.request) if answer is not None else None


def newest_event() -> int:
    """The id of the newest event; 0 for none."""
    newest: int | None = Event.objects.aggregate(newest=Max("id"))["newest"]
    return newest or 0


def key_of(replica_id: int, kind: str) -> int:
    """The key of one kind of probe of a replica."""
    return replica_id * len(KINDS) + KINDS.index(kind)


@dataclass(frozen=True, slots=True)
class Probed:
    """How a version is probed: a policy for each kind, the secret values to mask, and rollout.min_ready_seconds."""

    policies: dict[str, ProbePolicy]
    secrets: tuple[str, ...]
    min_ready_seconds: float


@lru_cache(maxsize=512)
def policies_of(version_uid: str) -> Probed:
    """How the replicas of a version are probed; a version never changes."""
    version = ServiceVersion.objects.get(uid=version_uid)
    try:
        secrets = unseal(version.sealed)
    except Unsealable:
        secrets = {}
    spec = filled_in(version.spec, secrets)
    policies = {READINESS: ProbePolicy.from_spec(spec)}
    if (spec.get("service") or {}).get(LIVENESS):
        policies[LIVENESS] = ProbePolicy.from_spec(spec, LIVENESS)
    wait = ((spec.get("service") or {}).get("rollout") or {}).get(
        "min_ready_seconds", RolloutPolicy().min_ready_seconds
    )
    return Probed(policies, tuple(value for value in secrets.values() if value), wait)


def filled_in(spec: dict[str, Any], secrets: dict[str, str]) -> dict[str, Any]:
    """The spec's service section with the secrets that its probes name (a header `Bearer $TOKEN`, say)."""
    if not secrets:
        return spec
    from replicas.core.spec import expand  # the parser is large, and most services have no secrets

    filled: dict[str, Any] = expand({"service": spec.get("service") or {}}, secrets)
    return filled


def changes_after(cursor: int) -> tuple[int, set[int] | None]:
    """The id of the newest event, and the ids of the replicas that events after `cursor` are about.

    None for the ids: there is no such cursor yet, so anything may have changed.
    """
    if cursor < 0:
        return newest_event(), None
    events = list(Event.objects.filter(pk__gt=cursor).order_by().values_list("pk", "kind", "object_id"))
    newest = max((number for number, _, _ in events), default=cursor)
    return newest, {about for _, kind, about in events if kind == "replica"}


def load_targets(shard: int, known: dict[int, Target], changed: Collection[int] | None = None) -> dict[int, Target]:
    """The shard's replicas that are to be probed. One that is new or has changed its state is due at once.

    `changed`: the ids of those whose rows may differ from `known`; None: of all.
    """
    shards = settings.ROLLCALL.probe_shards
    rows = Replica.objects.filter(ALIVE, state__in=PROBED).exclude(url="").order_by()
    found: dict[int, Target] = {}
    if changed is not None:
        found = {key: target for key, target in known.items() if target.id not in changed}
        rows = rows.filter(pk__in=changed)
    for row in rows.values(*FIELDS):
        if row["id"] % shards != shard:
            continue
        for target in make_targets(row):
            found[target.key] = target
            before = known.get(target.key)
            if before is not None and before.policy == target.policy:
                target.due = min(before.due, time.monotonic() + target.interval())
    return found


def make_targets(row: dict[str, Any]) -> Iterator[Target]:
    """What is to be probed of a replica, due now."""
    version = policies_of(row["version__uid"])
    for kind, policy in version.policies.items():
        if kind == LIVENESS and row["state"] not in LIVENESS_STATES:
            continue
        yield Target(
            id=row["id"],
            kind=kind,
            state=ReplicaState(row["state"]),
            state_since=row["state_since"],
            launched_at=row["launched_at"],
            provider=row["provider"],
            probe_ok=row["probe_ok"],
            probe_detail=row["probe_detail"],
            failing_since=row["liveness_failing_since"],
            policy=policy,
            request=request_for(policy, key_of(row["id"], kind), row["url"]),
            secrets=version.secrets,
            due=time.monotonic(),
            proves_at=proves_at(row, version.min_ready_seconds) if kind == READINESS else None,
        )


def proves_at(row: dict[str, Any], min_ready_seconds: float) -> datetime | None:
    """From when on a probe that passes proves the replica; None where that has been, or none is needed."""
    if row["state"] != ReplicaState.READY:
        return None
    since = ready_anew(row["state_since"], row["adopted_at"])
    return proof_due(since, min_ready_seconds, row["probe_at"] if row["probe_ok"] else None)


def request_for(policy: ProbePolicy, key: int, url: str) -> ProbeRequest:
    """The probe to make of a replica."""
    return ProbeRequest(
        key=key,
        url=policy.base_url(url),
        path=policy.path,
        method=policy.method,
        body=policy.body,
        headers=policy.headers,
        timeout=policy.timeout,
        insecure_tls=policy.insecure_tls,
    )


def record(target: Target, result: ProbeResult, now: datetime) -> None:
    """Let the result, which came at `now`, have its effect; a row is written only when it tells something new."""
    if target.kind == LIVENESS:
        record_liveness(target, result, now)
        return
    facts: dict[str, Any] = {
        "probe_at": now,
        "probe_ok": result.ok,
        "probe_detail": masked(result.detail, target.secrets),
        "probe_excerpt": masked(result.excerpt, target.secrets),
        "probe_seconds": round(result.seconds, 4),
    }
    observed = Observed(target.state, target.state_since, target.launched_at)
    verdict = judge(observed, result.ok, facts["probe_detail"], target.policy, now)
    if verdict is not None:
        replicas.observe(target.id, verdict.trigger, reason=verdict.reason, actor="probe", **facts)
    elif proves(target, result, now) or is_news(target, result):
        replicas.note_probe(target.id, actor="probe", **facts)
    target.probe_ok, target.probe_detail = result.ok, facts["probe_detail"]


def record_liveness(target: Target, result: ProbeResult, now: datetime) -> None:
    """Keep when liveness probes began to fail, and end the replica when they have failed for too long."""
    detail = masked(result.detail, target.secrets)
    verdict = judge_liveness(target.failing_since, result.ok, detail, target.policy, now)
    if verdict is not None:
        replicas.observe(target.id, verdict.trigger, reason=verdict.reason, actor="probe")
    elif result.ok != (target.failing_since is None):
        target.failing_since = None if result.ok else now
        replicas.note_liveness(target.id, failing_since=target.failing_since, reason=detail, actor="probe")


def proves(target: Target, result: ProbeResult, now: datetime) -> bool:
    """True for the pass that a rollout waits for before it counts on the replica."""
    return result.ok and target.proves_at is not None and now >= target.proves_at


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
