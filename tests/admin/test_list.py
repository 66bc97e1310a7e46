"""The list of services in Django admin: what stands beside the filters."""

import re

import pytest
from django.test import Client

from replicas.models import Service
from tests.admin.conftest import Make

pytestmark = pytest.mark.django_db
LIST = "/admin/replicas/service/"


def test_the_list_tells_the_beginning_of_a_long_reason_and_shows_endpoint_and_owner(boss: Client, make: Make) -> None:
    make()
    Service.objects.update(reason="x" * 69 + "yz & more", endpoint="http://127.0.0.1:18000")
    text = boss.get(LIST).content.decode()
    assert f'<span title="{"x" * 69}yz &amp; more">{"x" * 69}…</span>' in text
    assert re.findall(r'class="field-(\w+)', text)[-3:] == ["why", "endpoint", "owner"]
