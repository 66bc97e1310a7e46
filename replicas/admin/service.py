"""Services in Django admin: another writer of wishes, through the same doors as everybody."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import flatten_fieldsets
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import Truncator

from replicas.actions import rollouts, services
from replicas.admin.looking import ANY, DEPLOY, OPERATE, SEE, Looking, badge, block, confirmed, refusal
from replicas.admin.service_form import ServiceForm
from replicas.core.wording import sentence, some
from replicas.models import Service

REASON_MOST = 70  # characters of a reason in the list
FACTS = (
    "shown_status",
    "reason",
    "readiness",
    "shown_version",
    "endpoint",
    "endpoint_reason",
    "owner",
    "times",
    "links",
)


@admin.register(Service)
class ServiceAdmin(Looking):
    """The desired number and state are the operators', the YAML is the deployers'; what is true is nobody's to edit."""

    form = ServiceForm
    # As many columns as stand beside the filters on a laptop; the rest is on the service's own page.
    list_display = ("name", "shown_status", "readiness", "shown_version", "why", "endpoint", "owner")
    list_filter = ("status", "desired", "owner", "updated_at")
    list_select_related = ("version", "owner")
    search_fields = ("name", "reason", "owner__username")
    date_hierarchy = "created_at"
    ordering = ("name",)
    actions = ("take_down", "take_down_and_forget", "restart", "pause", "resume", "promote", "abort", "rollback")
    readonly_fields = (*FACTS, "shown_desired", "shown_target", "shown_text")

    # Who may do what

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Who may deploy."""
        return request.user.has_perm(SEE) and request.user.has_perm(DEPLOY)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Who may operate or deploy (the service `obj`); which fields that gives is decided in get_fieldsets."""
        service = obj if isinstance(obj, Service) else None
        return not all(refusal(request.user, need, service) for need in (OPERATE, DEPLOY))

    def get_readonly_fields(self, request: HttpRequest, obj: Service | None = None) -> Any:
        """The owner is changed by whoever may act on any service."""
        gives = obj is not None and not refusal(request.user, ANY)
        return [name for name in self.readonly_fields if not (gives and name == "owner")]

    # What is shown

    def get_fieldsets(self, request: HttpRequest, obj: Service | None = None) -> Any:
        """Fields for what the user may wish, the rest as text."""
        if obj is None:
            return [(None, {"fields": ("name", "text", "message")})]
        operate, deploy = (not refusal(request.user, need, obj) for need in (OPERATE, DEPLOY))
        wishes = ("desired", "target") if operate else ("shown_desired", "shown_target")
        text = ("text", "message", "expected") if deploy else ("shown_text", "expected") if operate else ("shown_text",)
        gives = "owner" not in self.get_readonly_fields(request, obj)
        facts = tuple(name for name in FACTS if not (gives and name == "owner"))
        wanted = (*wishes, *(["owner"] if gives else []), *text)
        return [("What is wanted", {"fields": wanted}), ("What is true", {"fields": facts})]

    def get_form(self, request: HttpRequest, obj: Service | None = None, change: bool = False, **kwargs: Any) -> Any:
        """The form without the fields that the user may not wish for."""
        shown = flatten_fieldsets(self.get_fieldsets(request, obj))
        attributes: dict[str, Any] = {name: None for name in ServiceForm.declared_fields if name not in shown}
        attributes["may_deploy"] = not refusal(request.user, DEPLOY, obj)
        if "owner" in self.get_readonly_fields(request, obj):
            attributes["owner"] = None
        kwargs["form"] = type("ServiceForm", (ServiceForm,), attributes)
        return super().get_form(request, obj, change, **kwargs)

    @admin.display(description="status", ordering="status")
    def shown_status(self, service: Service) -> str:
        """What is true of it."""
        return badge(service.status)

    @admin.display(description="ready", ordering="ready")
    def readiness(self, service: Service) -> str:
        """As the controller last saw it."""
        return f"{service.ready} / {service.target}"

    @admin.display(description="reason", ordering="reason")
    def why(self, service: Service) -> SafeString:
        """The beginning of the reason; all of it where one points."""
        return format_html('<span title="{}">{}</span>', service.reason, Truncator(service.reason).chars(REASON_MOST))

    @admin.display(description="version")
    def shown_version(self, service: Service) -> SafeString | str:
        """The active version."""
        if service.version is None:
            return "-"
        address = reverse("admin:replicas_serviceversion_change", args=[service.version.pk])
        return format_html('<a href="{}">{}</a>', address, service.version.number)

    @admin.display(description="desired")
    def shown_desired(self, service: Service) -> str:
        """For those who may not change it."""
        return badge(service.desired)

    @admin.display(description="desired number")
    def shown_target(self, service: Service) -> int:
        """For those who may not change it."""
        return service.target

    @admin.display(description="YAML")
    def shown_text(self, service: Service) -> str:
        """For those who may not change it."""
        return block(service.version.text if service.version else "")

    @admin.display(description="created, changed")
    def times(self, service: Service) -> str:
        """When it was made, and when last wished for."""
        return f"{service.created_at:%Y-%m-%d %H:%M:%S}, {service.updated_at:%Y-%m-%d %H:%M:%S} UTC"

    @admin.display(description="see")
    def links(self, service: Service) -> SafeString:
        """Its rows."""
        kinds = (
            ("replica", "replicas"),
            ("serviceversion", "versions"),
            ("rollout", "rollouts"),
            ("operation", "operations"),
            ("event", "events"),
        )
        found = [(reverse(f"admin:replicas_{kind}_changelist"), service.pk, name) for kind, name in kinds]
        return format_html_join(" · ", '<a href="{}?service__id__exact={}">{}</a>', found)

    # What is done

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Without ModelAdmin's transaction around it: an action has its own, and files are copied outside of any.

        What somebody else changed between the check and the deed is found by checking once more.
        """
        try:
            return self._changeform_view(request, object_id, form_url, extra_context)
        except services.Conflict:
            return self._changeform_view(request, object_id, form_url, extra_context)

    def save_model(self, request: HttpRequest, obj: Service, form: ServiceForm, change: bool) -> None:
        """Carry out what was wished; the row itself is never saved from here."""
        actor = request.user.get_username()
        if form.proposal is not None:
            self._carry_out(request, obj, form)
        elif change and "desired" in form.changed_data:
            services.take_down(obj.pk, purge=False, actor=actor)
            messages.info(request, f"{obj.name} is going down.")
        if change and "owner" in form.changed_data:
            owner = form.cleaned_data["owner"]
            services.give(obj.pk, owner, actor=actor)
            messages.info(request, f"{obj.name} belongs to {owner} now." if owner else f"{obj.name} is nobody's now.")
        if change and "target" in form.changed_data:
            self._scale(request, obj, form.cleaned_data["target"])

    def _carry_out(self, request: HttpRequest, obj: Service, form: ServiceForm) -> None:
        from replicas.web import intake

        proposal = form.proposal
        expected = form.cleaned_data.get("expected") if obj.pk else 0
        owner: Any = request.user if not obj.pk else None
        applied = intake.carry_out(proposal, actor=request.user.get_username(), owner=owner, expected=expected)
        for field in Service._meta.concrete_fields:  # what the log of admin and the answer speak of
            setattr(obj, field.attname, getattr(applied.service, field.attname))
        messages.info(request, f"Version {applied.version.number} of {applied.service.name} is active.")
        for line in (*proposal.changes, *proposal.plan):
            messages.info(request, line)

    def _scale(self, request: HttpRequest, obj: Service, target: int) -> None:
        from replicas.web import intake

        service = Service.objects.select_related("version").get(pk=obj.pk)
        try:
            intake.scale(service, target, actor=request.user.get_username())
        except intake.IntakeError as refusal:
            messages.error(request, str(refusal))
        else:
            messages.info(request, f"{obj.name} is to have {some(target)}.")

    @confirmed("Take these services down? They come up again when they are applied again.", "Take down")
    def take_down(self, request: HttpRequest, queryset: QuerySet[Service]) -> None:
        """Want nothing of the services running."""
        self._take_down(request, queryset, purge=False)

    @confirmed("Take these services down, and forget them with their whole history?", "Take down and forget")
    def take_down_and_forget(self, request: HttpRequest, queryset: QuerySet[Service]) -> None:
        """Want nothing of the services running, and delete them then."""
        self._take_down(request, queryset, purge=True)

    def _take_down(self, request: HttpRequest, queryset: QuerySet[Service], *, purge: bool) -> None:
        done: list[str] = []
        refused: list[str] = []
        for service in self.theirs(request, queryset.select_related("owner").order_by("name"), refused):
            services.take_down(service.pk, purge=purge, actor=request.user.get_username())
            done.append(service.name)
        self.say(request, done, refused, "going down, then forgotten" if purge else "going down")

    @confirmed("Restart these services? Every replica is replaced.", "Restart")
    def restart(self, request: HttpRequest, queryset: QuerySet[Service]) -> None:
        """Replace every replica."""
        done: list[str] = []
        refused: list[str] = []
        for service in self.theirs(request, queryset.select_related("owner").order_by("name"), refused):
            if services.restart(service.pk, actor=request.user.get_username()) is None:
                refused.append(f"{service.name} is taken down: bring it up first.")
            else:
                done.append(service.name)
        self.say(request, done, refused, "every replica is replaced")

    @admin.action(description="Pause the rollout", permissions=["operate"])
    def pause(self, request: HttpRequest, queryset: QuerySet[Service]) -> None:
        """Let the rollouts that go on move nothing for now."""
        self._steer(request, queryset, rollouts.pause, "the rollout is paused")

    @admin.action(description="Resume the rollout", permissions=["operate"])
    def resume(self, request: HttpRequest, queryset: QuerySet[Service]) -> None:
        """Let paused rollouts go on."""
        self._steer(request, queryset, rollouts.resume, "the rollout goes on")

    @confirmed("Promote the rollouts of these services?", "Promote the rollout")
    def promote(self, request: HttpRequest, queryset: QuerySet[Service]) -> None:
        """Let canaries become everybody."""
        self._steer(request, queryset, rollouts.promote, "the rollout is promoted")

    @confirmed("Abort the rollouts of these services, and go back?", "Abort the rollout")
    def abort(self, request: HttpRequest, queryset: QuerySet[Service]) -> None:
        """Give the rollouts up, and go back to the last version that proved itself."""
        self._steer(request, queryset, rollouts.abort, "going back")

    @confirmed("Roll these services back to the last other version that proved itself?", "Roll back")
    def rollback(self, request: HttpRequest, queryset: QuerySet[Service]) -> None:
        """Make the last other good version active again; that is to deploy."""
        if not self.has_add_permission(request):
            messages.error(request, "To roll back is to deploy, which your account may not.")
            return
        self._steer(request, queryset, rollouts.rollback, "going back")

    def _steer(self, request: HttpRequest, queryset: QuerySet[Service], act: Any, verb: str) -> None:
        done: list[str] = []
        refused: list[str] = []
        for service in self.theirs(request, queryset.select_related("owner").order_by("name"), refused):
            try:
                act(service.pk, actor=request.user.get_username())
                done.append(service.name)
            except rollouts.Refused as refusal:
                refused.append(sentence(refusal))
        self.say(request, done, refused, verb)
