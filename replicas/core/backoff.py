"""How long to wait before trying again, and when a wait is over."""

from datetime import datetime, timedelta

from replicas.core.views import RestartPolicy

CLOCK_STEP = timedelta(seconds=30)
LONGEST_WAIT = timedelta(seconds=300)  # of an operation between two steps, and of a lease


def delay(failures: int, policy: RestartPolicy) -> float:
    """Seconds between the end of a replica and its replacement, after `failures` failures in a row.

    The first replacement comes at once, then `backoff_seconds` doubles up to `max_backoff_seconds`, as kubelet does
    for a container that crashes again and again (Kubernetes, "Container restart policy").
    """
    if failures <= 1:
        return 0.0
    return retry_delay(failures - 1, policy.backoff_seconds, 2.0, policy.max_backoff_seconds)


def retry_delay(attempt: int, base: float, factor: float, maximum: float) -> float:
    """Seconds to wait after attempt number `attempt` (from 1) has failed: base, base x factor, ... up to `maximum`."""
    if attempt <= 1 or factor <= 1.0 or base <= 0.0:
        return max(0.0, min(base, maximum))
    if maximum <= base:
        return max(0.0, maximum)
    try:
        return min(base * factor ** (attempt - 1), maximum)
    except OverflowError:  # from next to nothing, by a huge factor
        return maximum


def waits_until(since: datetime, seconds: float, now: datetime) -> datetime | None:
    """When a wait of `seconds` that began at `since` ends; None when it is over.

    A beginning that lies more than CLOCK_STEP in the future was written before the clock was set back: nobody can say
    how long the wait has lasted, and an hour lost would look like a hang, so it counts as over.
    """
    if since > now + CLOCK_STEP:
        return None
    end = since + timedelta(seconds=seconds)
    return end if end > now else None


def set_back(moment: datetime, now: datetime) -> bool:
    """Whether the end of a wait lies further ahead than any wait may: then the clock was set back since it was written.

    The wait counts as over: nobody can say how long it has lasted.
    """
    return moment > now + LONGEST_WAIT + CLOCK_STEP
