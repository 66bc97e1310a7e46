"""How long the controller rests between two ticks."""

# Times a tick's CPU time: in a burst of short ticks the controller takes a third of a core at most.
REST = 2.0
LONGEST_REST = 1.0  # seconds, also after a long one: the lease is not kept while it rests


def rest_after(spent: float) -> float:
    """Seconds of rest after a tick that took so many seconds of a processor."""
    return min(LONGEST_REST, REST * spent)
