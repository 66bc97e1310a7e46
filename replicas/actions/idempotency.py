"""Keeps what a POST was answered, so that one that is sent again does nothing twice."""

from dataclasses import dataclass
from datetime import timedelta

from django.db import IntegrityError, transaction

from replicas import clock
from replicas.models import ApiToken, KeptAnswer

KEPT = timedelta(days=1)
AT_WORK = timedelta(minutes=2)  # after that, whoever began has died without an answer


@dataclass(frozen=True, slots=True)
class Begun:
    """The request is to be carried out; `keep` or `forget` follows."""

    row: KeptAnswer


@dataclass(frozen=True, slots=True)
class Answered:
    """It was carried out before, and answered so."""

    status: int
    body: str


class Other(Exception):
    """The key was used for another request."""


class AtWork(Exception):
    """The first request with this key has no answer yet."""


def begin(token: ApiToken, key: str, fingerprint: str) -> Begun | Answered:
    """Claim the key of this token for a request. Raises Other, AtWork."""
    now = clock.now()
    rows = KeptAnswer.objects.filter(token=token, key=key)
    rows.filter(created_at__lt=now - KEPT).delete()
    rows.filter(status=None, created_at__lt=now - AT_WORK).delete()
    try:
        with transaction.atomic():
            return Begun(KeptAnswer.objects.create(token=token, key=key, fingerprint=fingerprint, created_at=now))
    except IntegrityError:
        kept = rows.first()
    if kept is None:  # the first one has just failed, and forgotten it
        raise AtWork
    if kept.fingerprint != fingerprint:
        raise Other
    if kept.status is None:
        raise AtWork
    return Answered(kept.status, kept.body)


def keep(begun: Begun, status: int, body: str) -> None:
    """The answer, for a day."""
    KeptAnswer.objects.filter(pk=begun.row.pk, status=None).update(status=status, body=body)


def forget(begun: Begun) -> None:
    """There is no answer worth keeping: the same key may be tried again."""
    KeptAnswer.objects.filter(pk=begun.row.pk, status=None).delete()


def prune() -> int:
    """Delete answers that are a day old; how many there were."""
    gone: int = KeptAnswer.objects.filter(created_at__lt=clock.now() - KEPT).delete()[0]
    return gone
