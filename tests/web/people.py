"""The cast of the page tests: people with different powers, and services made from texts as people write them."""

from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client

from replicas.actions import services
from replicas.models import Service
from replicas.web import intake

PASSWORD = "correct horse battery"
POWERS = {
    "stranger": [],
    "viewer": ["view_service"],
    "operator": ["view_service", "operate_service"],
    "deployer": ["view_service", "deploy_service"],
}
TEXT = """\
name: {name}
provider: fake
envs:
  GREETING: hello
run: exec python server.py
service:
  readiness_probe: /healthz
  replicas: {replicas}
"""


def person(name: str) -> Any:
    """The user of this name with the powers of the role, made on first use; `root` is a superuser."""
    users = get_user_model()
    found = users.objects.filter(username=name).first()
    if found is not None:
        return found
    if name == "root":
        return users.objects.create_superuser(name, password=PASSWORD)
    user = users.objects.create_user(name, password=PASSWORD)
    user.user_permissions.set(Permission.objects.filter(codename__in=POWERS[name]))
    return user


def browser(name: str | None = None, **options: Any) -> Client:
    """A client, signed in as that person."""
    client = Client(raise_request_exception=False, **options)
    if name is not None:
        client.force_login(person(name))
    return client


def text(name: str = "web", replicas: int = 2, more: str = "") -> str:
    """A service YAML for the fake provider."""
    return TEXT.format(name=name, replicas=replicas) + more


def deployed(name: str = "web", replicas: int = 2, more: str = "") -> Service:
    """A service applied from its text by ann."""
    return applied(text(name, replicas, more)).service


def applied(source: str, actor: str = "ann") -> services.Applied:
    """Whatever the text describes, applied."""
    return intake.carry_out(intake.propose(source, message=f"by {actor}"), actor=actor)
