"""Users with different rights, their clients, and services to look at."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from replicas.models import Service
from replicas.web import intake

TEXT = """\
name: web
run: exec python3 -m http.server "$PORT"
service:
  readiness_probe: /
  replicas: 2
"""

Make = Callable[..., Service]
SignIn = Callable[..., Client]


@pytest.fixture
def make(home: Path, db: None) -> Make:
    """Applies a text, of a service called web if nothing else is said."""

    def apply(text: str = TEXT, name: str | None = None, **given: Any) -> Service:
        return intake.carry_out(intake.propose(text, name=name, **given), actor="ann").service

    return apply


@pytest.fixture
def sign_in(db: None, home: Path) -> SignIn:
    """Signs a new member of the staff in, with the given rights on services."""

    def client(*rights: str, name: str = "bob", staff: bool = True) -> Client:
        user = User.objects.create_user(name, password="x", is_staff=staff)
        user.user_permissions.set(Permission.objects.filter(codename__in=[f"{right}_service" for right in rights]))
        found = Client()
        found.force_login(user)
        return found

    return client


@pytest.fixture
def boss(db: None, home: Path) -> Client:
    """The client of a superuser."""
    found = Client()
    found.force_login(User.objects.create_superuser("boss", password="x"))
    return found
