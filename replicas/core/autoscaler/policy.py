"""From the `replica_policy` of a spec to what the autoscaler decides by."""

from collections.abc import Mapping
from typing import Any

from replicas.core.autoscaler.values import Policy

NUMBERS = {
    "target_qps_per_replica": "qps",
    "target_inflight_per_replica": "inflight",
    "target_queue_per_replica": "queue",
    "target_p95_seconds": "p95",
    "num_overprovision": "overprovision",
    "upscale_delay_seconds": "upscale_delay",
    "downscale_delay_seconds": "downscale_delay",
}


def follows_load(spec: Mapping[str, Any]) -> bool:
    """True when a spec (its JSON form) leaves the number of replicas to the load."""
    return bool((spec.get("service") or {}).get("replica_policy"))


def policy_from(service: Mapping[str, Any]) -> Policy | None:
    """The policy of a `service` section in its JSON form; None where the number of replicas is fixed."""
    spec = service.get("replica_policy")
    if not spec:
        return None
    least, most = spec["min_replicas"], spec.get("max_replicas")
    custom = spec.get("custom_signal") or {}
    given = {field: spec[key] for key, field in NUMBERS.items() if spec.get(key) is not None}
    return Policy(
        minimum=least,
        maximum=least if most is None else most,
        custom=custom.get("target_per_replica"),
        **given,
    )
