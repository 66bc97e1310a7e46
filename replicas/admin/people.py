"""Users with their role, and the tokens that scripts have of them."""

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.forms import AdminPasswordChangeForm, AdminUserCreationForm, UserChangeForm
from django.contrib.auth.models import Group, User
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from replicas import clock
from replicas.actions import roles, tokens
from replicas.actions.powers import ADMINISTER
from replicas.actions.transition import writing
from replicas.admin.looking import Looking, Sifting, badge, confirmed
from replicas.core.values import Role
from replicas.models import ApiToken

ROLES = [("", "none: may see nothing"), *((role.value, role.value) for role in Role)]
ROLE_HELP = "A viewer sees. An operator also acts and deploys, but not on services of others. An admin does everything."
# What becomes of a user when such a right is given, or taken away.
RIGHTS = {
    "is_active": ("enabled", "disabled"),
    "is_superuser": ("made_superuser", "no_superuser"),
    "is_staff": ("made_staff", "no_staff"),
}
NAMES = ("username", "first_name", "last_name", "email")
IN_ADMIN = "in the administration"


class RoleField(forms.ChoiceField):
    """One of the roles, or none."""

    def __init__(self, **options: Any) -> None:
        super().__init__(choices=ROLES, required=False, help_text=ROLE_HELP, **options)


class PersonForm(UserChangeForm):  # type: ignore[type-arg]
    """A user, with their role in place of groups and single permissions."""

    role = RoleField()

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.initial["role"] = roles.role_of(self.instance) or ""


class NewPersonForm(AdminUserCreationForm):  # type: ignore[type-arg]
    """A new user, with their role."""

    role = RoleField(initial=Role.VIEWER.value)


class PasswordForm(AdminPasswordChangeForm):  # type: ignore[type-arg]
    """Another password for a user, or none; that it changed is an event."""

    def save(self, commit: bool = True) -> User:
        """See AdminPasswordChangeForm."""
        with writing():
            user = super().save(commit)
            roles.note_password(user, IN_ADMIN)
        return user


admin.site.unregister(User)
admin.site.unregister(Group)


class OneByOne:
    """Deleted one at a time: many at once would neither ask who is a superuser, nor be an event each."""

    def get_actions(self, request: HttpRequest) -> Any:
        """Without the deletion of many."""
        found = super().get_actions(request)  # type: ignore[misc]
        found.pop("delete_selected", None)
        return found


@admin.register(User)
class PersonAdmin(Sifting, OneByOne, UserAdmin):  # type: ignore[type-arg]
    """People. Only a superuser makes superusers, or changes one: a role gives nobody more than it has."""

    form = PersonForm
    add_form = NewPersonForm
    change_password_form = PasswordForm
    list_display = ("username", "role", "is_active", "is_staff", "last_login")
    list_filter = ("groups", "is_active", "is_staff", "is_superuser")
    fieldsets = (
        (None, {"fields": ("username", "password", "role", "is_active")}),
        ("Name", {"fields": ("first_name", "last_name", "email")}),
        ("History", {"fields": ("last_login", "date_joined")}),
    )
    add_fieldsets = (
        (None, {"classes": ("wide",), "fields": ("username", "usable_password", "password1", "password2", "role")}),
    )
    readonly_fields = ("last_login", "date_joined")

    def get_fieldsets(self, request: HttpRequest, obj: User | None = None) -> Any:
        """A superuser sees what roles are made of, too."""
        found = super().get_fieldsets(request, obj)
        if obj is None or not request.user.is_superuser:
            return found
        finer = {"classes": ("collapse",), "fields": ("is_staff", "is_superuser", "user_permissions")}
        return [*found, ("Beside the role", finer)]

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        """With their groups."""
        return super().get_queryset(request).prefetch_related("groups")

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Not of a superuser, unless one is one."""
        return super().has_change_permission(request, obj) and self._below(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Not of a superuser, unless one is one."""
        return super().has_delete_permission(request, obj) and self._below(request, obj)

    def _below(self, request: HttpRequest, obj: Model | None) -> bool:
        return bool(request.user.is_superuser) or not (isinstance(obj, User) and obj.is_superuser)

    @admin.display(description="role")
    def role(self, user: User) -> str:
        """What they are here."""
        names = {group.name for group in user.groups.all()}
        return "superuser" if user.is_superuser else next((role for role in reversed(Role) if role in names), "-")

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        """See ModelAdmin; what it changes of the user's rights is an event."""
        before = User.objects.filter(pk=obj.pk).first() if change else None
        with writing():
            super().save_model(request, obj, form, change)
            if before is None:
                roles.note_made(obj, IN_ADMIN)
                return
            for right, (on, off) in RIGHTS.items():
                old, new = getattr(before, right), getattr(obj, right)
                if old != new:
                    word = on if new else off
                    roles.note(obj, word, f"{word} {IN_ADMIN}")

    def delete_model(self, request: HttpRequest, obj: User) -> None:
        """See ModelAdmin."""
        with writing():
            roles.note(obj, "deleted", f"deleted {IN_ADMIN}")
            super().delete_model(request, obj)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """See ModelAdmin; the role comes last, since saving would take its group away again."""
        with roles.noting(form.instance):
            super().save_related(request, form, formsets, change)
        role = form.cleaned_data.get("role", "")
        if not change or "role" in form.changed_data:
            roles.give(form.instance, Role(role) if role else None)


@admin.register(Group)
class RoleAdmin(Sifting, OneByOne, GroupAdmin):
    """The groups that roles are, for superusers, who may change what a role gives."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        """See ModelAdmin."""
        return bool(request.user.is_superuser)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """See ModelAdmin; what changes of the permissions is an event."""
        with roles.noting(form.instance):
            super().save_related(request, form, formsets, change)

    def delete_model(self, request: HttpRequest, obj: Group) -> None:
        """See ModelAdmin."""
        with writing():
            roles.note_group(obj, "deleted", f"deleted {IN_ADMIN}")
            super().delete_model(request, obj)


@admin.register(ApiToken)
class TokenAdmin(Looking):
    """Everybody's tokens, to be looked at and revoked; each user makes their own."""

    list_display = ("__str__", "owner", "scope", "shown_state", "created_at", "expires_at", "last_used_at")
    list_filter = ("scope", "owner", "created_at")
    list_select_related = ("owner",)
    search_fields = ("name", "prefix", "owner__username")
    ordering = ("-id",)
    actions = ("revoke",)
    fields = (
        ("name", "prefix", "owner"),
        ("scope", "services", "shown_state"),
        ("created_at", "expires_at"),
        ("last_used_at", "last_used_from"),
        ("revoked_at", "revoked_by"),
    )
    readonly_fields = ("shown_state",)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Who administers."""
        return request.user.has_perm(ADMINISTER)

    has_module_permission = has_view_permission

    def has_operate_permission(self, request: HttpRequest) -> bool:
        """Who administers."""
        return request.user.has_perm(ADMINISTER)

    @admin.display(description="state")
    def shown_state(self, token: ApiToken) -> str:
        """Whether it still gives any right."""
        return badge(tokens.state(token, clock.now()))

    @confirmed("Revoke these tokens? What uses them is refused at once.", "Revoke")
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> None:
        """End them for good."""
        names = [str(token) for token in queryset.order_by("id")]
        for token in queryset:
            tokens.revoke(token.pk, actor=request.user.get_username())
        self.say(request, names, [], "revoked")
