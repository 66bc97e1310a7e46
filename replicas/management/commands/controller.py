"""`manage.py controller`: runs the controller's loop; `manage.py up` starts it."""

from typing import Any

from django.core.management.base import BaseCommand

from replicas.controller.loop import Loop, stopping_on_signals


class Command(BaseCommand):
    """Keep all services as they are wanted, until told to stop."""

    help = "Run the controller (a part of `up`; a second one waits for the first to end)."

    def handle(self, *args: Any, **options: Any) -> None:
        """Run until SIGTERM or SIGINT."""
        loop = Loop()
        with stopping_on_signals(loop):
            loop.run()
