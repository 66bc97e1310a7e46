"""Waiting until a version is ready: what counts, what ends the wait, and what is shown meanwhile."""

from django.db.models import Q, QuerySet

from replicas.core.rollout import listed
from replicas.core.spec import Spec
from replicas.core.values import ENDS, FAILURES, Desired, ReplicaState, RolloutState, ServiceStatus
from replicas.core.wording import short, some
from replicas.management.following import Deadline, News, Patience, Trail
from replicas.management.printing import event_line
from replicas.management.verb import Exit, Verb, fail
from replicas.models import Event, Replica, Rollout, Service
from replicas.models.fields import ALIVE

LEAVING = (ReplicaState.DRAINING, ReplicaState.SHUTTING_DOWN)
SHOWN = (
    Q(kind="replica")
    | Q(kind="service")
    | Q(kind="rollout")
    | Q(kind="operation", trigger__in=("waiting", "failed", "orphaned"))
)
QUIET = ("probed",)


class Readiness:
    """The version that is active now: ready when `target` of its replicas are READY and no other version's serve.

    What a blue-green rollout keeps for the way back after its switch serves no more.
    """

    def __init__(self, verb: Verb, name: str, after: int) -> None:
        self._verb = verb
        self._service = Service.objects.select_related("version").get(name=name)
        assert self._service.version is not None
        self._version = self._service.version
        spec = Spec.from_json(self._version.spec)
        self._most_never_ready = spec.service.restart.max_never_ready
        events = Event.objects.filter(SHOWN, service=self._service).exclude(trigger__in=QUIET)
        self._trail = Trail(events, after)
        self._judged = False

    def wait(self, news: News, deadline: Deadline) -> None:
        """Print events until the version is ready. Ends the command if it fails, is replaced, or takes too long."""
        patience = Patience()
        while True:
            self._show()
            if self._look():
                return
            patience.check()
            if deadline.passed:
                self._service.refresh_from_db()
                went_on = "It goes on; `manage.py status` shows how."
                fail(
                    f"{self._name} is not ready after {deadline.seconds:g} s: {self._service.reason}. {went_on}",
                    Exit.TIMED_OUT,
                )
            news.wait(deadline=deadline)

    @property
    def _name(self) -> str:
        return f"{self._service.name} version {self._version.number}"

    def _show(self) -> None:
        for event in self._trail.fresh():
            self._verb.say(event_line(event, self._verb.paint, with_id=False))
            # The controller has spoken about this version only after it was applied.
            self._judged = self._judged or (event.kind == "service" and event.trigger == "status")

    def _look(self) -> bool:
        """True when the version is ready; ends the command when it will not be."""
        service = Service.objects.select_related("version").filter(pk=self._service.pk).first()
        if service is None:
            fail(f"Service {self._service.name} was purged meanwhile.")
        if service.desired == Desired.DOWN:
            fail(f"Service {service.name} was taken down meanwhile.")
        number = service.version.number if service.version else 0
        rollout = Rollout.objects.filter(service=service, to_version=self._version.number).order_by("-id").first()
        if rollout is not None:
            self._judge(rollout, number)
        if number != self._version.number:
            fail(f"{self._name} was replaced by version {number} meanwhile.")
        replicas = Replica.objects.filter(service=service)
        ready = replicas.filter(version=self._version, state=ReplicaState.READY).count()
        if ready >= service.target and not self._others(replicas, rollout):
            where = f" at {service.endpoint}" if service.endpoint else ""
            self._verb.say(f"{self._name} is ready: {ready} of {some(service.target)}{where}.")
            return True
        if self._failed(service):
            fail(f"{self._name} has failed: {service.reason}.{self._last_lines()}")
        return False

    def _judge(self, rollout: Rollout, active: int) -> None:
        """End the command when the rollout has come to a bad end; `active` is the number of the active version."""
        back = f" Version {active} is active." if active != rollout.to_version else ""
        if rollout.state == RolloutState.FAILED:
            fail(f"{self._name} has failed: {short(rollout.reason)}.{back}{self._last_lines()}")
        if rollout.state == RolloutState.ABORTED:
            fail(f"The rollout of {self._name} was given up: {short(rollout.reason)}.{back}")

    def _others(self, replicas: QuerySet[Replica], rollout: Rollout | None) -> int:
        """How many replicas of other versions still serve."""
        others = replicas.exclude(version=self._version).exclude(state__in=(*ENDS, *LEAVING))
        in_force = rollout.view() if rollout is not None else None
        return sum(listed(in_force, number) for number in others.values_list("version_number", flat=True))

    def _failed(self, service: Service) -> bool:
        """Whether the controller has given the version up, be it that older replicas still serve."""
        if self._judged and service.status == ServiceStatus.FAILED:
            return True
        never_ready = Replica.objects.filter(service=service, version=self._version, ready_at=None, state__in=FAILURES)
        if service.forgiven_at is not None:
            never_ready = never_ready.filter(ended_at__gt=service.forgiven_at)
        live = Replica.objects.filter(ALIVE, service=service, version=self._version)
        return never_ready.count() >= self._most_never_ready and not live.exists()

    def _last_lines(self) -> str:
        """What the newest failed replica of the version said last."""
        failed = Replica.objects.filter(service=self._service, version=self._version, state__in=FAILURES)
        newest = failed.order_by("-number").first()
        if newest is None:
            return ""
        said = "".join(f"\n  | {line}" for line in newest.last_lines)
        logs = f"manage.py logs {self._service.name} {newest.number}"
        return f"\nReplica {newest.number} ended as {newest.state}: {newest.reason}{said}\n`{logs}` shows all of it."
