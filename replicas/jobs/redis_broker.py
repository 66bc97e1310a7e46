"""django-q2's Redis broker for a Redis that may be away for a while, and that other installations may use as well."""

import logging
import time
from typing import Any

import redis
from django_q.brokers.redis_broker import Redis
from django_q.conf import Conf
from redis.backoff import NoBackoff
from redis.retry import Retry

log = logging.getLogger(__name__)

AWAY_SECONDS = 1.0  # between two looks at a server that does not answer
COMPLAINT_SECONDS = 60.0
ANSWER_SECONDS = 3.0  # longer than the server holds a reader back, and shorter than a part may be silent
TROUBLE = redis.RedisError


class RedisBroker(Redis):
    """Waits in the pusher until the server answers again: django-q2's own ends it, and is replaced after 10 s only."""

    def __init__(self, list_key: str | None = None) -> None:
        super().__init__(list_key)
        self.list_key = f"rollcall:{Conf.PREFIX}:{list_key or Conf.CLUSTER_NAME}"
        self._complained = 0.0

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        self._complained = 0.0

    @staticmethod
    def get_connection(list_key: str | None = None) -> Any:
        """A client that says soon that nobody answers. It reconnects by itself."""
        once = Retry(NoBackoff(), 1)  # a connection that has been idle may be dead: that is found out by using it
        return redis.from_url(Conf.REDIS, retry=once, socket_timeout=ANSWER_SECONDS, socket_connect_timeout=1.0)

    def dequeue(self) -> list[tuple[None, bytes]] | None:
        """Take the next message; with none, wait a second for it."""
        try:
            taken: list[tuple[None, bytes]] | None = super().dequeue()
        except TROUBLE as error:
            if time.monotonic() - self._complained > COMPLAINT_SECONDS:
                self._complained = time.monotonic()
                log.warning("Redis does not answer (%s); it is asked again each second", error)
            time.sleep(AWAY_SECONDS)
            return None
        self._complained = 0.0
        return taken

    def set_stat(self, key: str, value: str, timeout: int) -> None:
        """Nobody needs the statistics of pools; twice a second they would complain of a server that is away."""
