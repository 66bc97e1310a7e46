"""How long the controller rests between two ticks."""

REST = 2.0  # times a tick's CPU time: in a burst the controller takes a third of a core
LONGEST_REST = 1.0  # seconds; the lease is not kept while it rests


def rest_after(spent: float) -> float:
    """Seconds of rest after a tick that took so many seconds of a processor."""
    return min(LONGEST_REST, REST * spent)
