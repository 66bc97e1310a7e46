"""The roles viewer, operator and admin: Django groups, and how a person is given one.

The groups are made by a migration; what an installation changes in them afterwards stays.
"""

from typing import Any

from django.contrib.auth.models import Group, Permission

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


def give(user: Any, role: Role | None) -> None:
    """Let the user have this role and no other; None takes all away. An admin may open the administration."""
    user.groups.remove(*Group.objects.filter(name__in=list(Role)))
    if role is not None:
        user.groups.add(group(role))
    if user.is_staff != (role is Role.ADMIN) and not user.is_superuser:
        user.is_staff = role is Role.ADMIN
        user.save(update_fields=["is_staff"])


def group(role: Role) -> Group:
    """The group of a role, made anew if somebody deleted it."""
    found, made = Group.objects.get_or_create(name=role.value)
    if made:
        found.permissions.set(Permission.objects.filter(codename__in=PERMISSIONS[role]))
    return found
