"""The Django app `replicas`."""

from django.apps import AppConfig


class ReplicasConfig(AppConfig):
    """Services, versions, replicas and all that keeps them running."""

    name = "replicas"
    default_auto_field = "django.db.models.BigAutoField"
