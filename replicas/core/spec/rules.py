"""Rules between fields, checked once each field is right by itself."""

from collections.abc import Iterator

from replicas.core.spec.errors import Path
from replicas.core.spec.kinds import port_range
from replicas.core.spec.resources import Alternative
from replicas.core.spec.service import Pool, ReplicaPolicy, Rollout
from replicas.core.spec.task import HOST_PROVIDERS, Spec

Problem = tuple[Path, str]


def broken_rules(spec: Spec) -> Iterator[Problem]:
    """(path, message) of each rule that the spec breaks."""
    yield from _scale(spec)
    yield from _spot(spec)
    yield from _ports(spec)
    yield from _rollout(spec.service.rollout)
    yield from _restart(spec)
    yield from _balancer(spec)
    if spec.resources.any_of is not None and spec.resources.ordered is not None:
        yield ("resources", "ordered"), "cannot stand beside any_of: keep one of them"


def _scale(spec: Spec) -> Iterator[Problem]:
    service = spec.service
    if service.replicas is not None and service.replica_policy:
        yield (
            ("service", "replicas"),
            "cannot stand beside replica_policy: keep replicas for a fixed number, or replica_policy",
        )
    if service.workers is not None and (service.replicas is not None or service.replica_policy):
        yield ("service", "workers"), "cannot stand beside replicas or replica_policy: workers are for pools"
    if service.replica_policy:
        yield from _policy(service.replica_policy, service.load_balancing_policy)
    for path, pool in ((("pool",), spec.pool), (("service", "pool"), service.pool)):
        if pool:
            yield from _pool(path, pool)


def _policy(policy: ReplicaPolicy, balancing: str) -> Iterator[Problem]:
    at = ("service", "replica_policy")
    most, least = policy.max_replicas, policy.min_replicas
    if most is not None and most < least:
        yield (*at, "max_replicas"), f"must be min_replicas ({least}) or more, but is {most}"
    elif most is not None and most != least and not policy.measured:
        message = (
            f"differs from min_replicas ({least}), so the autoscaler needs target_qps_per_replica"
            " (or another signal): add it below"
        )
        yield (*at, "max_replicas"), message
    if isinstance(policy.target_qps_per_replica, dict) and balancing != "instance_aware_least_load":
        message = "is given for each accelerator, which needs load_balancing_policy: instance_aware_least_load"
        yield (*at, "target_qps_per_replica"), message
    custom = policy.custom_signal
    if custom and (custom.command is None) == (custom.url is None):
        yield (*at, "custom_signal"), "needs either a command or a url, and not both"


def _pool(at: Path, pool: Pool) -> Iterator[Problem]:
    if pool.workers is not None and (pool.min_workers is not None or pool.max_workers is not None):
        yield (*at, "workers"), "cannot stand beside min_workers or max_workers: keep workers for a fixed number"
    if pool.max_workers is not None and pool.max_workers < (pool.min_workers or 0):
        yield (*at, "max_workers"), f"must be min_workers ({pool.min_workers}) or more, but is {pool.max_workers}"


def _spot(spec: Spec) -> Iterator[Problem]:
    policy = spec.service.replica_policy
    if policy is None or any(choice.use_spot for choice in spec.resources.choices()):
        return
    for name in ("base_ondemand_fallback_replicas", "dynamic_ondemand_fallback", "spot_placer"):
        if getattr(policy, name):
            yield ("service", "replica_policy", name), "needs spot replicas: add use_spot: true to resources"


def _ports(spec: Spec) -> Iterator[Problem]:
    if spec.service.ports is not None or spec.pool or spec.service.pool or spec.service.workers is not None:
        return
    choices = spec.resources.choices()
    opened = {tuple(choice.ports) if choice.ports is not None else None for choice in choices}
    if opened == {None}:
        if spec.provider not in HOST_PROVIDERS:
            message = (
                f"must say on which port a replica listens, as {spec.provider} opens it: add ports: 8080 below service"
            )
            yield ("service", "ports"), message
    elif len(opened) > 1:
        message = "must open the same port in each choice of resources: write ports once, beside any_of or ordered"
        yield ("resources", "ports"), message
    elif not _one_port(choices[0]):
        message = (
            "must open exactly one port for a service: keep the one that the replica listens on, or set service.ports"
        )
        yield ("resources", "ports"), message


def _one_port(choice: Alternative) -> bool:
    ports = choice.ports or []
    return len(ports) == 1 and len(set(port_range(ports[0]))) == 1


def _rollout(rollout: Rollout) -> Iterator[Problem]:
    at = ("service", "rollout")
    surge, missing = (str(amount).rstrip("%") for amount in (rollout.max_surge, rollout.max_unavailable))
    if int(surge) == 0 and int(missing) == 0 and rollout.mode == "rolling":
        yield (
            (*at, "max_surge"),
            "cannot be 0 while max_unavailable is 0 too, as nothing could move: set one of them to 1",
        )
    if rollout.canary is not None and rollout.mode == "blue_green":
        message = "is for rolling updates: blue_green tries the whole new set before it switches. Remove one of them"
        yield (*at, "canary"), message
    for name in ("max_unavailable", "canary"):
        amount = getattr(rollout, name)
        if isinstance(amount, str) and int(amount.rstrip("%")) > 100:
            yield (*at, name), f"must be at most 100%, but is {amount}"


def _restart(spec: Spec) -> Iterator[Problem]:
    restart = spec.service.restart
    if restart.max_backoff_seconds < restart.backoff_seconds:
        message = (
            f"must be backoff_seconds ({restart.backoff_seconds:g}) or more, but is {restart.max_backoff_seconds:g}"
        )
        yield ("service", "restart", "max_backoff_seconds"), message


def _balancer(spec: Spec) -> Iterator[Problem]:
    balancer, at = spec.service.load_balancer, ("service", "load_balancer")
    if balancer.hash_on is not None and spec.service.load_balancing_policy != "consistent_hash":
        yield (*at, "hash_on"), "needs load_balancing_policy: consistent_hash"
    token = balancer.bearer_token
    if token is not None and (not token.startswith("$") or token.strip("${}") not in spec.secrets):
        yield (*at, "bearer_token"), "must be the name of a secret, as $TOKEN: write its value below secrets, masked"
