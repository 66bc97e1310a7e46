"""Who has which port."""

import pytest
from django.db import IntegrityError

from replicas.actions import endpoints, services
from replicas.models import Event, Service
from tests import cast

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_port_belongs_to_one_service_at_a_time(home: object) -> None:
    web, api = cast.service("web"), cast.service("api")
    assert endpoints.give(web.pk, 18000, actor="gateway")
    assert not endpoints.give(api.pk, 18000, actor="gateway")
    assert not endpoints.give(web.pk, 18001, actor="gateway")
    assert endpoints.give(web.pk, 18001, among=(18000,), actor="gateway")
    assert endpoints.taken_ports() == {18001}
    with pytest.raises(IntegrityError):
        Service.objects.filter(pk=api.pk).update(endpoint_port=18001)


def test_asking_for_a_port_that_another_has_is_refused(home: object) -> None:
    web = cast.service("web")
    endpoints.give(web.pk, 18000, actor="gateway")
    with pytest.raises(services.Conflict, match="endpoint_port 18000 is the port of service web: choose another"):
        services.apply(cast.draft("api", 1, service={"endpoint_port": 18000}), actor="ann")
    assert not Service.objects.filter(name="api").exists()
    services.apply(cast.draft("web", 1, service={"endpoint_port": 18000}), actor="ann")


def test_a_service_that_is_down_gives_up_a_port_that_it_was_given(home: object) -> None:
    web = cast.service("web")
    endpoints.give(web.pk, 18000, actor="gateway")
    services.take_down(web.pk, purge=False, actor="ann")
    services.apply(cast.draft("api", 1, service={"endpoint_port": 18000}), actor="ann")
    web.refresh_from_db()
    assert web.endpoint_port is None
    assert Event.objects.filter(trigger="endpoint_given_up", service=web).exists()


def test_a_service_that_is_down_keeps_a_port_that_it_asks_for(home: object) -> None:
    asking = services.apply(cast.draft("web", 1, service={"endpoint_port": 18000}), actor="ann").service
    endpoints.give(asking.pk, 18000, actor="gateway")
    services.take_down(asking.pk, purge=False, actor="ann")
    with pytest.raises(services.Conflict):
        services.apply(cast.draft("api", 1, service={"endpoint_port": 18000}), actor="ann")


def test_an_address_is_told_once(home: object) -> None:
    web = cast.service("web")
    assert endpoints.tell(web.pk, "http://127.0.0.1:18000", "", actor="gateway")
    assert not endpoints.tell(web.pk, "http://127.0.0.1:18000", "", actor="gateway")
    assert Event.objects.filter(trigger="endpoint").count() == 1
    assert Event.objects.get(trigger="endpoint").data["endpoint"] == "http://127.0.0.1:18000"
