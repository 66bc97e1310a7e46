"""Versions, replicas, operations, events, leases and heartbeats: to be looked at, and acted on where it makes sense."""

import json
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from replicas.actions import operations, replicas, rollouts
from replicas.admin.looking import Looking, badge, block, confirmed
from replicas.core.values import ReplicaState
from replicas.core.wording import sentence
from replicas.models import Event, Heartbeat, Lease, Operation, Replica, Rollout, ServiceVersion
from replicas.models.public import shown_status, why


@admin.register(ServiceVersion)
class VersionAdmin(Looking):
    """Immutable; the values of secrets are not shown."""

    list_display = ("__str__", "service", "number", "message", "created_by", "created_at", "short_digest")
    list_filter = ("created_at", "created_by")
    list_select_related = ("service",)
    search_fields = ("service__name", "message", "created_by", "digest")
    date_hierarchy = "created_at"
    ordering = ("-created_at", "-id")
    fields = (
        ("service", "number"),
        ("created_by", "created_at"),
        "message",
        "shown_plan",
        "yaml",
        "base",
        "given",
        ("digest", "process_digest", "files_digest"),
        "resolved",
    )
    readonly_fields = ("shown_plan", "yaml", "given", "resolved")

    @admin.display(description="digest")
    def short_digest(self, version: ServiceVersion) -> str:
        """Enough of it to tell versions apart."""
        return version.digest[:12]

    @admin.display(description="plan")
    def shown_plan(self, version: ServiceVersion) -> str:
        """What applying it was to do."""
        return block("\n".join(map(str, version.plan)))

    @admin.display(description="YAML")
    def yaml(self, version: ServiceVersion) -> str:
        """The text as it was given."""
        return block(version.text)

    @admin.display(description="values given at apply")
    def given(self, version: ServiceVersion) -> str:
        """The values of environment variables that stand beside the text."""
        return block("\n".join(f"{name}={value}" for name, value in sorted(version.overrides.items())))

    @admin.display(description="spec, with all defaults")
    def resolved(self, version: ServiceVersion) -> str:
        """What the text means."""
        return block(json.dumps(version.spec, indent=2, ensure_ascii=False))


@admin.register(Rollout)
class RolloutAdmin(Looking):
    """The moves from one version to another; those that go on are steered, and all are history."""

    list_display = ("__str__", "kind", "mode", "shown_state", "best", "reason", "actor", "started_at", "ended_at")
    list_filter = ("state", "kind", "mode", "started_at")
    list_select_related = ("service",)
    search_fields = ("service__name", "reason", "actor")
    date_hierarchy = "started_at"
    ordering = ("-id",)
    actions = ("pause", "resume", "promote", "abort")
    fields = (
        ("service", "kind", "mode", "shown_state"),
        ("from_version", "to_version", "good_version"),
        "reason",
        ("best", "held", "actor"),
        ("started_at", "progressed_at", "ended_at"),
        ("paused_at", "promoted_at", "switched_at"),
    )
    readonly_fields = ("shown_state",)

    @admin.display(description="state", ordering="state")
    def shown_state(self, rollout: Rollout) -> str:
        """Where it is; a paused one says so."""
        return badge("PAUSED" if rollout.paused_at and not rollout.ended_at else rollout.state)

    @admin.action(description="Pause", permissions=["operate"])
    def pause(self, request: HttpRequest, queryset: QuerySet[Rollout]) -> None:
        """Let them move nothing for now."""
        steer(self, request, queryset, rollouts.pause, "paused")

    @admin.action(description="Resume", permissions=["operate"])
    def resume(self, request: HttpRequest, queryset: QuerySet[Rollout]) -> None:
        """Let paused ones go on."""
        steer(self, request, queryset, rollouts.resume, "goes on")

    @confirmed("Promote these rollouts? Canaries become everybody; kept old replicas go.", "Promote")
    def promote(self, request: HttpRequest, queryset: QuerySet[Rollout]) -> None:
        """Let canaries grow, and end the keeping after a switch."""
        steer(self, request, queryset, rollouts.promote, "promoted")

    @confirmed("Abort these rollouts? Their services go back to the last version that proved itself.", "Abort")
    def abort(self, request: HttpRequest, queryset: QuerySet[Rollout]) -> None:
        """Give them up and go back."""
        steer(self, request, queryset, rollouts.abort, "going back")


def steer(page: Looking, request: HttpRequest, queryset: QuerySet[Rollout], act: Any, verb: str) -> None:
    """Do `act` to each of the rollouts; one that is over by now is refused, and no other is meant in its place."""
    done: list[str] = []
    refused: list[str] = []
    for rollout in page.theirs(request, queryset.select_related("service__owner").order_by("id"), refused):
        try:
            act(rollout.service_id, actor=request.user.get_username(), expected=rollout.pk)
            done.append(str(rollout))
        except (rollouts.Refused, rollouts.Conflict) as refusal:
            refused.append(sentence(refusal))
    page.say(request, done, refused, verb)


@admin.register(Replica)
class ReplicaAdmin(Looking):
    """States are facts; the only wish is to terminate."""

    list_display = ("__str__", "shown_state", "shown_outcome", "version_number", "reason", "url", "pid", "created_at")
    list_filter = ("state", "outcome", "provider", "created_at")
    list_select_related = ("service",)
    search_fields = ("service__name", "=number", "uid", "reason", "url")
    date_hierarchy = "created_at"
    ordering = ("-id",)
    actions = ("terminate", "terminate_and_forget")
    fields = (
        ("service", "number", "version"),
        ("shown_state", "shown_outcome", "state_since"),
        "reason",
        ("retire_reason", "purge", "restarts", "replaces"),
        ("provider", "spot", "accelerators", "place", "url", "pid", "uid"),
        ("created_at", "provisioning_at", "launched_at", "ready_at", "ended_at"),
        ("probe_at", "probe_ok", "probe_seconds", "probe_detail"),
        "shown_excerpt",
        "shown_lines",
        "log",
        "shown_handle",
    )
    readonly_fields = ("shown_state", "shown_outcome", "shown_excerpt", "shown_lines", "shown_handle")

    @admin.display(description="state", ordering="state")
    def shown_state(self, replica: Replica) -> str:
        """Where it is in its life."""
        return badge(replica.state)

    @admin.display(description="outcome", ordering="outcome")
    def shown_outcome(self, replica: Replica) -> str:
        """What its end is, from when its teardown begins."""
        return badge(replica.outcome)

    @admin.display(description="body of the last probe")
    def shown_excerpt(self, replica: Replica) -> str:
        """What the last probe was answered with."""
        return block(replica.probe_excerpt)

    @admin.display(description="last log lines")
    def shown_lines(self, replica: Replica) -> str:
        """What it said before it failed."""
        return block("\n".join(map(str, replica.last_lines)))

    @admin.display(description="handle")
    def shown_handle(self, replica: Replica) -> str:
        """By what its provider finds it."""
        return block(json.dumps(replica.handle, indent=2) if replica.handle else "")

    @confirmed("Terminate these replicas? Others take their place while their services want them.", "Terminate")
    def terminate(self, request: HttpRequest, queryset: QuerySet[Replica]) -> None:
        """Take the replicas down."""
        self._terminate(request, queryset, purge=False)

    @confirmed("Terminate these replicas, and forget them with their logs?", "Terminate and forget")
    def terminate_and_forget(self, request: HttpRequest, queryset: QuerySet[Replica]) -> None:
        """Take the replicas down and delete their rows then."""
        self._terminate(request, queryset, purge=True)

    def _terminate(self, request: HttpRequest, queryset: QuerySet[Replica], *, purge: bool) -> None:
        done: list[str] = []
        refused: list[str] = []
        for replica in self.theirs(request, queryset.select_related("service__owner").order_by("id"), refused):
            name = str(replica)
            if ReplicaState(replica.state).ended and not purge:
                refused.append(f"{name} has ended already ({replica.state}).")
                continue
            actor = request.user.get_username()
            replicas.want_gone(replica.service_id, replica.number, purge=purge, actor=actor)
            done.append(name)
        self.say(request, done, refused, "will be terminated and forgotten" if purge else "will be terminated")


@admin.register(Operation)
class OperationAdmin(Looking):
    """Launches and downs; a launch can be cancelled, a wait hastened, a failed down tried again."""

    list_display = ("id", "kind", "replica", "shown_status", "attempts", "why", "created_at", "started_at", "ended_at")
    list_filter = ("kind", "status", "lane", "created_at")
    list_select_related = ("replica__service", "service")
    search_fields = ("=id", "service__name", "waits_for", "error", "cancel_reason", "reason")
    date_hierarchy = "created_at"
    ordering = ("-id",)
    actions = ("cancel", "retry")
    fields = (
        ("kind", "lane", "shown_status"),
        ("service", "replica"),
        "reason",
        "waits_for",
        "error",
        "cancel_reason",
        ("attempts", "steps", "deliveries", "orphaned"),
        ("created_at", "started_at", "ended_at", "retry_at", "cancel_requested_at"),
        ("owner_host", "owner_pid", "heartbeat_at", "claim"),
        ("peak_memory", "cpu_seconds"),
        "log",
        "shown_checkpoint",
    )
    readonly_fields = ("shown_status", "shown_checkpoint")

    @admin.display(description="status", ordering="status")
    def shown_status(self, operation: Operation) -> str:
        """The status that people see everywhere."""
        return badge(shown_status(operation))

    @admin.display(description="waits for / error / why cancelled / reason")
    def why(self, operation: Operation) -> str:
        """What is most worth knowing."""
        return why(operation)

    @admin.display(description="where it goes on")
    def shown_checkpoint(self, operation: Operation) -> str:
        """What the next step begins with."""
        return block(json.dumps(operation.checkpoint, indent=2) if operation.checkpoint else "")

    @confirmed("Cancel these launches? Their replicas go with them.", "Cancel")
    def cancel(self, request: HttpRequest, queryset: QuerySet[Operation]) -> None:
        """Stop launches in flight."""
        self._each(request, queryset, operations.request_cancel, "will be cancelled")

    @admin.action(description="Retry now", permissions=["operate"])
    def retry(self, request: HttpRequest, queryset: QuerySet[Operation]) -> None:
        """Let waits go on at once, and try failed downs again."""
        self._each(request, queryset, operations.request_retry, "is looked at again at once")

    def _each(self, request: HttpRequest, queryset: QuerySet[Operation], act: Any, verb: str) -> None:
        done: list[str] = []
        refused: list[str] = []
        for operation in self.theirs(request, queryset.select_related("service__owner").order_by("id"), refused):
            try:
                act(operation.pk, actor=request.user.get_username())
                done.append(f"operation {operation.pk}")
            except operations.Refused as refusal:
                refused.append(sentence(refusal))
        self.say(request, done, refused, verb)


@admin.register(Event)
class EventAdmin(Looking):
    """The history, newest first."""

    list_display = ("id", "at", "service_name", "kind", "number", "trigger", "change", "reason", "actor", "source")
    list_filter = ("kind", "source", "at")
    search_fields = ("service_name", "=trigger", "reason", "actor")
    date_hierarchy = "at"
    ordering = ("-id",)
    fields = (
        ("at", "service_name", "kind", "object_id", "number", "revision"),
        ("trigger", "change"),
        ("actor", "source", "address", "token"),
        "reason",
        "shown_data",
    )
    readonly_fields = ("change", "shown_data")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Event]:
        """Without the row that each event carries, unless one event is shown."""
        found = super().get_queryset(request)
        return found if request.resolver_match and "object_id" in request.resolver_match.kwargs else found.defer("data")

    @admin.display(description="from → to")
    def change(self, event: Event) -> str:
        """What became of what."""
        return " → ".join(filter(None, (event.old, event.new))) if event.old != event.new else ""

    @admin.display(description="the row after it")
    def shown_data(self, event: Event) -> str:
        """The object's public row."""
        return block(json.dumps(event.data, indent=2, ensure_ascii=False))


@admin.register(Lease)
class LeaseAdmin(Looking):
    """Who may act alone."""

    list_display = ("name", "holder", "host", "pid", "fence", "expires_at")
    ordering = ("name",)


@admin.register(Heartbeat)
class HeartbeatAdmin(Looking):
    """Who was heard of lately."""

    list_display = ("name", "host", "pid", "at")
    ordering = ("name",)
