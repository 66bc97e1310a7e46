"""The Django app `replicas`."""

import os

from django.apps import AppConfig


class ReplicasConfig(AppConfig):
    """Services, versions, replicas and all that keeps them running."""

    name = "replicas"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """In a pool, have everything that jobs need in memory once, before its workers are forked from it."""
        if os.environ.get("ROLLCALL_PROCESS") == "pool":
            from replicas.jobs.forks import share_memory

            share_memory()
