"""What a move to another version would do, said before it is done: lines for people, kept with the version."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from replicas.core.machines import spot_policy
from replicas.core.rollout import bounds, canaries, turns_back
from replicas.core.spec import Spec
from replicas.core.values import ReplicaState, RolloutKind, RolloutMode
from replicas.core.wording import named_versions, seconds, some

S = ReplicaState
SERVING = (S.READY, S.NOT_READY)
GOING_ORDER = "those that are not ready first, then the oldest version, then the newest number"


@dataclass(frozen=True, slots=True)
class There:
    """The live replicas of one version whose end has not been decided, counted by state.

    `adopted`: the new version asks for the same process, so they go on under it. `listed`: they get traffic.
    """

    version: int
    counts: Mapping[ReplicaState, int]
    adopted: bool = False
    listed: bool = True

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True)
class Move:
    """A move to `version` that is about to begin. `good_version`: what it would turn back to, 0 for none.

    `switched`: a blue-green that begins with its switch made. `one_port`: no two replicas can run side by side.
    `good_fits`: the version that it would turn back to asks for the same process as the new one.
    `superseded`: the version to which a rollout is going on, 0 for none. `leaving`: replicas that are on their way out.
    """

    version: int
    kind: RolloutKind
    mode: RolloutMode
    good_version: int = 0
    good_fits: bool = False
    switched: bool = False
    one_port: bool = False
    superseded: int = 0
    leaving: int = 0


@dataclass(frozen=True, slots=True)
class Counts:
    """How many are adopted, launched, beyond the target, older, and older without ever having had traffic."""

    adopted: int
    launched: int
    surplus: int
    older: int
    held: int


def preview(move: Move, target: int, there: Sequence[There], old: Spec | None, new: Spec) -> list[str]:
    """What the move does, in the order in which it does it. `target`: the replicas that will be wanted.

    `old` is the spec of the version that is left, None for none. The rules are those of the planner.
    """
    counts = count(target, there)
    says = {
        RolloutMode.IN_PLACE: _in_place,
        RolloutMode.ROLLING: _rolling,
        RolloutMode.BLUE_GREEN: _blue_green,
    }[move.mode]
    lines = [f"The rollout to version {move.superseded}, which is going on, is superseded."] if move.superseded else []
    lines += says(move, target, counts, there, new)
    lines += _brought(move, target, counts, new)
    lines += _mix(target, new)
    lines += _probe(counts, old, new)
    if counts.surplus:
        lines.append(f"{_are(counts.surplus, 'drained')}, as {_wanted(target)}: {GOING_ORDER}.")
    if counts.older or counts.surplus:
        lines.append(f"A drained one gets up to {seconds(new.service.drain_seconds)} to end what it is doing.")
    if move.leaving:
        must = "its place is needed it" if move.leaving == 1 else "their places are needed they"
        lines.append(f"{_are(move.leaving, 'on the way out')} already; where {must} must end first.")
    if move.mode is not RolloutMode.IN_PLACE and counts.launched:
        lines.append(_failing(move, new))
    return lines


def scaling(target: int, there: Sequence[There]) -> list[str]:
    """What another target alone does: no version is made and nothing is replaced."""
    counts = count(target, there)
    if counts.surplus:
        return [f"No new version: {_are(counts.surplus, 'drained')}, {GOING_ORDER}."]
    return [f"No new version: {_are(counts.launched, 'launched')}."]


def count(target: int, there: Sequence[There]) -> Counts:
    """How many of which kind a move to the target makes and leaves."""
    fitting = sum(each.count for each in there if each.adopted)
    return Counts(
        adopted=min(fitting, target),
        launched=max(0, target - fitting),
        surplus=max(0, fitting - target),
        older=sum(each.count for each in there if not each.adopted and each.listed),
        held=sum(each.count for each in there if not each.adopted and not each.listed),
    )


def _in_place(move: Move, target: int, counts: Counts, there: Sequence[There], new: Spec) -> list[str]:
    lines = ["In place: nothing that a replica is made from changes, and none is there to be adopted."]
    if counts.adopted:
        stay = "goes on as it is" if counts.adopted == 1 else "go on as they are"
        adopted = _are(counts.adopted, f"adopted by version {move.version}")
        lines = [f"In place: {adopted} and {stay}; none is replaced."]
    if counts.launched:
        lines.append(f"{_are(counts.launched, 'launched')}, as {_wanted(target)}.")
    return lines


def _rolling(move: Move, target: int, counts: Counts, there: Sequence[There], new: Spec) -> list[str]:
    if not counts.older and not counts.held:
        return _fresh(move, target, counts)
    lines = [f"Rolling: {_launched(move, counts)}; {_older(there)} drained."]
    if counts.adopted:
        lines.append(f"{_are(counts.adopted, 'adopted')}: the new version asks for the same process.")
    if counts.held:
        lines.append(f"{_are(counts.held, 'taken down')} at once: no traffic goes to {_them(counts.held)}.")
    if counts.launched and counts.older:
        lines += [*_pace(move, target, new), *_canary(move, target, new)]
    return lines


def _fresh(move: Move, target: int, counts: Counts) -> list[str]:
    if target == 0:
        return ["Nothing is launched, as no replica is wanted."]
    adopted = f"; {_are(counts.adopted, 'adopted')}" if counts.adopted else ""
    return [f"{_launched(move, counts)} at once{adopted}; nothing older is there."]


def _launched(move: Move, counts: Counts) -> str:
    return f"{some(counts.launched)} of version {move.version} {'is' if counts.launched == 1 else 'are'} launched"


def _older(there: Sequence[There]) -> str:
    """1 older one (of version 3) is; 4 older ones (of versions 2 and 3) are."""
    older = [each for each in there if not each.adopted and each.listed and each.count]
    total = sum(each.count for each in older)
    which = f" ({named_versions([each.version for each in older])})" if older else ""
    return f"{total} older {'one' if total == 1 else 'ones'}{which} {'is' if total == 1 else 'are'}"


def brought(move: Move, target: int, counts: Counts, new: Spec) -> int:
    """How many replicas of the good version are launched, too: the target is met by it until the new one has proved
    itself."""
    stands_in = move.good_version and move.kind is not RolloutKind.FIRST and not move.good_fits
    if not stands_in or move.switched or move.mode is RolloutMode.IN_PLACE:
        return 0
    if move.mode is RolloutMode.BLUE_GREEN:
        return max(0, target - counts.older)
    surge, unavailable = _limits(move, target, new)
    needed = target - unavailable
    number = _canaries(move, target, new)
    if number is not None:
        needed = max(needed, min(target, target + surge - number))
    return max(0, needed - counts.older - counts.adopted)


def _brought(move: Move, target: int, counts: Counts, new: Spec) -> list[str]:
    number = brought(move, target, counts, new)
    if not number:
        return []
    what = f"{some(number)} of version {move.good_version} {'is' if number == 1 else 'are'} launched as well"
    return [f"{what}: it serves in the number that is wanted until the new version has proved itself."]


def _limits(move: Move, target: int, new: Spec) -> tuple[int, int]:
    """max_surge and max_unavailable as they count."""
    surge, unavailable = bounds(new.service.rollout.model_dump(), target)
    return (0, max(1, unavailable)) if move.one_port else (surge, unavailable)


def _pace(move: Move, target: int, new: Spec) -> list[str]:
    """How far it may go at a time, and in which order."""
    rollout = new.service.rollout
    surge, unavailable = _limits(move, target, new)
    ready = f"once it has been ready for {seconds(rollout.min_ready_seconds)}"
    if move.one_port:
        return [
            "Its run names a port of its own, which only one replica of this machine can have: "
            "an old one goes before a new one comes, whatever max_surge says.",
            f"Order: {GOING_ORDER}; a new one counts {ready}.",
        ]
    limits = (
        f"At most {target + surge} are alive at a time (max_surge {rollout.max_surge}), "
        f"and at least {max(0, target - unavailable)} stay ready (max_unavailable {rollout.max_unavailable})."
    )
    first = f"{surge} of the new ones first" if surge else f"{min(unavailable, target)} of the old ones make room first"
    return [limits, f"Order: {first}; a new one takes an old one's place {ready}. Of the old ones go {GOING_ORDER}."]


def _canary(move: Move, target: int, new: Spec) -> list[str]:
    rollout, number = new.service.rollout, _canaries(move, target, new)
    if number is None:
        return []
    until = "somebody promotes it"
    if rollout.bake_seconds is not None:
        until += f", or it has been ready for {seconds(rollout.bake_seconds)} without a failure"
    return [f"Canary: {some(number)} of version {move.version} at first; the rest wait until {until}."]


def _canaries(move: Move, target: int, new: Spec) -> int | None:
    """How many come first; a canary needs something to be compared with: a version that has proved itself."""
    if move.kind is not RolloutKind.UPDATE or not move.good_version or move.good_fits:
        return None
    return canaries(new.service.rollout.canary, target)


def _blue_green(move: Move, target: int, counts: Counts, there: Sequence[There], new: Spec) -> list[str]:
    if not counts.older and not counts.held:
        return _fresh(move, target, counts)
    rollout = new.service.rollout
    keeps = rollout.keep_old_seconds
    after = f"kept for {seconds(keeps)} after the switch, then drained" if keeps else "drained after the switch"
    if move.switched:
        return [
            f"Blue-green: {_are(counts.adopted, 'adopted by')} version {move.version}, which gets all traffic at once.",
            *([f"{_launched(move, counts)}."] if counts.launched else []),
            f"{_older(there)} {after}.",
        ]
    return [
        f"Blue-green: {_launched(move, counts)} beside what serves, so up to {2 * target} are alive; "
        "they get no traffic yet.",
        f"Once {'it has' if target == 1 else f'all {target} have'} been ready for {seconds(rollout.min_ready_seconds)},"
        " all traffic is switched to them in one step.",
        f"{_older(there)} {after}.",
    ]


def _mix(target: int, new: Spec) -> list[str]:
    """How many are spot and how many on demand, where the spec has a mix."""
    policy = spot_policy(new.to_json())
    if policy is None or not target:
        return []
    base = min(policy.base, target)
    line = f"Of {target}, {base} on demand and {target - base} spot"
    return [f"{line}; on-demand ones stand in while spot ones are missing." if policy.dynamic else f"{line}."]


def _probe(counts: Counts, old: Spec | None, new: Spec) -> list[str]:
    if old is None or not counts.adopted:
        return []
    same = (old.service.readiness_probe, old.service.liveness_probe)
    if same == (new.service.readiness_probe, new.service.liveness_probe):
        return []
    return ["The changed probe applies to them at once, also to those that are starting."]


def _failing(move: Move, new: Spec) -> str:
    rollout = new.service.rollout
    if move.kind is RolloutKind.FIRST and not move.good_version:
        most = some(new.service.restart.max_never_ready, "failure")
        return f"Once there were {most} or more without a replica that was ever ready, launches stop."
    if move.good_fits and move.kind is RolloutKind.ROLLBACK:
        return "It has proved itself before, so it is not given up: what fails of it is launched again."
    if not move.good_version:
        return "No version has proved itself so far, so there is none that a failure could go back to."
    back = f"it goes back to version {move.good_version} by itself"
    if not turns_back(move.kind, rollout.auto_rollback):
        why = "auto_rollback is off" if not rollout.auto_rollback else "a rollback does not turn back by itself"
        back = f"version {move.good_version} fills the places that are missing, and it stays so ({why})"
    return (
        f"Without progress for {seconds(new.service.progress_deadline)}, or after "
        f"{some(rollout.max_failures, 'failure')} of new ones, it has failed; then {back}."
    )


def _are(number: int, what: str) -> str:
    return f"{some(number)} {'is' if number == 1 else 'are'} {what}"


def _them(number: int) -> str:
    return "it" if number == 1 else "them"


def _wanted(target: int) -> str:
    return "1 is wanted" if target == 1 else f"{target} are wanted"
