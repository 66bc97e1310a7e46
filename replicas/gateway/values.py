"""What the gateway serves, as plain values: an entry for each service, a member for each replica with traffic."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

DEFAULT_PORTS = {"http": 80, "https": 443}
WEIGHT = 100
MOST_WEIGHT = 256


@dataclass(frozen=True, slots=True)
class Member:
    """A replica that gets traffic. `weight`: its share, 1 to 256."""

    number: int
    host: str
    port: int
    tls: bool = False
    weight: int = WEIGHT

    @property
    def name(self) -> str:
        """Its name in HAProxy."""
        return f"r{self.number}"

    @property
    def address(self) -> str:
        """Host and port, as HAProxy writes them."""
        return f"{self.host}:{self.port}"


@lru_cache(maxsize=16_384)  # asked for each replica whenever anything has changed
def member(number: int, url: str, weight: int = WEIGHT) -> Member | None:
    """The member at a replica's `url`; None for one that names no host to speak HTTP with.

    HAProxy refuses its whole configuration for one address that it cannot resolve.
    """
    try:
        parts = urlsplit(url)
        port = parts.port or DEFAULT_PORTS.get(parts.scheme, 0)
    except ValueError:  # no URL, or no such port
        return None
    if not parts.hostname or parts.scheme not in DEFAULT_PORTS:
        return None
    host = "127.0.0.1" if parts.hostname == "localhost" else parts.hostname
    return Member(number, host, port, parts.scheme == "https", weight)


@dataclass(frozen=True, slots=True)
class Entry:
    """A service's address and how its requests are treated. Times in seconds; 0 or "" where there is no limit.

    `token`: SHA-256 of the bearer token, in upper-case hex. `certificate`: the PEM file with key and certificate;
    `stamp` tells one content of it from another.
    """

    id: int
    name: str
    port: int
    policy: str = "least_load"
    hash_on: str = "source"
    stream_timeout: float = 120.0
    max_body: int = 0
    client_rate: int = 0
    token: str = ""
    concurrency: int = 0
    queue_timeout: float = 30.0
    hold: float = 0.0
    certificate: str = ""
    stamp: int = 0

    @property
    def backend(self) -> str:
        """The name of its backend in HAProxy."""
        return f"b{self.id}"

    @property
    def frontend(self) -> str:
        """The name of its frontend in HAProxy."""
        return f"f{self.id}"

    @property
    def scheme(self) -> str:
        """Of its address."""
        return "https" if self.certificate else "http"


def entry(number: int, name: str, port: int, spec: Mapping[str, Any], certificate: str = "", stamp: int = 0) -> Entry:
    """The entry of a service, from its resolved spec with the secrets put in."""
    service = spec.get("service") or {}
    balancer = service.get("load_balancer") or {}
    token = balancer.get("bearer_token") or ""
    return Entry(
        id=number,
        name=name,
        port=port,
        policy=service.get("load_balancing_policy") or "least_load",
        hash_on=balancer.get("hash_on") or "source",
        stream_timeout=float(balancer.get("stream_timeout_seconds") or 120.0),
        max_body=int(float(balancer.get("max_body_mb") or 0) * 1_000_000),
        client_rate=int(balancer.get("requests_per_second_per_client") or 0),
        token=hashlib.sha256(token.encode()).hexdigest().upper() if token else "",
        concurrency=int(balancer.get("max_concurrency") or 0),
        queue_timeout=float(balancer.get("queue_timeout_seconds") or 30.0),
        hold=hold_of(service),
        certificate=certificate,
        stamp=stamp,
    )


def hold_of(service: Mapping[str, Any]) -> float:
    """Seconds that a request waits while no replica is ready, of the spec's section `service`; 0: not at all."""
    held = (service.get("load_balancer") or {}).get("hold_seconds")
    if held is None:
        return 60.0 if _least(service) == 0 else 0.0
    return float(held)


def _least(service: Mapping[str, Any]) -> int:
    policy = service.get("replica_policy")
    return int(policy["min_replicas"]) if policy else 1


@dataclass(frozen=True, slots=True)
class Wanted:
    """All that the gateway is to serve: entries, the members of each by its id, and why one has none."""

    entries: tuple[Entry, ...] = ()
    members: Mapping[int, tuple[Member, ...]] = field(default_factory=dict)
    reasons: Mapping[int, str] = field(default_factory=dict)
