"""Django's administration as an app: its pages are those of `controlplane.adminsite`."""

from django.contrib.admin.apps import AdminConfig


class Administration(AdminConfig):
    """The app."""

    default_site = "controlplane.adminsite.Site"
