"""What kinds of machine a spec's `resources` would take, and what it says about the mix of spot and on demand."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from replicas.core.views import SpotPolicy

FALLBACKS = ("base_ondemand_fallback_replicas", "dynamic_ondemand_fallback", "spot_placer")


@dataclass(frozen=True, slots=True)
class Offer:
    """One kind of machine that would do. `accelerators`: such as A100:8, "" for none. `spot`: it may be taken back.

    `place`: such as aws/us-east-1, as far as the resources name it.
    """

    accelerators: str = ""
    spot: bool = False
    place: str = ""


def offers(resources: Mapping[str, Any], spot: bool | None = None, place: str = "") -> Sequence[Offer]:
    """All kinds that `resources` (JSON form) would take, in the order of preference. `spot`, `place`: only of these.

    Where no choice says so, `use_spot` is what the order says (SkyServe overrides it for each replica).
    """
    choices = list(_choices(resources))
    if spot is not None:
        fitting = [choice for choice in choices if bool(choice.get("use_spot")) is spot]
        choices = fitting or [{**choice, "use_spot": spot} for choice in choices]
    found = [
        Offer(name, bool(choice.get("use_spot")), _place(choice))
        for choice in choices
        for name in _named(choice.get("accelerators"))
    ]
    return [offer for offer in found if not place or offer.place == place]


def says_spot(resources: Mapping[str, Any]) -> bool:
    """True where `use_spot` is given at all."""
    return any(choice.get("use_spot") is not None for choice in _choices(resources))


def spot_policy(spec: Mapping[str, Any]) -> SpotPolicy | None:
    """How a spec (JSON form) mixes spot and on demand; None where each launch takes what its resources say.

    Choices of both kinds without a word on falling back are the provider's to choose from.
    """
    policy = (spec.get("service") or {}).get("replica_policy") or {}
    kinds = {bool(choice.get("use_spot")) for choice in _choices(spec.get("resources") or {})}
    if True not in kinds or (False in kinds and not any(policy.get(name) for name in FALLBACKS)):
        return None
    return SpotPolicy(
        base=policy.get("base_ondemand_fallback_replicas") or 0,
        dynamic=bool(policy.get("dynamic_ondemand_fallback")),
        spare=policy.get("num_overprovision") or 0,
        least=policy.get("min_replicas") or 0,
    )


def spot_places(spec: Mapping[str, Any]) -> Sequence[str]:
    """Where spot replicas of a spec (JSON form) may be, the cheapest first; none where it names no `spot_placer`."""
    policy = (spec.get("service") or {}).get("replica_policy") or {}
    if not policy.get("spot_placer"):
        return ()
    return [offer.place for offer in offers(spec.get("resources") or {}, spot=True)]


def _place(choice: Mapping[str, Any]) -> str:
    parts = [choice.get(name) for name in ("cloud", "region", "zone")]
    return str(choice.get("infra") or "/".join(str(part) for part in parts if part))


def _choices(resources: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The section itself, or each of its choices with the common fields filled in."""
    listed = resources.get("any_of") or resources.get("ordered")
    if not listed:
        yield resources
        return
    for choice in listed:
        yield {**resources, **{name: value for name, value in choice.items() if value is not None}}


def _named(asked: object) -> Sequence[str]:
    """The accelerators of one choice, each as NAME:COUNT."""
    if not asked:
        return [""]
    if isinstance(asked, Mapping):
        return [f"{name}:{1 if count is None else count:g}" for name, count in asked.items()]
    texts = asked if isinstance(asked, list | tuple) else [asked]
    return [text if ":" in text else f"{text}:1" for text in map(str, texts)]
