"""Where a wish comes from: by which door, from what address, with which token. Every event notes it."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import PermissionDenied

from replicas.actions.powers import not_theirs
from replicas.models import Service

WEB, ADMIN, COMMAND, API = "web", "admin", "command", "api"


@dataclass(frozen=True, slots=True)
class Origin:
    """`source` is a door (WEB, ADMIN, COMMAND, API), empty for what the control plane does by itself.

    `user`: whose request it is; None where no user of ours asks. `token`: the beginning of the token that was used.
    """

    source: str = ""
    address: str = ""
    token: str = ""
    user: Any = None

    def check(self, service: Service) -> None:
        """Refuse to write about a service that is not the user's business, whatever let them come so far.

        Doors ask `powers.refusal` before and say why; this is for the one that forgets. Raises PermissionDenied.
        """
        if self.user is not None and (reason := not_theirs(self.user, service)):
            raise PermissionDenied(reason)


_NOBODY = Origin()
_current: ContextVar[Origin] = ContextVar("where wishes come from", default=_NOBODY)


def current() -> Origin:
    """Where what is written now comes from."""
    return _current.get()


@contextmanager
def acting(origin: Origin) -> Iterator[None]:
    """What is written inside comes from there."""
    before = _current.set(origin)
    try:
        yield
    finally:
        _current.reset(before)
