"""How many of the new replicas are spot and how many on demand, and who stands in for whom."""

from collections.abc import Sequence
from dataclasses import dataclass

from replicas.core.autoscaler.mix import mix
from replicas.core.planner.fleet import count_ready
from replicas.core.views import ReplicaView, ServiceView
from replicas.core.wording import some


@dataclass(frozen=True, slots=True)
class Share:
    """What one kind may have: launched up to `made`, `kept` at most, `own` of them without standing in for the other.

    `there`: those of the kind that may stay.
    """

    spot: bool
    there: tuple[ReplicaView, ...]
    own: int
    made: int
    kept: int

    @property
    def extra(self) -> int:
        """How many places it has beyond its own, while the other kind is missing."""
        return max(0, max(self.made, min(len(self.there), self.kept)) - self.own)

    @property
    def words(self) -> str:
        """Why one of it comes or goes."""
        return f"{self.own} {'spot' if self.spot else 'on demand'} wanted, {len(self.there)} there"


def share_out(service: ServiceView, new: Sequence[ReplicaView], places: int) -> tuple[Share, ...]:
    """The shares of both kinds in so many places for new replicas; none where the spec leaves the kind open.

    The numbers are those of `autoscaler.mix`. Who is there beyond them stays while the other kind is short of ready
    ones, so that a preemption or another mix takes nothing away before something has come in its place.
    """
    policy = service.spot
    if policy is None:
        return ()
    spots = tuple(replica for replica in new if replica.spot)
    others = tuple(replica for replica in new if not replica.spot)
    spare = min(policy.spare, max(0, places - policy.least))
    wanted = mix(
        places - spare,
        overprovision=spare,
        base=policy.base,
        dynamic=policy.dynamic,
        spot_ready=count_ready(spots),
    )
    base = min(policy.base, places - spare)
    missing_spots = max(0, places - spare - base - count_ready(spots))
    missing_others = max(0, base - count_ready(others))
    return (
        Share(False, others, base, wanted.on_demand, max(wanted.on_demand, base + missing_spots)),
        Share(True, spots, wanted.spot, wanted.spot, wanted.spot + missing_others),
    )


def tell_mix(shares: Sequence[Share]) -> tuple[str, ...]:
    """The note on replicas on demand that stand in for spot ones; none where none does."""
    stand_ins = sum(share.extra for share in shares if not share.spot)
    if not stand_ins:
        return ()
    verb = "stands" if stand_ins == 1 else "stand"
    return (f"{some(stand_ins, 'on-demand replica')} {verb} in for spot replicas that are missing",)
