"""What the commands that steer a rollout share: each takes a service and writes one wish."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser

from replicas.actions import rollouts
from replicas.core.rollout import turns_back
from replicas.core.values import RolloutMode, RolloutState
from replicas.core.wording import some
from replicas.management.printing import Paint, age, clean
from replicas.management.verb import Verb, actor, find_service
from replicas.models import Rollout, Service
from replicas.models.public import policy

WAYS = {RolloutMode.IN_PLACE: "in place", RolloutMode.ROLLING: "rolling", RolloutMode.BLUE_GREEN: "blue-green"}


class Steering(Verb):
    """Acts on the rollout that goes on. `act` is one of `replicas.actions.rollouts`, `done` says what is true then."""

    act: Callable[..., Rollout]
    done = ""

    def add_arguments(self, parser: CommandParser) -> None:
        """SERVICE."""
        parser.add_argument("service", metavar="SERVICE")

    def handle(self, *, service: str, **_: Any) -> None:
        """Write the wish."""
        found = find_service(service)
        rollout = type(self).act(found.pk, actor=actor())
        self.say(f"{found.name}: {self.done.format(version=rollout.to_version, move=moved(rollout))}")
        self.warn_unless_running()


def moved(rollout: Rollout) -> str:
    """the update to version 5 (rolling); the way back to version 4 as version 6."""
    way = WAYS[RolloutMode(rollout.mode)]
    what = {
        "first": f"the first rollout of version {rollout.to_version}",
        "update": f"the update to version {rollout.to_version}",
        "restart": f"the restart as version {rollout.to_version}",
        "rollback": f"the rollback as version {rollout.to_version}",
    }[rollout.kind]
    return f"{what} ({way})"


def told(rollout: Rollout, spec: Mapping[str, Any], now: datetime, paint: Paint) -> str:
    """A line on a rollout, of a service whose active version has this spec: what moves, where it is, and since when."""
    ended = rollout.state != RolloutState.PROGRESSING
    state = paint.word("PAUSED" if rollout.paused_at and not ended else rollout.state)
    since = age(rollout.ended_at or rollout.paused_at or rollout.started_at, now)
    line = f"Rollout: {moved(rollout)} {state} since {since}"
    parts = [f"{some(rollout.best)} proved at most"] if rollout.best and not ended else []
    if rollout.switched_at is not None and not ended:
        parts.append(f"switched {age(rollout.switched_at, now)} ago")
    if rollout.good_version and not ended:
        by_itself = turns_back(rollout.kind, policy(spec)["auto_rollback"])
        parts.append(f"turns back to version {rollout.good_version}" if by_itself else "does not turn back by itself")
    if rollout.reason and ended:
        parts.append(clean(rollout.reason))
    return "; ".join([line, *parts])


def tell_going_back(verb: Verb, service: Service, rollout: Rollout) -> None:
    """Say what a rollback has begun."""
    service.refresh_from_db()
    version = service.version
    message = f": {version.message}" if version is not None and version.message else ""
    verb.say(f"{service.name}: version {rollout.to_version} is active{message}")
    other = rollouts.retargeted(rollout)
    for line in (*([f"target: {other[0]} → {other[1]}"] if other else ()), *(version.plan if version else ())):
        verb.say(f"  {line}")
    verb.warn_unless_running()
