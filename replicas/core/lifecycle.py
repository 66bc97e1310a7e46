"""The one table of what can happen to a replica; docs/lifecycle.md is made from it."""

from dataclasses import dataclass

from replicas.core.values import LIVE, ReplicaState

S = ReplicaState


@dataclass(frozen=True, slots=True)
class Trigger:
    """Something that happens to a replica: from which states, to which, and the outcome that it fixes.

    `target` None means the outcome that was fixed when teardown began. `outcome` counts only if none is fixed yet.
    """

    name: str
    sources: frozenset[ReplicaState]
    target: ReplicaState | None
    outcome: ReplicaState | None
    meaning: str


@dataclass(frozen=True, slots=True)
class Step:
    """What a trigger makes of a replica."""

    state: ReplicaState
    outcome: ReplicaState | None


RUNNING = frozenset({S.STARTING, S.READY, S.NOT_READY, S.DRAINING})

TABLE: tuple[Trigger, ...] = (
    Trigger("launch_begun", frozenset({S.PENDING}), S.PROVISIONING, None, "a worker has taken up the launch"),
    Trigger("launched", frozenset({S.PROVISIONING}), S.STARTING, None, "its process runs, no probe has passed yet"),
    Trigger(
        "launch_failed",
        frozenset({S.PROVISIONING}),
        S.SHUTTING_DOWN,
        S.FAILED_PROVISION,
        "the provider could not bring it up, also after retries",
    ),
    Trigger("setup_failed", frozenset({S.PROVISIONING}), S.SHUTTING_DOWN, S.FAILED, "the user's setup failed"),
    Trigger("probe_passed", frozenset({S.STARTING, S.NOT_READY}), S.READY, None, "a readiness probe passed"),
    Trigger("probe_failed", frozenset({S.READY}), S.NOT_READY, None, "a readiness probe failed"),
    Trigger(
        "initial_delay_passed",
        frozenset({S.STARTING}),
        S.SHUTTING_DOWN,
        S.FAILED_INITIAL_DELAY,
        "it was never ready within initial_delay_seconds",
    ),
    Trigger(
        "probe_exhausted",
        frozenset({S.NOT_READY}),
        S.SHUTTING_DOWN,
        S.FAILED_PROBING,
        "probes failed in a row for consecutive_failure_threshold_timeout",
    ),
    Trigger(
        "liveness_exhausted",
        frozenset({S.READY, S.NOT_READY}),
        S.SHUTTING_DOWN,
        S.FAILED_PROBING,
        "liveness probes failed in a row for as long as liveness_probe allows",
    ),
    Trigger("exited", RUNNING, S.SHUTTING_DOWN, S.FAILED, "the user's run ended by itself"),
    Trigger("lost", RUNNING, S.SHUTTING_DOWN, S.FAILED, "its process is gone and left no exit code"),
    Trigger(
        "preempted",
        RUNNING | {S.PROVISIONING},
        S.SHUTTING_DOWN,
        S.PREEMPTED,
        "the provider took its machine away",
    ),
    Trigger("withdrawn", frozenset({S.PENDING}), S.TERMINATED, S.TERMINATED, "not wanted any more before its launch"),
    Trigger(
        "drain_begun",
        frozenset({S.READY, S.NOT_READY}),
        S.DRAINING,
        S.TERMINATED,
        "not wanted any more: new work stops, work in flight goes on",
    ),
    Trigger(
        "drained", frozenset({S.DRAINING}), S.SHUTTING_DOWN, S.TERMINATED, "nothing in flight, or drain_seconds over"
    ),
    Trigger(
        "retired",
        frozenset({S.PROVISIONING, S.STARTING, S.READY, S.NOT_READY}),
        S.SHUTTING_DOWN,
        S.TERMINATED,
        "not wanted any more: taken down at once",
    ),
    Trigger("gone", frozenset({S.SHUTTING_DOWN}), None, None, "nothing of it is left: it ends with its outcome"),
    Trigger(
        "cleanup_failed",
        frozenset({S.SHUTTING_DOWN}),
        S.FAILED_CLEANUP,
        None,
        "the down failed, also after retries: something may be left over",
    ),
)
TRIGGERS: dict[str, Trigger] = {trigger.name: trigger for trigger in TABLE}


def step(state: ReplicaState, outcome: ReplicaState | None, trigger: str) -> Step | None:
    """What `trigger` makes of a replica in `state`; None where it does not apply (the replica is past it).

    Raises KeyError for a trigger that is not in the table.
    """
    row = TRIGGERS[trigger]
    if state not in row.sources:
        return None
    fixed = outcome if outcome is not None else row.outcome
    target = row.target
    if target is None:
        target = fixed if fixed is not None else S.TERMINATED
    return Step(target, fixed)


def markdown() -> str:
    """The table as docs/lifecycle.md shows it."""
    lines = [
        "# The life of a replica",
        "",
        "Made from the table in `replicas/core/lifecycle.py`; a test keeps the two equal.",
        "The outcome is fixed when teardown begins; whoever finishes later cannot overwrite it.",
        "",
        "| trigger | from | to | outcome fixed | meaning |",
        "|---|---|---|---|---|",
    ]
    order = list(ReplicaState)
    for row in TABLE:
        sources = ", ".join(sorted(row.sources, key=lambda state: order.index(ReplicaState(state))))
        target = row.target or "its outcome"
        lines.append(f"| `{row.name}` | {sources} | {target} | {row.outcome or ''} | {row.meaning} |")
    ends = ", ".join(state for state in ReplicaState if state not in LIVE)
    lines += ["", f"Ends, which never change: {ends}.", ""]
    return "\n".join(lines)
