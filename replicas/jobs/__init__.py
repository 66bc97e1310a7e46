"""What django-q2's workers do: launches, downs and probes. A job gets one number, claims, works, settles."""
