"""Django admin: looks at every row, and wishes through the same doors as browser and commands.

Every process imports this, so what is heavy (the spec's models) is imported where it is used.
"""

from replicas.admin import rows, service

__all__ = ["rows", "service"]
