"""From the `replica_policy` of a spec to what the autoscaler decides by."""

from replicas.core.autoscaler.values import Policy
from replicas.core.spec.service import Service


def policy_of(service: Service) -> Policy | None:
    """The policy of a `service` section; None where the number of replicas is fixed."""
    spec = service.replica_policy
    if spec is None:
        return None
    return Policy(
        minimum=spec.min_replicas,
        maximum=spec.min_replicas if spec.max_replicas is None else spec.max_replicas,
        qps=spec.target_qps_per_replica,
        inflight=spec.target_inflight_per_replica,
        queue=spec.target_queue_per_replica,
        p95=spec.target_p95_seconds,
        custom=spec.custom_signal.target_per_replica if spec.custom_signal else None,
        overprovision=spec.num_overprovision or 0,
        upscale_delay=spec.upscale_delay_seconds,
        downscale_delay=spec.downscale_delay_seconds,
    )
