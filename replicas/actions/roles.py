"""The roles viewer, operator and admin: Django groups, and how a person is given one.

The groups are made by a migration; what an installation changes in them afterwards stays.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib.auth.models import Group, Permission

from replicas.actions import audit, origin
from replicas.actions.transition import writing
from replicas.core.values import Role

LOOK = ("view_service",)
ACT = (*LOOK, "operate_service", "deploy_service")
# People are managed by admins; services' rows are history, which nobody edits.
MANAGE = ("add_user", "change_user", "delete_user", "view_user")
PERMISSIONS: dict[Role, tuple[str, ...]] = {
    Role.VIEWER: LOOK,
    Role.OPERATOR: ACT,
    Role.ADMIN: (*ACT, "act_on_any_service", "administer", "view_apitoken", *MANAGE),
}


def role_of(user: Any) -> Role | None:
    """The highest role that the user has; None for none. A superuser has every permission and needs no role."""
    names = set(user.groups.values_list("name", flat=True))
    return next((role for role in reversed(Role) if role in names), None)


def give(user: Any, role: Role | None, *, actor: str = "") -> None:
    """Let the user have this role and no other; None takes all away. An admin may open the administration.

    `actor`: who gives it; without one, whose request this is.
    """
    with writing():
        before = role_of(user)
        user.groups.remove(*Group.objects.filter(name__in=list(Role)))
        if role is not None:
            user.groups.add(group(role))
        if user.is_staff != (role is Role.ADMIN) and not user.is_superuser:
            user.is_staff = role is Role.ADMIN
            user.save(update_fields=["is_staff"])
        if before != role:
            note(user, "role", f"role {role or 'taken away'}", old=before or "", new=role or "", actor=actor)


def permissions(holder: Any) -> set[str]:
    """What a group gives, or what a user has beside their role: names such as replicas.operate_service."""
    rows = (holder.permissions if isinstance(holder, Group) else holder.user_permissions).select_related("content_type")
    return {f"{row.content_type.app_label}.{row.codename}" for row in rows}


@contextmanager
def noting(holder: Any) -> Iterator[None]:
    """Write what the block changes of the permissions of a group or of a user."""
    before = permissions(holder)
    with writing():
        yield
        after = permissions(holder)
        parts = (("given", after - before), ("taken away", before - after))
        reason = "; ".join(f"{word}: {', '.join(sorted(names))}" for word, names in parts if names)
        if reason:
            (note_group if isinstance(holder, Group) else note)(holder, "permissions", reason)


def note_group(found: Group, trigger: str, reason: str) -> None:
    """Write that what a role gives changed."""
    audit.note(audit.ROLE, found.pk, trigger, {"name": found.name}, reason=reason, actor=_asking())


def note_made(user: Any, how: str, *, actor: str = "") -> None:
    """Write that there is a new user."""
    note(user, "made", f"made {how}", actor=actor)


def note_password(user: Any, how: str, *, actor: str = "") -> None:
    """Write that a user has another password, or none any more."""
    word = "changed" if user.has_usable_password() else "taken away"
    note(user, "password", f"password {word} {how}", actor=actor)


def note(user: Any, trigger: str, reason: str, *, old: str = "", new: str = "", actor: str = "") -> None:
    """Write that something of a user's rights changed."""
    data = {"name": user.get_username(), "active": user.is_active, "superuser": user.is_superuser}
    audit.note(audit.PERSON, user.pk, trigger, data, reason=reason, actor=actor or _asking(), old=old, new=new)


def _asking() -> str:
    """Whose request this is; "" where it is none."""
    asked = origin.current().user
    return asked.get_username() if asked is not None else ""


def group(role: Role) -> Group:
    """The group of a role, made anew if somebody deleted it."""
    found, made = Group.objects.get_or_create(name=role.value)
    if made:
        found.permissions.set(Permission.objects.filter(codename__in=PERMISSIONS[role]))
    return found
