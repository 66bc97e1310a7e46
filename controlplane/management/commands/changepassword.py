"""`changepassword`: Django's command; that a password changed is an event."""

import getpass
from typing import Any

from django.contrib.auth.management.commands import changepassword
from django.contrib.auth.models import User

from replicas.actions import origin, roles
from replicas.management.verb import actor


class Command(changepassword.Command):
    """As Django has it."""

    def handle(self, *args: Any, **options: Any) -> str:
        """Change it, and say so in the events."""
        said: str = super().handle(*args, **options)
        user = User.objects.get(username=options["username"] or getpass.getuser())
        with origin.acting(origin.Origin(origin.COMMAND)):
            roles.note_password(user, "with a command", actor=actor())
        return said
