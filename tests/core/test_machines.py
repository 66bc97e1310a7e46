"""What kinds of machine resources would take, in the order of preference."""

from typing import Any

import pytest

from replicas.core.machines import Offer, offers, spot_policy
from replicas.core.views import SpotPolicy


@pytest.mark.parametrize(
    ("resources", "found"),
    [
        ({}, [Offer()]),
        ({"accelerators": "A100:8"}, [Offer("A100:8")]),
        ({"accelerators": {"T4": 8, "L4": None, "V100": 0.5}}, [Offer("T4:8"), Offer("L4:1"), Offer("V100:0.5")]),
        ({"accelerators": ["H100:1", "A100"], "use_spot": True}, [Offer("H100:1", True), Offer("A100:1", True)]),
        (
            {"use_spot": True, "any_of": [{"accelerators": "L4:1"}, {"accelerators": "A100:1", "use_spot": False}]},
            [Offer("L4:1", True), Offer("A100:1")],
        ),
    ],
)
def test_offers(resources: dict[str, Any], found: list[Offer]) -> None:
    assert offers(resources) == found


def test_an_order_of_one_place_is_for_its_choice_alone() -> None:
    resources = {"use_spot": True, "any_of": [{"infra": "aws/us-east-1"}, {"cloud": "gcp", "region": "us-central1"}]}
    assert [offer.place for offer in offers(resources)] == ["aws/us-east-1", "gcp/us-central1"]
    assert offers(resources, True, "gcp/us-central1") == [Offer("", True, "gcp/us-central1")]


def test_an_order_of_one_kind_takes_the_choices_of_that_kind() -> None:
    resources = {"any_of": [{"accelerators": "L4:1", "use_spot": True}, {"accelerators": "A100:1"}]}
    assert offers(resources, spot=True) == [Offer("L4:1", True)]
    assert offers(resources, spot=False) == [Offer("A100:1", False)]
    assert offers({"accelerators": "L4", "use_spot": True}, spot=False) == [Offer("L4:1", False)]


@pytest.mark.parametrize(
    ("resources", "policy", "found"),
    [
        ({}, {"min_replicas": 1}, None),
        ({"use_spot": True}, None, SpotPolicy()),
        ({"use_spot": True}, {"min_replicas": 2, "num_overprovision": 1}, SpotPolicy(spare=1, least=2)),
        (
            {"any_of": [{"use_spot": True}, {}]},
            {"min_replicas": 1, "base_ondemand_fallback_replicas": 1, "dynamic_ondemand_fallback": True},
            SpotPolicy(base=1, dynamic=True, least=1),
        ),
        ({"any_of": [{"use_spot": True}, {}]}, {"min_replicas": 1}, None),
    ],
)
def test_the_mix_of_a_spec(resources: dict[str, Any], policy: dict[str, Any] | None, found: SpotPolicy | None) -> None:
    assert spot_policy({"resources": resources, "service": {"replica_policy": policy}}) == found
