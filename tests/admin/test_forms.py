"""What the pages of Django admin say before anything is saved."""

from django.test import Client

from replicas.actions import services
from tests.admin.conftest import TEXT, Make
from tests.admin.test_services import body, page


def test_a_number_that_was_scaled_by_hand_is_spoken_of_before_anything_is_saved(boss: Client, make: Make) -> None:
    service = make()
    assert "scaled by hand" not in body(boss.get(page(service)))
    services.scale(service.pk, 5, actor="ann")
    text = body(boss.get(page(service)))
    assert "It was scaled by hand: the YAML of version 1 says 2." in text
    assert "sets the number to what it says (2 as it stands): the 5 that were set by hand are lost" in text


def test_where_the_load_decides_nothing_was_scaled_by_hand(boss: Client, make: Make) -> None:
    policy = "replica_policy:\n    min_replicas: 1\n    max_replicas: 4\n    target_qps_per_replica: 5"
    service = make(TEXT.replace("replicas: 2", policy))
    services.scale(service.pk, 3, actor="ann")
    text = body(boss.get(page(service)))
    assert "scaled by hand" not in text
    assert "The load decides; another number is fixed until somebody releases it." in text


def test_the_pages_name_the_product(boss: Client, make: Make) -> None:
    text = body(boss.get("/admin/"))
    assert "<title>Services and what belongs to them | Rollcall administration</title>" in text
    assert "Django administration" not in text
