"""The `service` and `pool` sections: how many replicas, when one is ready, how it is replaced and updated.

Fields, defaults and rules of SkyServe; `liveness_probe`, the signals beside `target_qps_per_replica`, `rollout`,
`drain_seconds`, `restart`, `endpoint_port`, `max_launches`, the probes' `scheme` and `insecure_tls`, and all of
`load_balancer` but `stream_timeout_seconds` are our own, each optional.
"""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler, PlainValidator

from replicas.core.spec.kinds import (
    Amount,
    Count,
    Flag,
    HashOn,
    Headers,
    Interval,
    Line,
    Ordinal,
    Port,
    PostData,
    Rate,
    Rates,
    Seconds,
    Section,
    Text,
    UrlPath,
    as_choice,
    names_of,
)

POLICIES = (
    *("round_robin", "least_load", "instance_aware_least_load"),  # SkyServe's
    *("random_two", "consistent_hash", "sticky"),
)
Policy = Annotated[str, PlainValidator(as_choice(*POLICIES)), names_of(*POLICIES)]
Scheme = Annotated[str, PlainValidator(as_choice("http", "https")), names_of("http", "https")]
Mode = Annotated[str, PlainValidator(as_choice("rolling", "blue_green")), names_of("rolling", "blue_green")]
Placer = Annotated[str, PlainValidator(as_choice("dynamic_fallback")), names_of("dynamic_fallback")]
_OWN_DEADLINE = 600.0  # seconds beyond the initial delay, as Kubernetes' progressDeadlineSeconds


class Probe(Section):
    """How a replica is asked over HTTP. 2xx is success; a redirect is a failure. All times in seconds."""

    path: UrlPath = Field(description="What to ask for, such as /health.")
    scheme: Scheme = Field(default="http", description="https asks over TLS.")
    insecure_tls: Flag = Field(default=False, description="Accept a certificate that nobody signed.")
    post_data: PostData | None = Field(default=None, description="JSON to POST; without it the probe is a GET.")
    headers: Headers = Field(default_factory=dict, description="Headers to send.")
    timeout_seconds: Interval = Field(default=15, description="The whole probe must be over within this time.")
    endpoint_probe_interval_seconds: Interval = Field(default=10, description="Time between two probes.")
    consecutive_failure_threshold_timeout: Seconds = Field(
        default=180, description="Failing in a row for so long is the end of the replica."
    )


class ReadinessProbe(Probe):
    """When a replica may get traffic."""

    initial_delay_seconds: Seconds = Field(default=1200, description="How long a replica may take to become ready.")


class LivenessProbe(Probe):
    """When a replica that was ready is to be replaced although it still runs."""


class _OrPath:
    """Tells editors that a path alone will do."""

    def __get_pydantic_json_schema__(self, core: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [{"type": "string", "pattern": "^/"}, handler(core)]}


def _probe(value: object) -> object:
    return {"path": value} if isinstance(value, str) else value


class CustomSignal(Section):
    """A number of the operator's own that moves the target: what `command` prints, or `url` answers with."""

    command: Line | None = Field(default=None, description="Run without a shell; the first number it prints counts.")
    url: Line | None = Field(default=None, description="Asked with GET; the first number of the answer counts.")
    target_per_replica: Rate = Field(description="How much of it one replica carries.")
    interval_seconds: Interval = Field(default=15, description="How often it is read.")


class ReplicaPolicy(Section):
    """Between how many replicas the autoscaler moves, and by what."""

    min_replicas: Count = Field(description="Fewest replicas.")
    max_replicas: Count | None = Field(default=None, description="Most replicas; min_replicas if not given.")
    num_overprovision: Count | None = Field(default=None, description="Replicas beyond what the load asks for.")
    target_qps_per_replica: Rates | None = Field(
        default=None, description="Requests per second for one replica: a number, or a number for each accelerator."
    )
    target_inflight_per_replica: Rate | None = Field(
        default=None, description="Requests in flight, waiting ones too, for one replica."
    )
    target_queue_per_replica: Rate | None = Field(
        default=None, description="Waiting requests that ask for one more replica."
    )
    target_p95_seconds: Rate | None = Field(default=None, description="95 % of the answers should come within it.")
    custom_signal: CustomSignal | None = Field(default=None, description="A number of your own.")
    upscale_delay_seconds: Seconds = Field(
        default=300, description="How long more load must last before more replicas."
    )
    downscale_delay_seconds: Seconds = Field(
        default=1200, description="How long less load must last before fewer replicas."
    )
    base_ondemand_fallback_replicas: Count | None = Field(default=None, description="Replicas that are never spot.")
    dynamic_ondemand_fallback: Flag | None = Field(default=None, description="Stand in for missing spot replicas.")
    spot_placer: Placer | None = None

    @property
    def measured(self) -> bool:
        """True when something moves the number between its bounds."""
        signals = (
            self.target_qps_per_replica,
            self.target_inflight_per_replica,
            self.target_queue_per_replica,
            self.target_p95_seconds,
            self.custom_signal,
        )
        return any(signal is not None for signal in signals)


class LoadBalancer(Section):
    """How the gateway treats requests."""

    stream_timeout_seconds: Interval = Field(default=120, description="Longest silence of an answer.")
    hash_on: HashOn | None = Field(
        default=None, description="consistent_hash: source, path, header:NAME or cookie:NAME; source if not given."
    )
    max_concurrency: Ordinal | None = Field(default=None, description="Requests that a replica gets at a time.")
    queue_timeout_seconds: Interval | None = Field(
        default=None, description="Longest wait for a replica with room, 30 if not given."
    )
    hold_seconds: Seconds | None = Field(
        default=None,
        description="How long a request waits for a first replica; 60 with min_replicas: 0, else 0, if not given.",
    )
    max_body_mb: Interval | None = Field(default=None, description="Largest body of a request, in megabytes.")
    requests_per_second_per_client: Ordinal | None = Field(
        default=None, description="Requests that one client address may make in a second."
    )
    bearer_token: Text | None = Field(
        default=None, description="What a request has to bring as its bearer token: the name of a secret, as $NAME."
    )


class Tls(Section):
    """Key and certificate of the endpoint."""

    keyfile: Line
    certfile: Line


class Rollout(Section):
    """How a new version takes the place of the old one. Amounts are numbers or percentages of the target."""

    mode: Mode = "rolling"
    max_surge: Amount = Field(default="25%", description="Replicas beyond the target while it goes on (rounded up).")
    max_unavailable: Amount = Field(default=0, description="Ready replicas that may be missing (rounded down).")
    canary: Amount | None = Field(default=None, description="Replicas of the new version to begin with.")
    bake_seconds: Seconds | None = Field(
        default=None, description="A canary is promoted after so long without a failure."
    )
    auto_rollback: Flag = Field(default=True, description="Go back to the last good version when it fails.")
    progress_deadline_seconds: Interval | None = Field(
        default=None, description="No progress for so long is a failure; 600 beyond the initial delay if not given."
    )
    min_ready_seconds: Seconds = Field(default=10, description="A new replica counts once it was ready for so long.")
    max_failures: Ordinal = Field(
        default=3, description="So many failed replicas of the new version, and it is given up."
    )
    keep_old_seconds: Seconds = Field(default=0, description="Blue-green: how long the old replicas are kept.")


class Restart(Section):
    """How a failed replica is replaced: the first time at once, then after delays that double."""

    backoff_seconds: Seconds = 10
    max_backoff_seconds: Seconds = 300
    reset_after_seconds: Seconds = Field(default=600, description="Ready for so long, and the delays begin anew.")
    max_never_ready: Ordinal = Field(
        default=5, description="Replicas of a version that fail before ready; then no more."
    )


class Pool(Section):
    """A pool of workers without an endpoint."""

    workers: Count | None = None
    min_workers: Count | None = None
    max_workers: Count | None = None
    queue_length_threshold: Ordinal | None = None
    upscale_delay_seconds: Seconds = 300
    downscale_delay_seconds: Seconds = 1200

    @property
    def target(self) -> int:
        """Workers to begin with."""
        return next(n for n in (self.workers, self.min_workers, 1) if n is not None)


class Service(Section):
    """How many replicas there are, and what becomes of them."""

    readiness_probe: Annotated[ReadinessProbe, BeforeValidator(_probe), _OrPath()] = Field(
        default_factory=lambda: ReadinessProbe(path="/"), description="A path, or the fields of a probe."
    )
    liveness_probe: Annotated[LivenessProbe, BeforeValidator(_probe), _OrPath()] | None = Field(
        default=None, description="A path, or the fields of a probe."
    )
    replicas: Count | None = Field(
        default=None, description="Number of replicas, 1 if not given. Excludes replica_policy."
    )
    replica_policy: ReplicaPolicy | None = None
    ports: Port | None = Field(default=None, description="The port that a replica listens on.")
    endpoint_port: Port | None = Field(default=None, description="The port of the service's address.")
    load_balancing_policy: Policy = "least_load"
    load_balancer: LoadBalancer = Field(default_factory=lambda: LoadBalancer())
    tls: Tls | None = None
    rollout: Rollout = Field(default_factory=lambda: Rollout())
    drain_seconds: Seconds = Field(default=30, description="Time for requests in flight before a replica goes.")
    restart: Restart = Field(default_factory=lambda: Restart())
    max_launches: Ordinal | None = Field(default=None, description="Launches of this service in flight at a time.")
    workers: Count | None = Field(default=None, description="Workers of a pool.")
    pool: Pool | None = None

    @property
    def progress_deadline(self) -> float:
        """Seconds without progress after which a rollout has failed."""
        own = self.rollout.progress_deadline_seconds
        return own if own is not None else self.readiness_probe.initial_delay_seconds + _OWN_DEADLINE
