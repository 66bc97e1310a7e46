"""The addresses of services: who has which port, and whether it is served."""

from collections.abc import Collection
from typing import Any
from urllib.parse import urlsplit

from replicas import clock
from replicas.actions.transition import change, locked, writing
from replicas.config import Config
from replicas.core.values import Desired
from replicas.models import Service
from replicas.supervision import noted


def asked_port(spec: Any) -> int | None:
    """`service.endpoint_port` of a resolved spec."""
    found: int | None = (spec.get("service") or {}).get("endpoint_port")
    return found


def holder(port: int, name: str) -> str | None:
    """The service other than `name` that has the port and keeps it, None if there is none. Nothing is written."""
    found = Service.objects.select_related("version").filter(endpoint_port=port).exclude(name=name).first()
    return found.name if found is not None and _keeps(found, port) else None


def refusal(port: int, other: str) -> str:
    """Why nobody else can have the port of `other`, in the words of complaints: the field comes first."""
    return f"service.endpoint_port {port} is the port of service {other}: choose another, or take {other} down"


def own_use(port: int, config: Config) -> str:
    """Why no service can have the port, as the control plane itself has it; "" where it has not."""
    whose = ""
    if port == config.gateway_port and config.gateway:
        whose = "the gateway's, for all services (ROLLCALL_GATEWAY_PORT)"
    elif config.replica_port_first <= port <= config.replica_port_last:
        whose = "one of those that replicas get (ROLLCALL_REPLICA_PORT_FIRST to _LAST)"
    elif port == _dashboard(config):
        whose = "the dashboard's own"
    return f"service.endpoint_port {port} is {whose}: choose another" if whose else ""


def _dashboard(config: Config) -> int | None:
    """The port of the control plane that was noted last, whether it runs now or is to come back; None for none."""
    told = noted(config.run)
    try:
        return urlsplit(told[2]).port if told else None
    except ValueError:  # a note that somebody has damaged
        return None


def _keeps(service: Service, port: int) -> bool:
    asks = service.version is not None and asked_port(service.version.spec) == port
    return asks or service.desired == Desired.UP


def make_room(port: int, name: str, *, actor: str) -> str | None:
    """See that the service `name` can have the port; the name of the service that has it and keeps it, None if all is
    well.

    One that is down gives up a port that it was given; a port that it asks for itself stays its own.
    """
    with writing():
        found = Service.objects.filter(endpoint_port=port).exclude(name=name).first()
        service = locked(Service, found.pk) if found else None
        if service is None or service.endpoint_port != port:
            return None
        if _keeps(service, port):
            return service.name
        change(
            service,
            "endpoint_given_up",
            reason=f"port {port} goes to service {name}",
            actor=actor,
            old=service.status,
            new=service.status,
            endpoint_port=None,
        )
        return None


def taken_ports() -> set[int]:
    """The ports of all services."""
    ports = Service.objects.exclude(endpoint_port=None).values_list("endpoint_port", flat=True)
    return {port for port in ports if port is not None}


def give(service_id: int, port: int, *, among: Collection[int | None] = (None,), actor: str) -> bool:
    """Give the service a port while it still has one of `among`. False: it has another by now, or it is taken."""
    with writing():
        service = locked(Service, service_id)
        if service is None or service.endpoint_port not in among:
            return False
        if Service.objects.filter(endpoint_port=port).exists():
            return False
        return change(
            service,
            "endpoint_given",
            reason=f"port {port} is its own",
            actor=actor,
            old=service.status,
            new=service.status,
            endpoint_port=port,
            updated_at=clock.now(),
        )


def tell(service_id: int, endpoint: str, reason: str, *, actor: str) -> bool:
    """Keep the address at which the service is served, or why there is none; nothing is written when it is known."""
    with writing():
        service = locked(Service, service_id)
        if service is None or (service.endpoint, service.endpoint_reason) == (endpoint, reason):
            return False
        return change(
            service,
            "endpoint",
            reason=f"served at {endpoint}" if endpoint else f"no endpoint: {reason}" if reason else "no endpoint",
            actor=actor,
            old=service.status,
            new=service.status,
            endpoint=endpoint,
            endpoint_reason=reason,
        )
