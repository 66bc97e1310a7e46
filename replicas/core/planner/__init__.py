"""What to do next for a service: pure decisions, each with its reason."""

from replicas.core.planner.actions import (
    Action,
    Adopt,
    BeginDown,
    Cancel,
    Create,
    Drain,
    Drained,
    Leave,
    Plan,
    Retire,
    Withdraw,
)
from replicas.core.planner.decide import plan

__all__ = [
    "Action",
    "Adopt",
    "BeginDown",
    "Cancel",
    "Create",
    "Drain",
    "Drained",
    "Leave",
    "Plan",
    "Retire",
    "Withdraw",
    "plan",
]
