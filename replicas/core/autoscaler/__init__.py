"""How many replicas the load asks for: pure decisions from samples, each with its reason."""

from replicas.core.autoscaler.decide import decide
from replicas.core.autoscaler.mix import Mix, mix
from replicas.core.autoscaler.policy import follows_load, policy_from
from replicas.core.autoscaler.values import Decision, Memory, Policy, Sample

__all__ = [
    "Decision",
    "Memory",
    "Mix",
    "Policy",
    "Sample",
    "decide",
    "follows_load",
    "mix",
    "policy_from",
]
