"""`manage.py stop`: end the control plane of this home, from another terminal."""

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from controlplane import occupancy, processes
from controlplane.occupancy import Occupant
from replicas.core.values import ENDS, Desired, ServiceStatus
from replicas.models import Replica, Service

POLL_SECONDS = 0.05
READY_SECONDS = 90.0
LINES = 10


class Command(BaseCommand):
    """Ask the supervisor to stop, and wait until it has."""

    help = "Stop the control plane of this home. Replicas go on running unless --services is given."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        """How long to wait, and whether services go first."""
        parser.add_argument("--timeout", type=float, default=20.0, help="seconds to wait for the end (default: 20)")
        parser.add_argument(
            "--services",
            action="store_true",
            help="take all services down first; where no control plane runs, one is started for it",
        )

    def handle(self, *args: Any, timeout: float, services: bool, **options: Any) -> None:
        """Exit code 0: it has stopped, or none was running. 1: it did not stop in time, or a service did not go."""
        occupant = occupancy.occupant(settings.ROLLCALL.run)
        if not (services and anything_up()):
            self._stop(occupant, timeout)
            return
        occupant = occupant or self._start()
        try:
            call_command("down", all=True, wait=True)
        finally:
            self._stop(occupant, timeout)

    def _start(self) -> Occupant:
        """Start a control plane on any free port, for as long as it takes."""
        config = settings.ROLLCALL
        self.stdout.write("No control plane runs on this home: one is started to take the services down.")
        self.stdout.flush()
        command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "up", "--host=127.0.0.1", "--port=0"]
        said = config.logs / "stop-services.log"
        with open(said, "wb") as out:
            process = subprocess.Popen(
                [*command, "--no-admin"], stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            )
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            occupant = occupancy.occupant(config.run)
            if occupant is not None and occupant.pid == process.pid and is_ready(occupant):
                return occupant
            time.sleep(POLL_SECONDS)
        process.terminate()
        last = "\n".join(said.read_text(errors="replace").splitlines()[-LINES:])
        raise CommandError(f"It was not ready within {READY_SECONDS:g} s. The last lines of {said}:\n{last}")

    def _stop(self, occupant: Occupant | None, timeout: float) -> None:
        """Stop it, and wait until it is gone."""
        config = settings.ROLLCALL
        if occupant is None:
            self.stdout.write(f"No control plane runs on the home {config.home}.{going_on()}")
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
        self.stdout.write(f"The control plane (process {occupant.pid}) has stopped.{going_on()}")


def going_on() -> str:
    """A sentence on the replicas that go on running; empty if there are none."""
    left = len(processes.running_replicas(settings.ROLLCALL.home))
    if not left:
        return ""
    return f" {left} {'replica goes' if left == 1 else 'replicas go'} on running; `make down` takes them away."


def anything_up() -> bool:
    """Whether there is a service or a replica that is not down yet. A database without tables has none."""
    if Service._meta.db_table not in connection.introspection.table_names():
        return False
    wanted = Service.objects.exclude(desired=Desired.DOWN, status=ServiceStatus.DOWN)
    return wanted.exists() or Replica.objects.exclude(state__in=ENDS).exists()


def is_ready(occupant: Occupant) -> bool:
    """Whether every part of it is at work."""
    try:
        with urllib.request.urlopen(f"{occupant.url}/readyz", timeout=5):  # noqa: S310  (our own address)
            return True
    except OSError:
        return False
