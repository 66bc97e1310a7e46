"""Loads replayed through the autoscaler and through SkyServe's published rule, side by side."""

import math

from benchmarks.rows import Row, compared
from benchmarks.skyserve_rule import TICK, skyserve
from benchmarks.traces import TRACES
from replicas.core.autoscaler import Policy
from replicas.core.simulation import Outcome, Settings, autoscaled, replay

POLICY = Policy(minimum=1, maximum=30, qps=2.0)
SETTINGS = Settings(launch_seconds=30.0, carries=2.5)  # a replica carries a quarter more than it should have
EVERY = 10  # seconds between two of our decisions

# Bounds on ours / SkyServe's: seconds above what the replicas carry, replica-hours, changes. Where one is above 1 the
# reason stands in docs/autoscaler.md. None: only told.
BOUNDS: dict[str, tuple[float, float, float | None]] = {
    "steady": (1.0, 1.0, 1.0),
    "ramp": (0.8, 1.05, 1.1),
    "spike": (0.5, 1.1, None),
    "day": (1.05, 1.02, 0.9),
    "on_off": (0.7, 1.0, 1.1),
}


def run() -> list[Row]:
    rows = []
    for name, make in TRACES.items():
        trace = make()
        target = max(1, math.ceil(trace[0] / 2.0))
        scaler, notes = autoscaled(POLICY)
        ours = replay(trace, scaler, SETTINGS, target=target, notes=notes, every=EVERY)
        theirs = replay(trace, skyserve(POLICY), SETTINGS, target=target, every=TICK)
        rows += _rows(name, ours, theirs)
    return rows


def _rows(name: str, ours: Outcome, theirs: Outcome) -> list[Row]:
    over, hours, changes = BOUNDS[name]
    return [
        compared(f"{name}: above target load", ours.overloaded, theirs.overloaded, most=over, unit="s"),
        compared(f"{name}: replica-hours", ours.replica_hours, theirs.replica_hours, most=hours, unit="h"),
        compared(f"{name}: changes", ours.changes + 1, theirs.changes + 1, most=changes, unit="(+1)"),
    ]
