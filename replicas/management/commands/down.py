"""`down SERVICE... | --all`: want nothing of services running."""

from typing import Any

from django.core.management.base import CommandParser

from replicas.actions import services
from replicas.core.values import Desired, ServiceStatus
from replicas.core.wording import named
from replicas.management.following import Deadline, News, Patience, Trail
from replicas.management.printing import event_line
from replicas.management.verb import Exit, Verb, actor, fail, match_services, seconds
from replicas.models import Event, Replica, Service
from replicas.models.fields import ALIVE
from replicas.web.outbox import newest


class Command(Verb):
    """Takes services down; names are exact, globs are taken where they have *, ? or [."""

    help = (
        "Take services down. They stay in the list (status --all) and come up again with the next apply, unless they"
        " are purged. If any name is unknown, nothing is taken down."
    )
    examples = (
        "  manage.py down web\n"
        "  manage.py down 'web-*' api --wait\n"
        "  manage.py down --all --purge --wait --timeout 120\n"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """SERVICE... or --all, --purge, --wait and --timeout."""
        parser.add_argument(
            "services", metavar="SERVICE", nargs="*", help="a name, or a glob in quotes such as 'web-*'"
        )
        parser.add_argument("--all", action="store_true", help="all services")
        parser.add_argument("--purge", action="store_true", help="forget them, with their history, once they are down")
        parser.add_argument("--wait", action="store_true", help="wait until nothing of them is left")
        parser.add_argument("--timeout", metavar="S", type=seconds, default=300.0, help="with --wait; 300 if not given")

    def handle(self, *, services: list[str], all: bool, purge: bool, wait: bool, timeout: float, **_: Any) -> None:
        """Write the wishes, then wait if so asked."""
        if all == bool(services):
            fail("Name the services to take down, or give --all (and not both).", Exit.USAGE)
        found = _all(purge) if all else match_services(services)
        with News() as news:
            after = newest()
            for service in found:
                self._take_down(service, purge)
            if not found:
                self.say("There is nothing to take down.")
            elif wait:
                self._wait(found, Trail(Event.objects.filter(service__in=found), after), news, Deadline(timeout))
            else:
                self.warn_unless_running()

    def _take_down(self, service: Service, purge: bool) -> None:
        before = service.desired
        services.take_down(service.pk, purge=purge, actor=actor())
        forgotten = " and will be forgotten" if purge else ""
        verb = "is down already or going down" if before == Desired.DOWN else "is going down"
        self.say(f"{service.name} {verb}{forgotten}")

    def _wait(self, found: list[Service], trail: Trail, news: News, deadline: Deadline) -> None:
        patience = Patience()
        while True:
            for event in trail.fresh():
                if event.kind in ("replica", "service"):
                    self.say(event_line(event, self.paint, with_id=False))
            left = [
                service for service in Service.objects.filter(pk__in=[s.pk for s in found]) if not _is_down(service)
            ]
            if not left:
                break
            patience.check()
            if deadline.passed:
                names = ", ".join(f"{service.name} ({_left(service)})" for service in left)
                fail(f"Not down within {deadline.seconds:g} s: {names}. They go on going down.", Exit.TIMED_OUT)
            news.wait(deadline=deadline)
        self._judge(found)

    def _judge(self, found: list[Service]) -> None:
        """Say how it ended; fails where something may be left over."""
        broken = Service.objects.filter(pk__in=[s.pk for s in found], status=ServiceStatus.FAILED_CLEANUP)
        if broken:
            fail("\n".join(f"{service.name}: {service.reason}" for service in broken))
        self.say("Nothing of it is left." if len(found) == 1 else f"Nothing of the {len(found)} services is left.")


def _all(purge: bool) -> list[Service]:
    """Every service that there is something left to do about."""
    everything = Service.objects.order_by("name")
    return list(everything if purge else everything.exclude(desired=Desired.DOWN, status=ServiceStatus.DOWN))


def _is_down(service: Service) -> bool:
    """True once nothing of it runs and, if it is to be forgotten, nobody can forget it any more."""
    if Replica.objects.filter(ALIVE, service=service).exists():
        return False
    if service.purge:
        return service.status == ServiceStatus.FAILED_CLEANUP
    return service.status in (ServiceStatus.DOWN, ServiceStatus.FAILED_CLEANUP)


def _left(service: Service) -> str:
    live = Replica.objects.filter(ALIVE, service=service)
    numbers = list(live.order_by("number").values_list("number", flat=True))
    return f"{named(numbers)} left" if numbers else service.reason
