"""django-q2's ORM broker, woken by a bell instead of by polling alone."""

from typing import Any

from django.conf import settings
from django.db import transaction
from django_q.brokers.orm import ORM
from django_q.conf import Conf
from django_q.models import OrmQ

from replicas import bell

IDLE_SECONDS = 1.0  # a ring may be lost: look this often all the same


def topic(lane: str) -> str:
    """The bell that says that there is a job for the lane."""
    return f"jobs-{lane}"


class BellBroker(ORM):
    """Hands a job over as soon as its message is committed, and costs one query a second while there is none."""

    def __init__(self, list_key: str | None = None) -> None:
        super().__init__(list_key)
        self._bell: bell.Bell | None = None

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        self._bell = None

    def enqueue(self, task: str) -> int:
        """Store the message and ring once it is committed."""
        number: int = super().enqueue(task)
        lane = self.list_key or Conf.CLUSTER_NAME
        transaction.on_commit(lambda: bell.ring(settings.ROLLCALL.run, topic(lane)))
        return number

    def dequeue(self) -> list[tuple[int, str]] | None:
        """Take the next message; with none, wait for the bell. Only the pusher process of a pool calls this."""
        if self._bell is None:
            self._bell = bell.Bell(settings.ROLLCALL.run, topic(self.list_key))
        taken = self._take()
        if not taken:
            self._bell.wait(IDLE_SECONDS)
        return taken or None

    def _take(self) -> list[tuple[int, str]]:
        """The oldest free messages, each locked by compare-and-set against other pools of the same lane."""
        queue = self.get_connection().filter(key=self.list_key, lock__lt=self._now())
        return [
            (message.pk, message.payload)
            for message in queue.order_by("pk")[: Conf.BULK]
            if OrmQ.objects.filter(pk=message.pk, lock=message.lock).update(lock=self.timeout(message))
        ]

    @staticmethod
    def _now() -> Any:
        from django.utils import timezone

        return timezone.now()
