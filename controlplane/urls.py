"""The root of all addresses: health, Django admin, and the dashboard."""

from django.contrib import admin
from django.urls import include, path

from controlplane import health
from replicas.web.api import api_urls
from replicas.web.metrics import metrics

handler400 = "replicas.web.unreadable.bad_request"
urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", metrics, name="metrics"),
    path("admin/", admin.site.urls),
    *api_urls,
    path("", include("replicas.web.urls")),
]
