"""`role [USER [ROLE]]`: what people may do; gives a person a role, and makes the person if asked to."""

import secrets
from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.management.base import CommandParser

from replicas.actions import roles
from replicas.actions.transition import writing
from replicas.core.values import Role
from replicas.management.printing import clean, table
from replicas.management.verb import Exit, Verb, actor, fail, find_user

NONE = "none"
HEADS = ("USER", "ROLE", "MAY SIGN IN")


class Command(Verb):
    """Roles are groups; whoever has none of them may see nothing, unless they are a superuser."""

    help = (
        "Give a user of the dashboard a role: viewer sees, operator also scales, restarts, deploys and takes down (but"
        " not services of others), admin may do everything. Without ROLE, print who has which."
    )
    examples = "  manage.py role\n  manage.py role ann operator\n  manage.py role bob viewer --create\n"

    def add_arguments(self, parser: CommandParser) -> None:
        """USER and ROLE."""
        parser.add_argument("user", metavar="USER", nargs="?")
        parser.add_argument("role", metavar="ROLE", nargs="?", choices=(*(role.value for role in Role), NONE))
        parser.add_argument("--create", action="store_true", help="make the user; the password is printed once")

    def handle(self, *, user: str | None, role: str | None, create: bool, **_: Any) -> None:
        """List, or give."""
        if role is None:
            people = [find_user(user)] if user else list(User.objects.order_by("username"))
            self.say(table(HEADS, [self._cells(each) for each in people], self.paint, self.columns))
            return
        assert user is not None
        found = self._make(user) if create else find_user(user)
        roles.give(found, None if role == NONE else Role(role), actor=actor())
        self.say(f"{user} has the role {role}." if role != NONE else f"{user} has no role.")
        if found.is_superuser:
            self.warn(f"{user} is a superuser, who may do everything whatever the role.")

    def _cells(self, user: User) -> tuple[str, ...]:
        role = "superuser" if user.is_superuser else roles.role_of(user) or "-"
        return user.get_username(), role, "yes" if user.is_active else "no"

    def _make(self, name: str) -> User:
        if User.objects.filter(username=name).exists():
            fail(f"There is a user {name} already. Leave --create away to give them the role.", Exit.REFUSED)
        try:
            User._meta.get_field("username").run_validators(name)
        except ValidationError as error:
            fail(f"{clean(name)} is no name for a user: {' '.join(error.messages)}")
        password = secrets.token_urlsafe(15)
        with writing():
            made = User.objects.create_user(name, password=password)
            roles.note_made(made, "with a role", actor=actor())
        self.say(f"User {name} is made, with the password {password}")
        return made
