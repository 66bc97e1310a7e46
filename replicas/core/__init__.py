"""The pure part: values and decisions, without Django, clock, IO or randomness."""
