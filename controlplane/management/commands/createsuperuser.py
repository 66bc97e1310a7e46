"""`createsuperuser`: Django's command; that there is a new user is an event."""

from typing import Any

from django.contrib.auth.management.commands import createsuperuser
from django.contrib.auth.models import User

from replicas.actions import origin, roles
from replicas.management.verb import actor


class Command(createsuperuser.Command):
    """As Django has it."""

    def handle(self, *args: Any, **options: Any) -> str | None:
        """Make the user, and say so in the events."""
        before = set(User.objects.values_list("pk", flat=True))
        said: str | None = super().handle(*args, **options)
        with origin.acting(origin.Origin(origin.COMMAND)):
            for user in User.objects.filter(is_superuser=True).exclude(pk__in=before):
                roles.note_made(user, "as a superuser", actor=actor())
        return said
