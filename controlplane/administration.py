"""Django's administration, with one page for one's own password: that of the dashboard, where a change is an event."""

from typing import Any

from django.contrib.admin import AdminSite
from django.contrib.admin.apps import AdminConfig
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect


class Administration(AdminConfig):
    """The app."""

    default_site = "controlplane.administration.Site"


class Site(AdminSite):
    """The pages."""

    def password_change(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Leads to the dashboard's."""
        return redirect("password_change")
