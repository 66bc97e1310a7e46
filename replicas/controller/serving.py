"""Reads rows into what the gateway needs: services with their address, replicas with their place in traffic."""

import os
import ssl
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.db.models import Max

from replicas import clock
from replicas.actions.endpoints import asked_port
from replicas.actions.sealing import Unsealable, unseal
from replicas.core.autoscaler.signals import rate_of
from replicas.core.rollout import listed
from replicas.core.values import Desired, ReplicaState
from replicas.core.views import RolloutView
from replicas.gateway.dataplane import put
from replicas.gateway.places import Places
from replicas.gateway.values import MOST_WEIGHT, WEIGHT, Entry, Member, entry, member
from replicas.models import Replica, Rollout, Service, ServiceVersion
from replicas.models.fields import ALIVE
from replicas.providers.notes import read_bytes

S = ReplicaState
SEATED = (S.READY, S.NOT_READY, S.DRAINING)
RENEWAL_SECONDS = 60.0  # that a renewal may take from writing one of certificate and key to the other


@dataclass(frozen=True, slots=True)
class Row:
    """What the gateway needs of a service.

    `asked`: the port of its spec. `up`: it is wanted, and shows its address. `addressed`: it has an entry; one that is
    taken down keeps it until its replicas have left, as what is in flight on them is counted there. `fault`: why its
    spec cannot be served.
    """

    id: int
    name: str
    version_uid: str
    port: int | None
    asked: int | None
    up: bool
    addressed: bool
    scheme: str
    endpoint: str
    endpoint_reason: str
    reason: str
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Seat:
    """A replica that has, or had until now, a place in traffic. `member`: None where nobody can speak HTTP with it."""

    replica_id: int
    service_id: int
    state: ReplicaState
    listed: bool
    member: Member | None

    @property
    def name(self) -> str:
        """Its name in the gateway, "" for none."""
        return self.member.name if self.member else ""


@dataclass(frozen=True, slots=True)
class Told:
    """What a version's spec says to the gateway, with its secrets put in. It never changes."""

    spec: Mapping[str, Any]
    asked: int | None
    addressed: bool
    tls: tuple[str, str] | None
    weights: Mapping[str, float]
    fault: str


def rows() -> Sequence[Row]:
    """The services that are wanted, and those that are not but still show an address or have replicas that leave."""
    found = []
    out = Replica.objects.filter(ALIVE, service__desired=Desired.DOWN, state__in=SEATED)
    leaving = set(out.values_list("service", flat=True))
    columns = ("id", "name", "desired", "version__uid", "endpoint_port", "endpoint", "endpoint_reason", "reason")
    for row in Service.objects.exclude(version=None).order_by("id").values(*columns):
        up, leaves = row["desired"] == Desired.UP, row["id"] in leaving
        if not (up or leaves or row["endpoint"] or row["endpoint_reason"]):
            continue
        told = told_by(row["version__uid"])
        found.append(
            Row(
                id=row["id"],
                name=row["name"],
                version_uid=row["version__uid"],
                port=row["endpoint_port"],
                asked=told.asked,
                up=up,
                addressed=told.addressed and (up or leaves),
                scheme="https" if told.tls else "http",
                endpoint=row["endpoint"],
                endpoint_reason=row["endpoint_reason"],
                reason=row["reason"],
                fault=told.fault,
            )
        )
    return found


@lru_cache(maxsize=1024)
def told_by(version_uid: str) -> Told:
    """What the version with this uid says."""
    version = ServiceVersion.objects.only("spec", "sealed", "base").get(uid=version_uid)
    service, fault = version.spec.get("service") or {}, ""
    try:
        secrets = unseal(version.sealed)
    except Unsealable as error:
        secrets, fault = {}, str(error)
    spec = version.spec
    if secrets:
        from replicas.core.spec import expand  # the parser is large, and most services have no secrets

        spec = expand({"service": service}, secrets)
    tls = service.get("tls")
    policy = service.get("replica_policy") or {}
    rates = policy.get("target_qps_per_replica")
    return Told(
        spec=spec,
        asked=asked_port(version.spec),
        addressed=not (version.spec.get("pool") or service.get("pool") or service.get("workers")),
        tls=(_path(version.base, tls["keyfile"]), _path(version.base, tls["certfile"])) if tls else None,
        weights=rates if isinstance(rates, dict) else {},
        fault=fault,
    )


def _path(base: str, path: str) -> str:
    return str(Path(base or "/") / Path(path).expanduser())


def entry_of(row: Row, places: Places) -> Entry | None:
    """The entry of a service that can be served; None for one without a port or with a fault."""
    told = told_by(row.version_uid)
    if not row.addressed or row.port is None or row.fault or row.asked not in (None, row.port):
        return None
    certificate, stamp = _certificate(row, told.tls, places) if told.tls else ("", 0)
    made = entry(row.id, row.name, row.port, told.spec, certificate, stamp)
    return made if row.up else replace(made, hold=0.0)


def _certificate(row: Row, tls: tuple[str, str], places: Places) -> tuple[str, int]:
    """Key and certificate in one file, as HAProxy wants them, made anew when they say something else; and its time.

    What they say counts, not their age: another version may name older files. In the middle of a renewal the earlier
    pair stays. A file that cannot be read is left to HAProxy's own check, which names it; what is no file (a device, a
    pipe) never comes to it, as it might read that for ever.
    """
    key, certificate = tls
    path = places.directory / f"{row.id}.pem"
    try:
        found = [_pem(each) for each in (certificate, key)]
        text = "\n".join(found)
        if not path.exists() or (path.read_text() != text and not _half_renewed(key, certificate)):
            put(path, text)
        return str(path), path.stat().st_mtime_ns
    except NoFile as error:
        return f"{error} (which is no file)", 0
    except (OSError, UnicodeDecodeError):
        return certificate, 0


class NoFile(Exception):
    """There is something at a path that is not a regular file; the text is the path."""


def _pem(path: str) -> str:
    content = read_bytes(Path(path))
    if content is None and os.path.exists(path):
        raise NoFile(path)
    if content is None:
        raise FileNotFoundError(path)
    return content.decode()


def _half_renewed(key: str, certificate: str) -> bool:
    """Whether the two do not fit each other and one was written just now, so that the other can be expected."""
    age = clock.now().timestamp() - max(os.stat(key).st_mtime, os.stat(certificate).st_mtime)
    if not 0 <= age < RENEWAL_SECONDS:
        return False
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except ssl.SSLError:
        return True
    return False


def seats(service_ids: Sequence[int]) -> list[Seat]:
    """The replicas of these services that are in traffic, or were until they began to leave."""
    columns = (
        "id",
        "service_id",
        "number",
        "state",
        "url",
        "version_number",
        "version__process_digest",
        "accelerators",
    )
    rows = Replica.objects.filter(ALIVE, service__in=service_ids, state__in=SEATED).exclude(url="")
    found = list(rows.order_by().values(*columns))
    if not found:
        return []
    active = list(
        Service.objects.filter(pk__in=service_ids).values_list("pk", "version__process_digest", "version__uid")
    )
    digests = {number: digest for number, digest, _ in active}
    versions = {number: uid for number, _, uid in active}
    compatible: dict[int, set[int]] = defaultdict(set)
    for row in found:
        if row["version__process_digest"] == digests.get(row["service_id"]):
            compatible[row["service_id"]].add(row["version_number"])
    moves = latest_moves(service_ids)
    result = []
    for row in found:
        weight = weight_of(row["accelerators"], versions.get(row["service_id"], ""))
        place = member(row["number"], row["url"], weight)
        service, state = row["service_id"], S(row["state"])
        shown = (
            place is not None
            and state is S.READY
            and listed(moves.get(service), row["version_number"], compatible[service])
        )
        result.append(Seat(row["id"], service, state, shown, place))
    return result


def weight_of(accelerators: str, version_uid: str) -> int:
    """The weight of a replica by what it got (such as A100:8), from the active version's target_qps_per_replica for
    each. The fastest has MOST_WEIGHT.
    """
    rates = told_by(version_uid).weights if version_uid else {}
    if not rates:
        return WEIGHT
    own = rate_of(rates, accelerators)
    return max(1, round(MOST_WEIGHT * own / max(rates.values())))


def latest_moves(service_ids: Sequence[int]) -> dict[int, RolloutView]:
    """The latest rollout of each service, which tells who is listed."""
    newest = Rollout.objects.filter(service__in=service_ids).order_by().values("service").annotate(newest=Max("id"))
    return {row.service_id: row.view() for row in Rollout.objects.filter(pk__in=newest.values("newest"))}
