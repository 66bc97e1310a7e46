"""How a rollout begins: which way it goes about it, whose replicas get no traffic, and what it turns back to."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from replicas.core.values import RolloutMode, RolloutState
from replicas.core.views import RolloutView

PROVED = (RolloutState.PROGRESSING, RolloutState.SUPERSEDED)


@dataclass(frozen=True, slots=True)
class Group:
    """The replicas of one version that may stay, just before: the process they run, and whether they are listed."""

    version: int
    process: str
    listed: bool


@dataclass(frozen=True, slots=True)
class Beginning:
    """`switched`: a blue-green whose own replicas are the ones that are listed begins with its switch made."""

    mode: RolloutMode
    switched: bool
    held: tuple[int, ...]


def begin(
    there: Collection[Group], process: str, *, before: str | None, asked: RolloutMode, good: int, one_port: bool
) -> Beginning:
    """Begin a rollout to a version that runs `process`.

    `before`: the process of the version that is active, None where the service comes up. `asked`: the mode of the spec
    or of the apply. What is not listed at this moment stays so, but for the good version: it may be needed.

    In place where nothing that runs would be replaced. Blue-green rolls where it cannot be: nothing to stand beside,
    one port for all on a host, or both its own replicas and others listed, so that neither set could be switched to.
    """
    held = tuple(sorted(group.version for group in there if not group.listed and group.version != good))
    processes: set[str | None] = {group.process for group in there}
    if (processes or {before}) == {process}:
        return Beginning(RolloutMode.IN_PLACE, False, held)
    serving = {group.process for group in there if group.listed}
    mixed = process in serving and len(serving) > 1
    if before is None or asked is not RolloutMode.BLUE_GREEN or one_port or mixed:
        return Beginning(RolloutMode.ROLLING, False, held)
    return Beginning(RolloutMode.BLUE_GREEN, serving == {process}, held)


def good_version(newest_first: Iterable[RolloutView]) -> int:
    """The version that proved itself last: its rollout succeeded, or all traffic has been switched to it. 0: none."""
    for rollout in newest_first:
        switched = rollout.switched_at is not None and rollout.state in PROVED
        if rollout.best > 0 and (switched or rollout.state is RolloutState.SUCCEEDED):
            return rollout.to_version
    return 0
