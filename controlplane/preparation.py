"""What must be true before the control plane starts: tables up to date, static files in place, somebody to log in."""

import os
import secrets

from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from controlplane import static


def migrate() -> int:
    """Apply what migrations are pending; how many that were. Raises CommandError if the database does not answer."""
    try:
        executor = MigrationExecutor(connection)
        pending = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except DatabaseError as error:
        raise CommandError(
            f"The database does not answer: {str(error).strip()}. Check DATABASE_URL and that its server runs."
        ) from None
    if not pending:
        return 0
    try:
        call_command("migrate", interactive=False, verbosity=0)
    except DatabaseError as error:
        raise CommandError(
            f"The database could not be brought up to date: {str(error).strip()}. Put the back-up in its place, "
            "or use the version of Rollcall that it belongs to; `manage.py showmigrations` shows how far it came."
        ) from error
    return len(pending)


def build_static() -> bool:
    """Put the static files in place; True if something was to do. Raises CommandError."""
    try:
        return static.build()
    except static.BuildError as error:
        raise CommandError(str(error)) from None


def first_admin() -> tuple[str, str | None] | None:
    """Make the first user when there is none: its name, and its password if we made it up. None if there is a user."""
    users = get_user_model()
    if users.objects.exists():
        return None
    name = os.environ.get("ROLLCALL_ADMIN_USER") or "admin"
    given = os.environ.get("ROLLCALL_ADMIN_PASSWORD")
    password = given or secrets.token_urlsafe(15)
    users.objects.create_superuser(username=name, email="", password=password)
    return name, None if given else password
