"""`manage.py stop`: end the control plane of this home, from another terminal."""

import os
import signal
import time
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from controlplane import occupancy, processes

POLL_SECONDS = 0.05


class Command(BaseCommand):
    """Ask the supervisor to stop, and wait until it has."""

    help = "Stop the control plane of this home. Replicas go on running; the next `up` adopts them."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        """How long to wait."""
        parser.add_argument("--timeout", type=float, default=20.0, help="seconds to wait for the end (default: 20)")

    def handle(self, *args: Any, timeout: float, **options: Any) -> None:
        """Exit code 0: it has stopped, or none was running. 1: it did not stop in time."""
        config = settings.ROLLCALL
        occupant = occupancy.occupant(config.run)
        if occupant is None:
            self.stdout.write(f"No control plane runs on the home {config.home}.")
            return
        deadline = time.monotonic() + timeout
        os.kill(occupant.pid, signal.SIGTERM)
        while occupant.running:
            if time.monotonic() > deadline:
                raise CommandError(
                    f"The control plane (process {occupant.pid}) has not stopped after {timeout:g} s. "
                    f"End it by force: kill -9 {occupant.pid}"
                )
            time.sleep(POLL_SECONDS)
        left = len(processes.running_replicas(config.home))
        note = f" {left} {'replica goes' if left == 1 else 'replicas go'} on running." if left else ""
        self.stdout.write(f"The control plane (process {occupant.pid}) has stopped.{note}")
