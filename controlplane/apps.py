"""The Django app `controlplane`: the commands that run everything, and ties between a pool's processes."""

import os

from django.apps import AppConfig


class ControlPlaneConfig(AppConfig):
    """Wires the parts together; nobody imports it."""

    name = "controlplane"

    def ready(self) -> None:
        """In a pool, make sure that its forks never outlive it."""
        if os.environ.get("ROLLCALL_PROCESS") == "pool":
            from controlplane.ties import tie_forks

            tie_forks()
