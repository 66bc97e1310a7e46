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


HOSTILE = ["at__gte=9999-12-31T23:59:59-23:59", "at__year=99999", "{date}__year=0", "{date}__year=99999999"]
LISTS = {
    "replicas/event": "at",
    "replicas/operation": "created_at",
    "replicas/apitoken": "created_at",
    "replicas/noticechannel": "created_at",
    "replicas/heartbeat": "at",
    "auth/user": "last_login",
    "auth/group": "user__last_login",
}


@pytest.mark.parametrize(
    "query", [*HOSTILE, "{date}__lt=0001-01-01T00:00%2B14:00", "q=%00", "o=9.9.-9", "p=99999999999999999999"]
)
@pytest.mark.parametrize("model", LISTS)
def test_no_filter_written_by_hand_is_too_much(boss: Client, model: str, query: str) -> None:
    found = boss.get(f"/admin/{model}/?{query.format(date=LISTS[model])}")
    assert found.status_code in {200, 302, 400}
    if found.status_code == 302:
        assert boss.get(found.url).status_code == 200


@pytest.mark.parametrize("chosen", ["x", "-1", "9" * 40, "1.5", "", "\0"])
def test_what_is_no_row_cannot_be_chosen(boss: Client, make: Make, chosen: str) -> None:
    one = make()
    answer = boss.post(
        LIST, {"action": "take_down", "_selected_action": [str(one.pk), chosen], "index": "0"}, follow=True
    )
    assert "Nothing was done: what was chosen are no rows of this list" in answer.content.decode()
    assert Service.objects.get().desired == "UP"
