"""The addresses of the dashboard."""

from django.contrib.auth import views as auth
from django.urls import URLPattern, URLResolver, path

from replicas.web import accounts, bulk, channels, editing, figures, mutations, steering, system, versions, views
from replicas.web.logviews import log_urls

pages: list[URLPattern] = [
    path("", views.services, name="services"),
    path("services.json", views.services_json, name="services.json"),
    path("figures.json", figures.figures_json, name="figures.json"),
    path("services/names.json", views.names_json, name="names.json"),
    path("services/<str:name>/", views.service, name="service"),
    path("services/<str:name>/snapshot.json", views.service_json, name="service.json"),
    path("services/<str:name>/samples.json", figures.samples_json, name="samples.json"),
    path("services/<str:name>/events.json", views.events_json, name="events.json"),
    path("services/<str:name>/logs", views.service_logs, name="service-logs"),
    path("services/<str:name>/versions/", versions.versions, name="versions"),
    path("services/<str:name>/versions.json", versions.versions_json, name="versions.json"),
    path("services/<str:name>/versions/<int:number>/", versions.version, name="version"),
    path("services/<str:name>/versions/<int:number>/plan.json", steering.plan, name="plan.json"),
    path("services/<str:name>/versions/compare", versions.compare, name="compare"),
    path("services/<str:name>/versions/<int:number>/spec", views.spec, name="spec"),
    path("services/<str:name>/replicas/<int:number>/", views.replica, name="replica"),
    path("services/<str:name>/replicas/<int:number>/snapshot.json", views.replica_json, name="replica.json"),
    path(
        "services/<str:name>/replicas/<int:number>/events.json", views.replica_events_json, name="replica-events.json"
    ),
    path("operations/", views.operations, name="operations"),
    path("operations.json", views.operations_json, name="operations.json"),
    path("notices/", channels.notices, name="notices"),
    path("notices.json", channels.notices_json, name="notices.json"),
    path("system/", system.system, name="system"),
    path("system.json", system.system_json, name="system.json"),
    path("system/disk.json", system.disk_json, name="disk.json"),
]
editor: list[URLPattern] = [
    path("new", editing.new, name="new"),
    path("services/<str:name>/edit", editing.edit, name="edit"),
    path("check", editing.check, name="check"),
    path("spec.schema.json", editing.spec_schema, name="schema"),
]
deploys: list[URLPattern] = [
    path("notices/add", channels.add, name="notice-add"),
    path("notices/<int:channel_id>/test", channels.test, name="notice-test"),
    path("notices/<int:channel_id>/switch", channels.switch, name="notice-switch"),
    path("notices/<int:channel_id>/remove", channels.remove, name="notice-remove"),
    path("services/<str:name>/up", editing.bring_up, name="up"),
    path("services/<str:name>/rollback", steering.rollback, name="rollback"),
]
posts: list[URLPattern] = [
    path("services/bulk", bulk.act_on_services, name="bulk"),
    path("operations/bulk", bulk.act_on_operations, name="bulk-operations"),
    path("services/<str:name>/scale", mutations.scale, name="scale"),
    path("services/<str:name>/release", mutations.release, name="release"),
    path("services/<str:name>/restart", mutations.restart, name="restart"),
    path("services/<str:name>/down", mutations.down, name="down"),
    path("services/<str:name>/replicas/<int:number>/terminate", mutations.terminate, name="terminate"),
    path("services/<str:name>/rollout/pause", steering.pause, name="pause"),
    path("services/<str:name>/rollout/resume", steering.resume, name="resume"),
    path("services/<str:name>/rollout/promote", steering.promote, name="promote"),
    path("services/<str:name>/rollout/abort", steering.abort, name="abort"),
    path("operations/<int:operation_id>/cancel", mutations.cancel, name="cancel"),
    path("operations/<int:operation_id>/retry", mutations.retry, name="retry"),
]
administers: list[URLPattern] = [
    path("system/prune.json", system.prune_json, name="prune.json"),
    path("system/prune", system.prune, name="prune"),
]
account: list[URLPattern] = [
    path("login", accounts.Login.as_view(), name="login"),
    path("logout", auth.LogoutView.as_view(), name="logout"),
    path("password", accounts.PasswordChange.as_view(), name="password_change"),
    path("tokens", accounts.tokens, name="tokens"),
    path("tokens/<int:token_id>/revoke", accounts.revoke, name="revoke"),
]
urlpatterns: list[URLPattern | URLResolver] = [*pages, *editor, *posts, *deploys, *administers, *account, *log_urls]
