"""The job that reads an operator's own signal once."""

from replicas.actions import readings
from replicas.models import Service
from replicas.providers.signal import Unread, read_number

ACTOR = "autoscaler"


def run(service_id: int) -> None:
    """Read the signal of the service's active version, where it has one by now."""
    service = Service.objects.select_related("version").filter(pk=service_id).first()
    spec = service.version.spec if service and service.version else {}
    custom = ((spec.get("service") or {}).get("replica_policy") or {}).get("custom_signal")
    if not custom:
        return
    value, error = None, ""
    try:
        value = read_number(custom, spec.get("envs") or {})
    except Unread as fault:
        error = str(fault)
    readings.note(service_id, value, error, actor=ACTOR)
